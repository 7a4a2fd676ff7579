"""Small repositories as people publish them (`tests/cases/repositories`), and what their READMEs' commands do."""

from __future__ import annotations

import contextlib
import fcntl
import fnmatch
import json
import os
import re
import shutil
import struct
import subprocess
import termios
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.workbench.submitting.tools import find_uv

CASES = Path(__file__).resolve().parents[1] / "cases" / "repositories"
DESCRIPTION = "case.json"
BESIDE = "beside"
"""A folder of a case: what lies next to the repository, not in it."""
_KEYS = frozenset(("packages", "commands", "instead", "here", "varies", "differ", "soak", "lock"))
_INSTALLS = re.compile(r"(uv )?pip3? install |python3? -m pip install |uv sync|conda ")
_CACHES = (".git", ".holdfast", "__pycache__", ".ipynb_checkpoints", ".pytest_cache", ".venv")
_RUN_FOLDER = re.compile(r"/[^\s'\"]*?/runs/[0-9a-f]{32}/[\w.-]+_\d{13}/work((/above)+/[\w.-]+)?")
_TERMINAL = struct.pack("HHHH", 24, 80, 0, 0)


@dataclass(frozen=True)
class Step:
    """A line of the README, typed in `folder`, relative to the top. `options`: of `submit`. `by_hand`: what is typed
    without it, if that is something else."""

    command: str
    folder: str
    options: tuple[str, ...] = ()
    is_here: bool = False
    """Typed on this machine in both ways, without `submit`."""
    by_hand: str = ""

    @property
    def has_terminal(self) -> bool:
        return "--tty" in self.options


@dataclass(frozen=True)
class Repository:
    folder: Path
    steps: tuple[Step, ...]
    packages: tuple[str, ...]
    """Arguments of `pip install` for the Python that runs the commands by hand."""
    varies: tuple[str, ...]
    differ: tuple[str, ...]
    is_soak: bool
    has_lock: bool
    """A `uv.lock` is made for each copy: the one in a repository names the indexes of its author."""

    def copy(self, below: Path) -> Path:
        """A clone below this new folder, with one commit; returns its top."""
        top = below / self.folder.name
        shutil.copytree(self.folder, top, ignore=shutil.ignore_patterns(DESCRIPTION, BESIDE), symlinks=True)
        if (self.folder / BESIDE).is_dir():
            shutil.copytree(self.folder / BESIDE, below, dirs_exist_ok=True)
        if self.has_lock:
            subprocess.run([find_uv(), "lock", "-q"], cwd=top, check=True)
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        for words in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-qm", "Everything")):
            subprocess.run(["git", *words], cwd=top, check=True)
        return top


@dataclass(frozen=True)
class Outcome:
    """What one command did. `files`: what it created or changed, by name relative to the repository's top."""

    code: int
    out: str
    files: Mapping[str, bytes]
    err: str = ""


def repositories() -> list[Repository]:
    return [read(folder) for folder in sorted(CASES.iterdir()) if folder.is_dir()]


def read(folder: Path) -> Repository:
    with contextlib.suppress(FileNotFoundError):
        about = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        assert set(about) <= _KEYS, f"{folder.name}: {sorted(set(about) - _KEYS)} are no keys of {DESCRIPTION}"
        return _repository(folder, about)
    return _repository(folder, {})


def _repository(folder: Path, about: dict[str, Any]) -> Repository:
    steps = tuple(_steps((folder / "README.md").read_text(encoding="utf-8"), about))
    assert steps, f"{folder.name}: README.md has no `console` block with commands"
    named = {*about.get("commands", {}), *about.get("instead", {}), *about.get("here", ())}
    unknown = named - {step.by_hand or step.command for step in steps}
    assert not unknown, f"{folder.name}: README.md has no command {sorted(unknown)}"
    texts = {key: tuple(about.get(key, ())) for key in ("packages", "varies", "differ")}
    return Repository(folder, steps, is_soak=bool(about.get("soak")), has_lock=bool(about.get("lock")), **texts)


