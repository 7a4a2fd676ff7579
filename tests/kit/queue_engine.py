"""An engine that queues, delays, loses, refuses and preempts on command, for tests: its file is in Holdfast's folder on
the host (`engines/queue.py`), where the far side finds it, and its state is beside it.

`jobs/<number>.json` is a job; `orders.json` says how the engine treats requests; `calls` has a line for each question.
A job runs when `Queue.run` in `kit/queues.py` starts it, as a scheduler would, by its script."""

import contextlib
import json
import os
import signal
import sys
import time
from typing import Any, Dict, Optional, Sequence, Tuple

from holdfast.farside.engines import engine
from holdfast.farside.system.layout import ENTRY, Home
from holdfast.farside.system.processes import descendants
from holdfast.farside.system.refusal import Refused


class Engine(engine.Engine):
    pace = 0.1

    def __init__(self, home: Home) -> None:
        super().__init__(home)
        self.place = os.path.join(home.engines(), "queue")

    def start(self, run: engine.NewRun) -> str:
        self._called("start")
        orders = self._orders()
        if "refuses" in orders:
            raise Refused(engine.ENGINE, orders["refuses"], "Ask for less.")
        while self._orders().get("delays"):
            time.sleep(0.01)
        where = engine.HostPaths(sys.executable, ENTRY, run.home.path)
        token = run.plan["generation"]
        number = 1 + len(os.listdir(os.path.join(self.place, "jobs")))
        job = {"token": token, "script": self.script(run.plan, where), "state": engine.QUEUED, "said": orders["says"]}
        write(os.path.join(self.place, "jobs", "%d.json" % number), dict(job, pid=0))
        if orders.get("dies"):
            os.kill(os.getpid(), signal.SIGKILL)
        if orders.get("unanswered"):
            raise Refused(engine.UNANSWERED, "The queue did not answer.")
        return str(number)

    def look(self, owners: Sequence[engine.Owner]) -> Dict[engine.Owner, engine.EngineLook]:
        self._called("look %d" % len(owners))
        if "sick" in self._orders():
            return {owner: engine.EngineLook(engine.UNKNOWN, self._orders()["sick"]) for owner in owners}
        return {owner: self._seen(owner) for owner in owners}

    def end(self, owner: engine.Owner, grace: float) -> None:
        self._called("end")
        if "sick" in self._orders():
            raise Refused(engine.ENGINE, "The queue could not be asked: %s." % self._orders()["sick"])
        number, job = self._find(owner)
        if job is None or job["state"] == engine.GONE:
            return
        write(self._path(number), dict(job, state=engine.GONE, said="canceled"))
        if job["pid"]:
            tell(job["pid"], signal.SIGTERM)

    def _seen(self, owner: engine.Owner) -> engine.EngineLook:
        number, job = self._find(owner)
        if job is None:
            return engine.EngineLook(engine.GONE)
        state = job["state"]
        if state == engine.RUNNING and not is_there(job["pid"]):
            state, job["said"] = engine.GONE, "the job ended"
        return engine.EngineLook(state, job["said"], number)

    def _find(self, owner: engine.Owner) -> Tuple[str, Optional[Dict[str, Any]]]:
        for name in os.listdir(os.path.join(self.place, "jobs")):
            number = name[: -len(".json")]
            if name.endswith(".json"):
                job = read(self._path(number))
                if job["state"] != "lost" and (number == owner.handle or job["token"] == owner.token):
                    return number, job
        return "", None

    def _path(self, number: str) -> str:
        return os.path.join(self.place, "jobs", number + ".json")

    def _orders(self) -> Dict[str, Any]:
        return read(os.path.join(self.place, "orders.json"))

    def _called(self, what: str) -> None:
        with open(os.path.join(self.place, "calls"), "a") as target:
            target.write(what + "\n")


def tell(pid: int, number: int) -> None:
    """The job's process and all its descendants, like a scheduler that knows a job by its control group."""
    for each in [pid] + [process.pid for process in descendants(pid, set)]:
        with contextlib.suppress(OSError):
            os.kill(each, number)


def is_there(pid: int) -> bool:
    try:
        with open("/proc/%d/stat" % pid) as source:
            return source.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def read(path: str) -> Dict[str, Any]:
    with open(path) as source:
        found: Dict[str, Any] = json.load(source)
    return found


def write(path: str, what: Dict[str, Any]) -> None:
    with open(path + ".new", "w") as target:
        json.dump(what, target)
    os.rename(path + ".new", path)
