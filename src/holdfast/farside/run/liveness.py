"""Whether a run is alive, and what is written down of one that died without a word."""

import json
import os
import time
from typing import Any, Dict, List, Optional, Sequence, Set

from holdfast.farside.engines import direct
from holdfast.farside.engines.direct import is_held
from holdfast.farside.engines.engine import DIRECT, GONE, PREEMPTED, QUEUED, RUNNING, UNKNOWN, EngineLook
from holdfast.farside.engines.owners import look, owner_of, queued_by, write_owner
from holdfast.farside.run.run_files import take_secrets
from holdfast.farside.system import kernel
from holdfast.farside.system.journal import JournalWriter
from holdfast.farside.system.layout import (
    CANCEL,
    FIFO,
    GUARDIAN_BYTE,
    INSIDE,
    JOURNAL,
    RESERVE,
    STARTER_BYTE,
    SUPERVISOR_BYTE,
    Home,
)
from holdfast.farside.system.processes import carrying, send

PATIENCE = 2.0
"""Seconds for a Docker that may hang, while the run's lock is held and all others wait."""
TIDYING = 5.0
"""Seconds that the owner of a run that has ended may take to remove its container."""


def adjudicate(*folders: str) -> None:
    """For each run without an end: notes what its engine says while it waits and, if nothing owns the run any more,
    writes how it ended. A repeat changes nothing. Runs on another machine that shares the home are left alone."""
    open_ = [each for each in folders if not is_held(each) and _journal(each).ended() is None]
    for folder, seen in _look(open_).items():
        _settle(folder, seen)


def lives_on(folder: str) -> bool:
    """Whether it is alive, also after a moment if it has said its last word: then its owner only tidies up."""
    deadline = time.monotonic() + TIDYING
    while is_alive(folder):
        if time.monotonic() >= deadline or _journal(folder).ended() is None:
            return True
        time.sleep(0.02)
    return False


def is_alive(folder: str) -> bool:
    """Whether it is, waits to be or, on another machine, may be."""
    return bool(alive([folder]))


def alive(folders: Sequence[str]) -> Set[str]:
    """Those that are: one question to each engine."""
    held = {each for each in folders if is_held(each)}
    asked = [each for each in folders if each not in held and _journal(each).ended() is None]
    return held | {folder for folder, seen in _look(asked).items() if seen.state in (QUEUED, RUNNING, UNKNOWN)}


def elsewhere(folder: str) -> str:
    """The name of the machine on which the run of this folder may be alive, if that is not this one."""
    return direct.elsewhere(_home_of(folder), folder) if owner_of(folder).engine == DIRECT else ""


def _home_of(folder: str) -> Home:
    return Home(os.path.dirname(os.path.dirname(os.path.dirname(folder))))


def _look(folders: Sequence[str]) -> Dict[str, EngineLook]:
    """One that is being handed to its engine in this moment is about to run, whatever the engine says."""
    found = look(_home_of(folders[0]), folders) if folders else {}
    for folder, seen in found.items():
        path = os.path.join(folder, "lock")
        if seen.state == GONE and kernel.lock_holder(path, STARTER_BYTE) is not None:
            found[folder] = EngineLook(RUNNING)
    return found


def _settle(folder: str, seen: EngineLook) -> None:
    if seen.state == RUNNING:
        return
    journal = _journal(folder)
    waits_for = queued_by(journal.events())
    if seen.state == UNKNOWN and not waits_for:
        return
    descriptor = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not kernel.lock(descriptor, GUARDIAN_BYTE) or not kernel.lock(descriptor, SUPERVISOR_BYTE):
            return
        events = journal.events()
        if any(event["e"] == "ended" for event in events):
            return
        if seen.state in (QUEUED, UNKNOWN):
            if queued_by(events):
                _note_waiting(folder, journal, seen)
        elif owner_of(folder).engine == DIRECT:
            _write_end(folder, journal)
        else:
            _write_engines_end(folder, journal, seen)
    finally:
        os.close(descriptor)


def _note_waiting(folder: str, journal: JournalWriter, seen: EngineLook) -> None:
    """Write the engine's answer to the journal, unless it repeats the last one."""
    owner = owner_of(folder)
    if seen.handle and not owner.handle:
        write_owner(folder, owner._replace(handle=seen.handle))
    said = seen.said if seen.state == QUEUED else "`%s` could not be asked: %s" % (owner.engine, seen.said)
    texts = [event.get("text") for event in journal.events() if event["e"] == "queued"]
    if texts[-1:] != [said]:
        journal.append("queued", engine=owner.engine, text=said)


def _write_engines_end(folder: str, journal: JournalWriter, seen: EngineLook) -> None:
    """Of a run that its engine has no more, and that did not say how it ended."""
    owner, has_begun = owner_of(folder), not queued_by(journal.events())
    take_secrets(folder)
    if has_begun:
        _end_what_is_left(folder, journal)
    cancel = _read_request(folder, CANCEL)
    reason, detail = "engine-lost", seen.said or "`%s` does not know it any more." % owner.engine
    if seen.state == PREEMPTED:
        reason, detail = "preempted", seen.said
    elif cancel is not None and not has_begun:
        reason, detail = "canceled", str(cancel.get("detail", ""))
    elif not owner.handle:
        reason, detail = "not-started", "`%s` does not know it." % owner.engine
    elif not has_begun:
        detail += " It had not started."
    journal.append("ended", reason=reason, code=None, signal=None, detail=detail, by="agent")


def _read_request(folder: str, name: str) -> Optional[Dict[str, Any]]:
    """What a client wrote there that it wants; None if it did not."""
    try:
        with open(os.path.join(folder, name)) as source:
            found = json.load(source)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _write_end(folder: str, journal: JournalWriter) -> None:
    created = next((event for event in journal.events() if event["e"] == "created"), {})
    boot = created.get("boot")
    if boot and boot != kernel.boot_id():
        journal.append("ended", reason="host-rebooted", code=None, signal=None, detail="", by="agent")
        if _is_contained(folder):
            _remove_container(folder)
        return
    _end_what_is_left(folder, journal)
    detail = "Its guardian was gone too; what was left of the run was looked for by its mark."
    journal.append("ended", reason="supervisor-died", code=None, signal=None, detail=detail, by="agent")


def _end_what_is_left(folder: str, journal: JournalWriter) -> None:
    generation = next((str(event.get("generation")) for event in journal.events() if event["e"] == "created"), "")
    killed: List[List[Any]] = []
    if generation:
        for process in carrying(b"HOLDFAST_GENERATION=" + generation.encode("ascii", "replace")):
            if send(process, 9):
                killed.append([process.pid, process.name, "SIGKILL"])
    if _is_contained(folder):
        _remove_container(folder)  # ends what is in it too
        killed += _ended_inside(folder)
    if killed:
        journal.append("swept", processes=killed[:100], count=len(killed))


def _is_contained(folder: str) -> bool:
    return any(os.path.lexists(os.path.join(folder, name)) for name in (FIFO, INSIDE))


def _journal(folder: str) -> JournalWriter:
    return JournalWriter(os.path.join(folder, JOURNAL), os.path.join(folder, RESERVE))


def _ended_inside(folder: str) -> List[List[Any]]:
    from holdfast.farside.containers.removal import swept

    return swept(folder)


def _remove_container(folder: str) -> None:
    """Waits briefly: the caller has other runs to look at. If Docker needs longer, `clean` removes it."""
    from holdfast.farside.containers.removal import remove

    remove(folder, PATIENCE)
