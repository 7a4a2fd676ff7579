"""Runs that lease GPUs and do nothing else: a program for every Python that the far side supports, with the far side on
its path. `kit.leasing` starts it.

    storm     many runs of several users, one after the other in some processes for each; writes what each had and when
    hold      a guardian and a supervisor, as a run has them, which has leased; a line of JSON says who they are
    wait      leases as a waiting run does; says when it has

The argument is JSON, with `patience`: seconds for an answer of the driver. Processes become their user after everything
was imported and asked, so that the users need not be able to execute this Python.
"""

import functools
import json
import os
import random
import socket
import subprocess
import sys
import time
from typing import Any, Callable, Dict, List, Union

from holdfast.farside.gpu.lease import leases, registry
from holdfast.farside.gpu.request import GpuRequest
from holdfast.farside.machine import gpus

BOOTTIME = 7
IMPATIENCE = 0.1
"""Runs of milliseconds look more often than runs of hours."""
WANTED: List[Union[int, str]] = [1, 1, 1, 1, 1, 2, 2, 3, "all"]


def main() -> None:
    given = json.loads(sys.argv[2])
    programs: Dict[str, Callable[[Dict[str, Any]], None]] = {"storm": storm, "hold": hold, "wait": wait}
    programs[sys.argv[1]](given)


def now() -> float:
    return time.clock_gettime(BOOTTIME)


def say(**keys: Any) -> None:
    os.write(1, (json.dumps(keys) + "\n").encode("ascii"))


# ---- many runs ----


def storm(given: Dict[str, Any]) -> None:
    """`uids`, `processes` of each and `runs` of each process, `folder` for a file of each process."""
    report = gpus.ask(dict(os.environ), given["patience"])
    ready, begin = os.pipe()
    children = []
    for place, uid in enumerate(given["uids"]):
        for number in range(given["processes"]):
            child = os.fork()
            if child == 0:
                os.close(begin)
                _become(uid)
                os.read(ready, 1)
                target = os.path.join(given["folder"], "%d-%d.json" % (place, number))
                _runs(given, report, "%d-%d" % (place, number), target)
                os._exit(0)
            children.append(child)
    os.close(begin)
    codes = [os.waitpid(child, 0)[1] for child in children]
    say(failed=len([code for code in codes if code != 0]))


def _runs(given: Dict[str, Any], report: gpus.Report, name: str, target: str) -> None:
    chance = random.Random(name)
    with open(target, "w") as file:
        for number in range(given["runs"]):
            wanted = chance.choice(WANTED)
            json.dump(_one_run(report, "%s-%d" % (name, number), wanted, chance.uniform(0.005, 0.03)), file)
            file.write("\n")


def _one_run(report: gpus.Report, run: str, wanted: Union[int, str], seconds: float) -> Dict[str, Any]:
    """When it asked, was first seen waiting, last waited, got its lease and returned it; and what it had."""
    row: Dict[str, Any] = {"run": run, "uid": os.getuid(), "gpus": wanted, "asked": now(), "seen": None, "waited": None}

    def tell(text: str) -> None:
        row["seen"] = row["seen"] or now()

    def wait(limit: float) -> None:
        row["waited"] = now()
        time.sleep(limit * IMPATIENCE)

    who = leases.LeaseHolder(os.getuid(), run, os.getpid())
    lease = leases.lease(GpuRequest(gpus=wanted), report, lambda: report, tell, wait, who)
    row.update(begin=now(), uuids=lease.uuids)
    time.sleep(seconds)
    row["end"] = now()
    for each in lease.sockets:
        each.close()
    return row


def _become(uid: int) -> None:
    if uid != os.getuid():
        os.setgid(uid)
        os.setuid(uid)


# ---- one run, as it is owned ----


def hold(given: Dict[str, Any]) -> None:
    """Runs until it is killed. `uid`, `gpus`, `run`; `child`: the supervisor executes a program that stays."""
    report = gpus.ask(dict(os.environ), given["patience"])
    _become(given["uid"])
    held, to_guardian = registry.pair()
    guardian = os.getpid()
    if os.fork() == 0:
        held.close()
        _supervise(given, report, guardian, to_guardian)
    to_guardian.close()
    while True:
        time.sleep(3600)


def _supervise(given: Dict[str, Any], report: gpus.Report, guardian: int, to_guardian: socket.socket) -> None:
    who = leases.LeaseHolder(os.getuid(), given["run"], guardian)
    lease = leases.lease(GpuRequest(gpus=given["gpus"]), report, lambda: report, lambda text: None, time.sleep, who)
    assert registry.hand_over(to_guardian, lease.sockets)
    child = subprocess.Popen(["sleep", "3600"], start_new_session=True, close_fds=False) if given.get("child") else None
    say(guardian=guardian, supervisor=os.getpid(), child=child.pid if child else None, uuids=lease.uuids)
    while True:
        time.sleep(3600)


def wait(given: Dict[str, Any]) -> None:
    """As the supervisor of a run does. With a `uid` the driver is asked before the process becomes that user only."""
    ask = functools.partial(gpus.ask, dict(os.environ), given["patience"])
    if "uid" in given:
        known = ask()
        ask = lambda: known  # type: ignore[assignment]  # noqa: E731 - for its users as the other
        _become(given["uid"])
    who = leases.LeaseHolder(os.getuid(), given["run"], os.getpid())
    request = GpuRequest(gpus=given["gpus"], min_memory=given.get("min_memory"))
    told = lambda text: say(told=text)  # noqa: E731 - it is passed on only
    lease = leases.lease(request, ask(), ask, told, time.sleep, who)
    say(had=now(), uuids=lease.uuids)
    sys.stdin.read()


if __name__ == "__main__":
    main()
