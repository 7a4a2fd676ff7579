"""How a run in a container ended: from the launcher's last words, or, where it had none, from Docker's."""

import signal
import time
from typing import Any, Dict, List, NamedTuple, Optional

from holdfast.farside.containers.contained import Contained
from holdfast.farside.containers.docker_errors import UNREACHABLE, explain, words
from holdfast.farside.containers.launcher import STATUS
from holdfast.farside.containers.launcher_words import LastWords, parse_last_words, read_last_words
from holdfast.farside.containers.removal import LAST_WORDS, Pause, is_launcher_alive, wait_for_launcher
from holdfast.farside.system import foreign
from holdfast.farside.system.children import Exit
from holdfast.farside.system.nofollow import stat_below
from holdfast.farside.system.refusal import Refused

ASK_PATIENCE = 20.0
GONE, AWAY, SILENT = "gone", "away", "silent"
"""The container is not there; the daemon is not there; it does not answer, or says something that is not understood."""
_VANISHING = 1.5
"""Seconds in which a container that was removed from outside is gone for Docker too."""
_GIVEN_UP = 10.0


class ContainerOutcome(NamedTuple):
    """`exit` is the script's own. `ending` is the journal's last line where the exit alone does not tell it."""

    exit: Exit
    ending: Optional[Dict[str, Any]]
    swept: List[List[Any]]
    total: int
    notes: List[str]


class ContainerState(NamedTuple):
    """What Docker says of a container. `word`: its state, or one of those above."""

    word: str
    is_out_of_memory: bool


def finish(contained: Contained, pause: Pause, is_stopped: bool) -> ContainerOutcome:
    """When the process that stands for the script has ended. Nothing runs in the container when this returns.
    `is_stopped`: the run was asked to end, so that what comes from outside explains nothing."""
    seen = time.time()
    contained.hear()
    status = _last_words(contained) or _awaited(contained, pause)
    if status is None:
        return _without_words(contained, pause, is_stopped, seen)
    code, number = status.code, status.signal
    ended = Exit(code, number)
    swept, total = status.swept, status.total
    limit = _limit(contained, status.memory_limit)
    kills = status.memory_kills
    notes = []
    if kills:
        who = "a process" if kills == 1 else "%d processes" % kills
        notes.append("The kernel ended %s of the run because memory ran out. %s" % (who, limit))
    if is_stopped:
        return ContainerOutcome(ended, None, swept, total, notes)
    if number == signal.SIGKILL and not status.is_owned:
        detail = "The process that stands for the container on the machine was gone."
        return ContainerOutcome(ended, {"reason": "killed", "signal": number, "detail": detail}, swept, total, notes)
    if number == signal.SIGKILL and kills:
        return ContainerOutcome(ended, {"reason": "out-of-memory", "signal": number, "detail": limit}, swept, total, [])
    if status.outside is not None:
        ending = dict(_stopped(contained, _written(contained, seen)), code=code, signal=number)
        return ContainerOutcome(ended, ending, swept, total, notes)
    return ContainerOutcome(ended, None, swept, total, notes)


def _last_words(contained: Contained) -> Optional[LastWords]:
    """What the launcher wrote last, or said where the disk had no room for it."""
    found = read_last_words(contained.inside)
    if found is not None:
        return found
    said = [event["status"] for event in contained.said if event["e"] == "status"]
    return parse_last_words(said[-1]) if said else None


def _awaited(contained: Contained, pause: Pause) -> Optional[LastWords]:
    """The process that stood for it may have been killed: the launcher is ending everything."""
    wait_for_launcher(contained.inside, LAST_WORDS, pause)
    return _last_words(contained)


def _without_words(contained: Contained, pause: Pause, is_stopped: bool, end: float) -> ContainerOutcome:
    """The launcher is dead, or frozen and will be: it was killed together with all that ran in the container."""
    ended = Exit(None, int(signal.SIGKILL))
    state = ask(contained)
    if is_launcher_alive(contained.inside):
        is_removed = contained.remove()
        if not wait_for_launcher(contained.inside, _GIVEN_UP, pause, is_removed):
            note = "Processes of the container `%s` could not be ended." % contained.wanted.name
            return ContainerOutcome(ended, None if is_stopped else {"reason": "killed"}, [], 0, [note])
    if is_stopped:
        return ContainerOutcome(ended, None, [], 0, [])
    if state.is_out_of_memory:
        detail = _limit(contained, None)
        return ContainerOutcome(ended, {"reason": "out-of-memory", "signal": 9, "detail": detail}, [], 0, [])
    deadline = time.monotonic() + _VANISHING
    while state.word not in (GONE, AWAY, SILENT) and time.monotonic() < deadline:
        pause(0.1)
        state = ask(contained)
    return ContainerOutcome(ended, dict(_reason(contained, state, end), signal=9), [], 0, [])


def ask(contained: Contained) -> ContainerState:
    try:
        answer = contained.docker.call(["inspect", "--format", "{{json .State}}", contained.wanted.name], ASK_PATIENCE)
    except Refused:
        return ContainerState(SILENT, False)
    if not answer.is_good:
        if answer.code is not None and explain(answer).kind == UNREACHABLE:
            return ContainerState(AWAY, False)
        return ContainerState(GONE if "no such" in words(answer).lower() else SILENT, False)
    found = foreign.parsed(answer.output)
    if not isinstance(found, dict):
        return ContainerState(SILENT, False)
    word = GONE if found.get("Dead") or found.get("Status") == "removing" else str(found.get("Status"))
    return ContainerState(word, bool(found.get("OOMKilled")))


def _written(contained: Contained, seen: float) -> float:
    """When the launcher ended, which may be before that was seen."""
    try:
        return min(seen, stat_below(contained.inside, STATUS).st_mtime)
    except OSError:
        return seen


def _stopped(contained: Contained, end: float) -> Dict[str, Any]:
    """After a signal from outside that the launcher has heard."""
    ending = _reason(contained, ask(contained), end)
    if ending["reason"] != "docker-stopped":  # one that was removed was told to stop first
        ending["reason"] = "container-stopped"
    return ending


def _reason(contained: Contained, state: ContainerState, end: float) -> Dict[str, Any]:
    if state.word == AWAY or _ends_with_daemon(contained, end):
        return {"reason": "docker-stopped", "detail": ""}
    if state.word == SILENT:
        return {"reason": "killed", "detail": "Docker could not be asked: it does not answer."}
    return {"reason": "container-removed" if state.word == GONE else "container-stopped", "detail": ""}


def _ends_with_daemon(contained: Contained, end: float) -> bool:
    """Whether the daemon was started after the container had ended. One that was killed ends what it finds running
    when it comes back, unless it is to restore it."""
    started = contained.docker.started()
    if started >= end:
        return True
    if started <= contained.begun:
        return False
    try:
        answer = contained.docker.call(["info", "--format", "{{.LiveRestoreEnabled}}"], ASK_PATIENCE)
    except Refused:
        return False
    return answer.is_good and answer.output.strip() == "false"


def _limit(contained: Contained, found: Optional[int]) -> str:
    from holdfast.farside.containers.docker_options import memory_limit

    written = memory_limit(contained.wanted.options)
    if written:
        return "The container's limit is %s: raise `memory` in %s." % (written, contained.wanted.file)
    if found:
        return "The container's limit is %d MiB." % (found >> 20)
    return "The container has no limit of its own: it was the machine's memory."
