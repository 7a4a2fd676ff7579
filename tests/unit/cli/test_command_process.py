"""The process behind the `holdfast` script: its exit code, and that nothing is lost when it leaves in a hurry."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_PROGRAM = "import sys; from holdfast.__main__ import run; {before}; sys.argv[0] = 'holdfast'; run()"


def _run(folder: Path, *words: str, before: str = "pass") -> subprocess.CompletedProcess[str]:
    program = _PROGRAM.format(before=before)
    environment = {"PATH": os.defpath, "HOME": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", program, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )


def test_all_output_is_written_before_the_process_ends_and_what_was_to_be_done_then_is_done(tmp_path):
    done = _run(tmp_path, "--help", before="import atexit, os; atexit.register(os.write, 1, b'restored')")
    assert done.returncode == 0
    assert done.stdout.endswith("Try: holdfast submit train.py\nrestored")


def test_an_error_has_its_exit_code_and_its_words(tmp_path):
    done = _run(tmp_path, "nothing")
    assert done.returncode == 240
    assert done.stderr.startswith("error: ") and "`nothing`" in done.stderr
