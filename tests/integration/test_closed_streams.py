"""`submit` returns the script's exit code even if its own output was closed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(("streams", "shown"), [("2>&-", "said\n"), ("2>/dev/full", "said\n"), (">&- 2>&-", "")])
def test_a_closed_stream_does_not_change_how_submit_ends(tmp_path: Path, streams: str, shown: str) -> None:
    (tmp_path / "t.py").write_text("print('said')\nraise SystemExit(3)\n")
    typed = f'exec "$0" -m holdfast submit t.py {streams}'
    done = subprocess.run(
        ["sh", "-c", typed, sys.executable], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, shown, "")
