"""Everything that runs on the host: standard library only, Python 3.6 and newer, no import of the rest of Holdfast.

`main.py serve` is started by the near side and speaks frames over stdin and stdout (`agent.py`). Each run has a
guardian (`guardian.py`) and below it a supervisor (`supervisor.py`). Their files are described in
`docs/reference/files.md`."""
