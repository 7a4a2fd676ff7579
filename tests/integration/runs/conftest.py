"""A project folder with scripts, and ways to look at what a run left."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kit import processes
from kit.homes import furnish
from kit.waiting import wait_for


@dataclass(frozen=True)
class Bench:
    """One project, one host home, one way to run the command line."""

    root: Path
    home: Path
    command: Callable[..., Any]

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def run(self, *arguments: str, **options: Any) -> Any:
        return self.command(*arguments, cwd=self.root, **options)

    def submit(self, *arguments: str, **options: Any) -> Any:
        return self.run("submit", *arguments, **options)

    def start(self, *arguments: str, **options: Any) -> str:
        """Submit without waiting; returns the run id."""
        result = self.run("submit", "-a", *arguments, **options)
        assert result.code == 0, result.err
        return str(result.out.strip())

    def begin(self, script: str, *words: str, until: str = "up\n", **options: Any) -> str:
        """Submit `t.py` without waiting; returns the run id once it has printed `until`."""
        self.write("t.py", script)
        run_id = self.start(*words, "t.py", **options)
        log = self.far(run_id) / "driver_log"
        wait_for(lambda: until.encode() in log.read_bytes(), what=f"the script prints {until!r}")
        return run_id

    def record(self, run: str = "last") -> Any:
        result = self.run("history", "info", "-r", run, "-o", "json")
        assert result.code == 0, result.err
        return json.loads(result.out)

    def near(self, run_id: str) -> Path:
        return self.root / ".holdfast" / "runs" / run_id

    def far(self, run_id: str) -> Path:
        return next(self.home.glob(f"runs/*/{run_id}"))

    def there(self, run_id: str) -> Path:
        """The project's top, as the script has it."""
        from holdfast.farside.system.working_tree import tree_of

        return Path(tree_of(str(self.far(run_id))).project)

    def journal(self, run_id: str) -> list[dict[str, Any]]:
        from holdfast.farside.system.journal import read_events

        return read_events(str(self.far(run_id) / "journal.jsonl"))

    def event(self, run_id: str, name: str) -> dict[str, Any]:
        """The journal's event of that name, waited for."""
        return wait_for(lambda: next((each for each in self.journal(run_id) if each["e"] == name), None))

    def holder(self, run_id: str, byte: int) -> int:
        """The pid of the guardian (byte 0) or the supervisor (byte 1)."""
        from holdfast.farside.system.kernel import lock_holder

        return wait_for(lambda: lock_holder(str(self.far(run_id) / "lock"), byte))

    def kill_owners(self, run_id: str) -> None:
        """Guardian and supervisor; returns when both are gone."""
        owners = [self.holder(run_id, byte) for byte in (0, 1)]
        for pid in owners:
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: all(is_gone(pid) for pid in owners), what="the end of guardian and supervisor")

    def until_left(self, run_id: str = "") -> None:
        """Returns when that run, or every run of the home, has no owner any more."""
        until_left(self.home, self.far(run_id).name if run_id else "*")

    def containers(self) -> list[str]:
        """Of this bench's runs, those that have ended among them."""
        return []

    def until_nothing_is_left(self, run_id: str) -> None:
        """Returns when the run has no process, no container and no owner any more."""
        wait_for(lambda: members(run_id) == [], what="the processes of the run are gone")
        wait_for(lambda: self.containers() == [], what="the container is removed")
        self.until_left(run_id)

    def popen(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "holdfast", *arguments],
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )


def members(run_id: str) -> list[processes.Process]:
    """Processes of the run, in its container or beside it."""
    mark = f"HOLDFAST_RUN_ID={run_id}"
    return [one for one in processes.every() if one.is_alive and mark in one.environment]


def is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "ZX"


@pytest.fixture
def bench(tmp_path: Path, isolated: Path, holdfast: Callable[..., Any]) -> Iterator[Bench]:
    root = tmp_path / "project"
    root.mkdir()
    made = Bench(root, furnish(Path(os.environ["HOLDFAST_HOME"])), holdfast)
    yield made
    end_what_is_left(made.home)


def until_left(home: Path, runs: str = "*") -> None:
    """Returns when these runs of the home have no owner any more. For a moment after the journal's last line, the
    owners of a run still tidy up its folder and have files open."""
    from holdfast.farside.run.liveness import is_alive

    wait_for(
        lambda: not any(is_alive(str(lock.parent)) for lock in home.glob(f"runs/*/{runs}/lock")),
        what="guardian and supervisor leave their runs",
    )


def end_what_is_left(home: Path) -> None:
    """A failing test must not leave a run behind."""
    from holdfast.farside.system.kernel import lock_holder
    from holdfast.farside.system.processes import descendants

    for lock in home.glob("runs/*/*/lock"):
        for byte in (1, 0):  # the supervisor first: its guardian then ends what is left of the run
            pid = lock_holder(str(lock), byte)
            if pid:
                for each in (pid, *(process.pid for process in descendants(pid, set))):
                    with contextlib.suppress(ProcessLookupError):  # it ends by itself
                        os.kill(each, signal.SIGKILL)


PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1


@pytest.fixture
def obeying_modes(holdfast: Callable[..., Any]) -> Callable[..., Any]:
    """Runs the command line as a user to whom file modes apply: root without the right to override them."""
    import ctypes

    def drop() -> None:
        ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0)

    def run(cwd: Path, *arguments: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", *arguments],
            cwd=cwd,
            capture_output=True,
            text=True,
            preexec_fn=drop if os.getuid() == 0 else None,
        )
        return SimpleNamespace(code=done.returncode, out=done.stdout, err=done.stderr)

    return run
