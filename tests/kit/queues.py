"""A scheduler for tests: Holdfast asks its far end, `queue_engine.py`; this module decides what happens to the jobs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

from kit import queue_engine
from kit.waiting import wait_for

ENVIRONMENT = {"HOLDFAST_ENGINE": "queue"}
"""For the client: its runs go through the queue."""
SAYS = "waiting for resources"


class Queue:
    """The queue of the host with this home, which must exist. Every job waits until the test starts it."""

    def __init__(self, home: Path) -> None:
        self._home, self._started = home, list[subprocess.Popen[bytes]]()
        self._place = home / "engines" / "queue"
        (self._place / "jobs").mkdir(parents=True)
        (home / "engines").chmod(0o700)
        shutil.copy(queue_engine.__file__, home / "engines" / "queue.py")
        (home / "engines" / "queue.py").chmod(0o600)
        self.order()
        self._hand_over()

    def order(self, **orders: Any) -> None:
        """How it treats requests from now on: `refuses`, `sick` (could not be asked), `delays`, `dies` (kills the
        process that asked, once the job exists), `unanswered`."""
        queue_engine.write(str(self._place / "orders.json"), {"says": SAYS, **orders})
        self._hand_over()

    def job(self, number: int = 1) -> dict[str, Any]:
        return wait_for(lambda: queue_engine.read(self._path(number)), what="the job is there")

    def count(self) -> int:
        return len(list((self._place / "jobs").glob("*.json")))

    def calls(self) -> list[str]:
        path = self._place / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def says(self, text: str, number: int = 1) -> None:
        self._change(number, said=text)

    def loses(self, number: int = 1) -> None:
        self._change(number, state="lost")

    def run(self, number: int = 1) -> subprocess.Popen[bytes]:
        """Start the job as its owner, without the submitter's environment."""
        owner = self._home.stat()
        as_owner: dict[str, Any] = {"user": owner.st_uid, "group": owner.st_gid} if os.getuid() == 0 else {}
        process = subprocess.Popen(
            ["/bin/sh", "-c", self.job(number)["script"]],
            cwd="/",
            env={"PATH": os.environ["PATH"], "HOME": str(self._home.parent), "HOLDFAST_NVML": "/no-nvml"},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            **as_owner,
        )
        self._started.append(process)
        self._change(number, state="running", said="running", pid=process.pid)
        return process

    def preempt(self, said: str, number: int = 1, politely: bool = True) -> None:
        self._change(number, state="preempted", said=said)
        queue_engine.tell(self.job(number)["pid"], signal.SIGTERM if politely else signal.SIGKILL)

    def close(self) -> None:
        """Nothing of it goes on."""
        for process in self._started:
            queue_engine.tell(process.pid, signal.SIGKILL)
            process.wait()

    def _path(self, number: int) -> str:
        return str(self._place / "jobs" / f"{number}.json")

    def _change(self, number: int, **changes: Any) -> None:
        queue_engine.write(self._path(number), {**self.job(number), **changes})
        self._hand_over()

    def _hand_over(self) -> None:
        """To the account that owns the home."""
        owner = self._home.stat()
        if owner.st_uid != os.getuid():
            for path in (self._home / "engines", *(self._home / "engines").rglob("*")):
                os.chown(path, owner.st_uid, owner.st_gid)