def _steps(readme: str, about: dict[str, Any]) -> Iterator[Step]:
    commands: dict[str, str] = about.get("commands", {})
    instead: dict[str, str] = about.get("instead", {})
    here: list[str] = about.get("here", [])
    folder = "."
    for command in _typed(readme):
        if command.startswith("cd "):
            folder = os.path.normpath(os.path.join(folder, command[3:]))
        elif not _INSTALLS.match(command):
            options = tuple(commands.get(command, "").split())
            typed = instead.get(command, command)
            yield Step(typed, folder, options, command in here, "" if typed == command else command)


def _typed(readme: str) -> Iterator[str]:
    for block in re.findall(r"^```console\n(.*?)^```", readme, re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("$ "):
                yield re.sub(r"\s+(> )?", " ", line[2:].strip())


# ---- by hand ----


def by_hand(step: Step, top: Path, environment: Mapping[str, str]) -> Outcome:
    """Type it into a shell in the clone at `top`."""
    before = _tree(top.parent)
    code, out = _type_on_terminal(step, top, environment) if step.has_terminal else _type(step, top, environment)
    changed = {name: data for name, data in _tree(top.parent).items() if before.get(name) != data}
    return Outcome(code, out, {os.path.relpath(name, top.name): data for name, data in changed.items()})


def _type(step: Step, top: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    """Both streams are one, as in a run, and Python writes to them in turn."""
    done = subprocess.run(
        ["bash", "-c", step.by_hand or step.command],
        cwd=top / step.folder,
        env={**environment, "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.returncode, done.stdout


def _type_on_terminal(step: Step, top: Path, environment: Mapping[str, str]) -> tuple[int, str]:
    leader, follower = os.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, _TERMINAL)
    data = b""
    with subprocess.Popen(
        ["bash", "-c", step.by_hand or step.command],
        cwd=top / step.folder,
        env=dict(environment),
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
    ) as process:
        os.close(follower)
        with contextlib.suppress(OSError):  # how a terminal tells that nobody writes any more
            while more := os.read(leader, 1 << 16):
                data += more
    os.close(leader)
    return process.returncode, data.decode(errors="replace").replace("\r\n", "\n")


def _tree(folder: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [each for each in folders if each not in _CACHES]
        for path in (Path(place, name) for name in names):
            found[str(path.relative_to(folder))] = (
                os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
            )
    return found


def read_tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with what it holds, without caches."""
    return _tree(folder) if folder.is_dir() else {}


# ---- compared ----


def differences(case: Repository, hand: Outcome, run: Outcome, top: Path) -> list[str]:
    """What the run did otherwise than the command by hand, whose clone is at `top`."""
    found = [f"exit code {run.code}, by hand {hand.code}\n{run.err}"] if run.code != hand.code else []
    plain = _Plain(case, top)
    if plain(run.out) != plain(hand.out):
        found.append(f"printed:\n{run.out}\nby hand:\n{hand.out}\n{run.err}")
    files, wanted = ({plain(name): data for name, data in each.files.items()} for each in (run, hand))
    found += [f"`{name}` is not at home" for name in sorted(wanted.keys() - files.keys())]
    found += [f"`{name}` is at home, and not made by hand" for name in sorted(files.keys() - wanted.keys())]
    for name in sorted(wanted.keys() & files.keys()):
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in case.differ):
            ours, theirs = (plain(_text(data)) for data in (files[name], wanted[name]))
            if ours != theirs:
                found.append(f"`{name}` holds:\n{ours[:2000]}\nby hand:\n{theirs[:2000]}")
    return found


class _Plain:
    """A text without what may differ: the folder it was made in, and what the case names. Of whole lines that differ,
    nothing is left: they may be absent."""

    def __init__(self, case: Repository, top: Path) -> None:
        self._tops = (_RUN_FOLDER, re.compile(re.escape(str(top))))
        self._varies = [re.compile(each) for each in case.varies]

    def __call__(self, text: str) -> str:
        for pattern in self._tops:
            text = pattern.sub("<top>", text)
        for pattern in self._varies:
            text = pattern.sub(lambda found: "" if found[0].endswith("\n") else "<varies>", text)
        return text


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="backslashreplace")
