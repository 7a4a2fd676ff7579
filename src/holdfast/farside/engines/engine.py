"""The seam: who starts the supervisor of a run, owns it, and can be asked about it."""

from typing import Any, Callable, Dict, NamedTuple, Sequence

from holdfast.farside.system.layout import Home

DIRECT = "direct"
QUEUED, RUNNING, PREEMPTED, GONE, UNKNOWN = "queued", "running", "preempted", "gone", "unknown"
"""States of a run: the engine has it and nothing runs yet; something runs or is about to; the engine ended it in favour
of another run; the engine does not have it (any more); the engine could not be asked."""
UNANSWERED = "unanswered"
"""Of a refusal: the engine was asked to start something, and may do it yet. Any other refusal means: not started."""
ENGINE = "engine"
"""Of a refusal: the engine does not take the run, or there is no such engine."""

Plan = Dict[str, Any]
Request = Dict[str, Any]
Work = Callable[[Home, Request, int], None]
"""Runs in the new process and never returns. It tells `ok`, or why not, by the descriptor, and closes it."""


class Owner(NamedTuple):
    """Who has a run: `owner.json` in its folder. `token` is the run's own, by which it is started once; `handle` is
    what the engine calls it, empty while the engine's answer to the start is not known."""

    engine: str
    token: str
    handle: str = ""


class EngineLook(NamedTuple):
    """An engine's answer about a run, `said` in its own words. `handle` is its name for the run, empty if unknown."""

    state: str
    said: str = ""
    handle: str = ""


class NewRun(NamedTuple):
    """A run that is to be started. `guardian` is what a process does that is to own it, with `secrets` and `records`
    in its request; an engine with `needs_folder` finds all of it in the run's folder and needs neither."""

    home: Home
    plan: Plan
    secrets: Dict[str, str]
    records: Dict[str, Any]
    guardian: Work


class HostPaths(NamedTuple):
    """What a script for an engine names of the host."""

    python: str
    entry: str
    home: str


SHOWN = HostPaths("<python>", "<farside>/holdfast/farside/main.py", "<home>")


def job_script(plan: Plan, where: HostPaths = SHOWN) -> str:
    """A script that becomes the run's guardian."""
    import shlex

    names = [plan["project"], plan["run"], plan["generation"]]
    words = [where.python, "-I", "-S", where.entry, "owned", where.home] + [str(name) for name in names]
    quoted = words if where == SHOWN else [shlex.quote(word) for word in words]
    return "#!/bin/sh\nexec %s\n" % " ".join(quoted)


class Engine:
    """`needs_folder`: the run's folder is made before the start, with its secrets in a file that is deleted when it is
    read; False: the process that is started makes it. `pace`: seconds between two looks of one who follows a run."""

    needs_folder = True
    pace = 2.0

    def __init__(self, home: Home) -> None:
        self.home = home

    def script(self, plan: Plan, where: HostPaths = SHOWN) -> str:
        """The script that the engine gets, which `--dry-run` shows; empty if it needs none. Pure."""
        return job_script(plan, where)

    def start(self, run: NewRun) -> str:
        """Returns the handle, when something that outlives the connection owns the run. Refused: it did not start;
        Refused of kind UNANSWERED: it may have."""
        raise NotImplementedError

    def look(self, owners: Sequence[Owner]) -> Dict[Owner, EngineLook]:
        """The state of each, with one question for all of them; one without a handle is found by its token. "Could not
        ask" is a state: this does not raise."""
        raise NotImplementedError

    def end(self, owner: Owner, grace: float) -> None:
        """Ask for the end of a run, which is waiting or running, and give it `grace` seconds; does not wait for it.
        Gone already is success. Refused where the engine could not be asked."""
        raise NotImplementedError
