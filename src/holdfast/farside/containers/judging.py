"""How a run in a container ended: from the launcher's last words, or, where it had none, from Docker's."""

import json
import os
import signal
import time
from typing import Any, Dict, List, NamedTuple, Optional

from holdfast.farside.containers.complaints import UNREACHABLE, explain, words
from holdfast.farside.containers.contained import Contained, sign
from holdfast.farside.containers.ending import LAST_WORDS, Pause, is_launcher_alive, wait_for_launcher
from holdfast.farside.containers.inside import STATUS
from holdfast.farside.refusal import Refused
from holdfast.farside.run.children import Exit

ASK_PATIENCE = 20.0
_VANISHING = 1.5
"""Seconds in which a container that was removed from outside is gone for Docker too."""
_GIVEN_UP = 10.0


class Outcome(NamedTuple):
    """`exit` is the script's own. `ending` is the journal's last line where the exit alone does not tell it."""

    exit: Exit
    ending: Optional[Dict[str, Any]]
    swept: List[List[Any]]
    total: int
    notes: List[str]


class State(NamedTuple):
    """What Docker says of a container. `word`: its state, or `gone`, or `silent` where the daemon does not answer."""

    word: str
    is_out_of_memory: bool


def finish(contained: Contained, pause: Pause, is_stopped: bool) -> Outcome:
    """When the process that stands for the script has ended. Nothing runs in the container when this returns.
    `is_stopped`: the run was asked to end, so that what comes from outside explains nothing."""
    contained.hear()
    status = last_words(contained) or _awaited(contained, pause)
    if status is None:
        return _without_words(contained, pause, is_stopped)
    code, number = status["code"], status["signal"]
    ended = Exit(code, number)
    swept, total = status["swept"], int(status["count"])
    limit = _limit(contained, status["memory_limit"])
    kills = status["memory_kills"]
    if is_stopped:
        return Outcome(ended, None, swept, total, [])
    if number == signal.SIGKILL and not status["owned"]:
        detail = "The process that stands for the container on the machine was gone."
        return Outcome(ended, {"reason": "killed", "signal": number, "detail": detail}, swept, total, [])
    if number == signal.SIGKILL and kills:
        return Outcome(ended, {"reason": "out-of-memory", "signal": number, "detail": limit}, swept, total, [])
    notes = []
    if kills:
        notes.append("The kernel ended %s of the run because memory ran out. %s" % (_processes(kills), limit))
    if status["outside"] is not None:
        ending = dict(_stopped(contained, status["outside"]), code=code, signal=number)
        return Outcome(ended, ending, swept, total, notes)
    return Outcome(ended, None, swept, total, notes)


def last_words(contained: Contained) -> Optional[Dict[str, Any]]:
    """What the launcher wrote last, or said where the disk had no room for it."""
    try:
        with open(os.path.join(contained.inside, STATUS)) as source:
            found: Dict[str, Any] = json.load(source)
            return found
    except (OSError, ValueError):
        pass
    said = [event["status"] for event in contained.said if event["e"] == "status"]
    return said[-1] if said else None


def _awaited(contained: Contained, pause: Pause) -> Optional[Dict[str, Any]]:
    """The process that stood for it may have been killed: the launcher is ending everything."""
    wait_for_launcher(contained.inside, LAST_WORDS, pause)
    return last_words(contained)


def _without_words(contained: Contained, pause: Pause, is_stopped: bool) -> Outcome:
    """The launcher is dead, or frozen and will be: it was killed together with all that ran in the container."""
    ended = Exit(None, int(signal.SIGKILL))
    state = ask(contained)
    if is_launcher_alive(contained.inside):
        contained.remove()
        if not wait_for_launcher(contained.inside, _GIVEN_UP, pause):
            note = "Processes of the container `%s` could not be ended." % contained.wanted.name
            return Outcome(ended, None if is_stopped else {"reason": "killed"}, [], 0, [note])
    if is_stopped:
        return Outcome(ended, None, [], 0, [])
    if state.is_out_of_memory:
        detail = _limit(contained, None)
        return Outcome(ended, {"reason": "out-of-memory", "signal": 9, "detail": detail}, [], 0, [])
    deadline = time.monotonic() + _VANISHING
    while state.word not in ("gone", "silent") and time.monotonic() < deadline:
        pause(0.1)
        state = ask(contained)
    return Outcome(ended, dict(_reason(contained, state), signal=9), [], 0, [])


def ask(contained: Contained) -> State:
    try:
        answer = contained.docker.call(["inspect", "--format", "{{json .State}}", contained.wanted.name], ASK_PATIENCE)
    except Refused:
        return State("silent", False)
    if not answer.is_good:
        is_silent = answer.code is None or explain(answer).kind == UNREACHABLE
        return State("silent" if is_silent or "no such" not in words(answer).lower() else "gone", False)
    try:
        found = json.loads(answer.output)
    except ValueError:
        return State("silent", False)
    word = "gone" if found.get("Dead") or found.get("Status") == "removing" else str(found.get("Status"))
    return State(word, bool(found.get("OOMKilled")))


def _stopped(contained: Contained, number: int) -> Dict[str, Any]:
    """After a signal from outside that the launcher has heard."""
    ending = _reason(contained, ask(contained))
    if ending["reason"] == "container-removed":  # it was told to stop first
        ending["reason"] = "container-stopped"
    return ending


def _reason(contained: Contained, state: State) -> Dict[str, Any]:
    if state.word == "silent" or sign(contained.docker) != contained.before:
        return {"reason": "docker-stopped", "detail": ""}
    return {"reason": "container-removed" if state.word == "gone" else "container-stopped", "detail": ""}


def _limit(contained: Contained, found: Optional[int]) -> str:
    from holdfast.farside.containers.options import memory_limit

    written = memory_limit(contained.wanted.options)
    if written:
        return "The container's limit is %s: `memory` in %s." % (written, contained.wanted.file)
    if found:
        return "The container's limit is %d MiB." % (found >> 20)
    return "The container has no limit of its own: it was the machine's memory."


def _processes(count: int) -> str:
    return "a process" if count == 1 else "%d processes" % count
