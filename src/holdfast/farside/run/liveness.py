"""Whether a run is alive, and what is written down of one that died without a word."""

import errno
import os
import signal
import time
from typing import Any, Dict, List, Sequence, Set

from holdfast.farside.engines import direct
from holdfast.farside.engines.direct import is_held
from holdfast.farside.engines.engine import DIRECT, GONE, PREEMPTED, QUEUED, RUNNING, UNKNOWN, EngineLook
from holdfast.farside.engines.owners import look, owner_of, queued_by, write_owner
from holdfast.farside.run.run_files import take_secrets
from holdfast.farside.run.run_group import group_of
from holdfast.farside.system import kernel, lost_locks
from holdfast.farside.system.files import read_record
from holdfast.farside.system.journal import JournalWriter
from holdfast.farside.system.layout import (
    CANCEL,
    FIFO,
    GUARDIAN_BYTE,
    GUARDIAN_NAME,
    INSIDE,
    JOURNAL,
    LOCK,
    RESERVE,
    STARTER_BYTE,
    SUPERVISOR_BYTE,
    SUPERVISOR_NAME,
    Home,
)
from holdfast.farside.system.lost_locks import LostLocks
from holdfast.farside.system.nofollow import describe, open_plain
from holdfast.farside.system.processes import carrying, descendants, other_guardians, send
from holdfast.farside.system.processes import look as look_at

PATIENCE = 2.0
"""Seconds for a Docker that may hang, while the run's lock is held and all others wait."""
TIDYING = 5.0
"""Seconds that the owner of a run that has ended may take to remove its container."""


def adjudicate(*folders: str) -> Dict[str, OSError]:
    """For each run without an end: notes what its engine says while it waits and, if nothing owns the run any more,
    writes how it ended. A repeat changes nothing. Runs on another machine that shares the home are left alone.

    Returns the runs that cannot be judged, and why: a script may have put a link where a file was, or the disk be
    full. Nothing is ended for these, and the others are judged all the same."""
    open_, unclear = [], {}
    for folder in folders:
        try:
            if _is_open(folder):
                open_.append(folder)
        except OSError as error:
            unclear[folder] = error
    for folder, seen in _look(open_).items():
        try:
            _settle(folder, seen)
        except OSError as error:
            unclear[folder] = error
    return unclear


def lives_on(folder: str) -> bool:
    """Whether it is alive, also after a moment if it has said its last word: then its owner only tidies up. One that
    cannot be judged lives while a process has its lock or its mark."""
    deadline = time.monotonic() + TIDYING
    while is_alive(folder):
        try:
            is_over = not _is_open(folder) and _journal(folder).ended() is not None
        except OSError:
            return _is_used(folder)
        if not is_over or time.monotonic() >= deadline:
            return True
        time.sleep(0.02)
    return False


def is_alive(folder: str) -> bool:
    """Whether it is, waits to be or, on another machine, may be."""
    return bool(alive([folder]))


def alive(folders: Sequence[str]) -> Set[str]:
    """Those that are, or cannot be judged: one question to each engine."""
    found, asked = set(), []
    for folder in folders:
        try:
            if is_held(folder):
                found.add(folder)
            elif _is_open(folder):
                asked.append(folder)
        except OSError:
            found.add(folder)
    return found | {folder for folder, seen in _look(asked).items() if seen.state in (QUEUED, RUNNING, UNKNOWN)}


def has_ended(folder: str) -> bool:
    """Whether it is known to have ended, and nothing of it is alive."""
    try:
        return _journal(folder).ended() is not None and not is_alive(folder)
    except OSError:
        return False


def elsewhere(folder: str) -> str:
    """The name of the machine on which the run of this folder may be alive, if that is not this one."""
    try:
        return direct.elsewhere(_home_of(folder), folder) if owner_of(folder).engine == DIRECT else ""
    except OSError:
        return ""  # its journal cannot be read


def _home_of(folder: str) -> Home:
    return Home(os.path.dirname(os.path.dirname(os.path.dirname(folder))))


def _look(folders: Sequence[str]) -> Dict[str, EngineLook]:
    """One that is being handed to its engine in this moment is about to run, whatever the engine says."""
    found, lost = look(_home_of(folders[0]), folders) if folders else {}, LostLocks()
    for folder, seen in found.items():
        if seen.state not in (GONE, PREEMPTED):
            continue
        try:
            starter = lost_locks.holder(os.path.join(folder, LOCK), STARTER_BYTE, lost)
            if starter is not None or _wake_owners(folder, lost) or is_held(folder):  # made again meanwhile
                found[folder] = EngineLook(RUNNING)
            elif seen.state == GONE and _is_out_of_sight(folder):
                found[folder] = EngineLook(UNKNOWN, "Its lock is gone, and its processes cannot be seen from here.")
        except OSError as error:
            found[folder] = EngineLook(UNKNOWN, describe(error))
    return found


def _is_open(folder: str) -> bool:
    """Whether it has no owner here and no end. Raises OSError for a run that cannot be judged."""
    _refuse_link(folder)
    return not is_held(folder) and _journal(folder).ended() is None


def _refuse_link(folder: str) -> None:
    if os.path.islink(folder):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), folder)


def _is_used(folder: str) -> bool:
    """Of a run that cannot be judged: whether anything has its lock, or carries its mark."""
    try:
        if not os.path.islink(folder) and is_held(folder):
            return True
    except OSError:
        pass  # the lock is what is odd
    if elsewhere(folder) or LostLocks().users(folder, (GUARDIAN_BYTE, SUPERVISOR_BYTE, STARTER_BYTE)):
        return True
    plan = read_record(os.path.join(folder, "plan.json")) or {}
    generation = str(plan.get("generation", ""))
    return bool(generation and carrying(_mark(generation)))


def _mark(generation: str) -> bytes:
    return b"HOLDFAST_GENERATION=" + generation.encode("ascii", "replace")


def _wake_owners(folder: str, lost: LostLocks) -> bool:
    """Signals the run's owners to make their lock again, if a cleaner took the file. Returns whether it has owners."""
    path = os.path.join(folder, LOCK)
    owners = {lost.holder(path, byte) for byte in (GUARDIAN_BYTE, SUPERVISOR_BYTE)} - {None}
    for process in filter(None, (look_at(pid) for pid in owners if pid)):
        if process.name in (GUARDIAN_NAME, SUPERVISOR_NAME):  # not an agent, which it would end
            send(process, signal.SIGHUP)
    return bool(owners)


def _is_out_of_sight(folder: str) -> bool:
    """Whether the lock that the run was begun with is gone, and its owners are in another pid namespace: that nothing
    is found then proves nothing."""
    created = _created(folder)
    if created.get("namespace", 0) in (0, kernel.pid_namespace()) or created.get("boot") != kernel.boot_id():
        return False
    try:
        return os.lstat(os.path.join(folder, LOCK)).st_ino != created.get("lock")
    except OSError:
        return True


def wait_until_on_host(folder: str) -> bool:
    """Whether anything is here by which a run could be judged. Where a cleaner took the folder of a living run, this
    wakes its owners, and waits up to `TIDYING` seconds until they have made it again."""
    deadline = time.monotonic() + TIDYING
    while not os.path.islink(folder) and not _has_any(folder, (JOURNAL, LOCK)):
        if not _wake_owners(folder, LostLocks()):
            return False
        if time.monotonic() > deadline:
            return True
        time.sleep(0.02)
    return True


def _has_any(folder: str, names: Sequence[str]) -> bool:
    return any(os.path.lexists(os.path.join(folder, name)) for name in names)


def _settle(folder: str, seen: EngineLook) -> None:
    if seen.state == RUNNING:
        return
    journal = _journal(folder)
    waits_for = queued_by(journal.events())
    if seen.state == UNKNOWN and not waits_for:
        return
    if not os.path.lexists(os.path.join(folder, LOCK)) and not _created(folder):
        return  # nothing here says whose it is, or where
    descriptor = open_plain(os.path.join(folder, LOCK), os.O_RDWR | os.O_CREAT)
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
    cancel = read_record(os.path.join(folder, CANCEL))
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


def _created(folder: str) -> Dict[str, Any]:
    return next((event for event in _journal(folder).events() if event["e"] == "created"), {})


def _write_end(folder: str, journal: JournalWriter) -> None:
    boot = _created(folder).get("boot")
    if boot and boot != kernel.boot_id():
        journal.append("ended", reason="host-rebooted", code=None, signal=None, detail="", by="agent")
        if _is_contained(folder):
            _remove_container(folder)
        return
    _end_what_is_left(folder, journal)
    detail = "Its guardian was gone too; what was left of the run was looked for by its mark."
    journal.append("ended", reason="supervisor-died", code=None, signal=None, detail=detail, by="agent")


def _end_what_is_left(folder: str, journal: JournalWriter) -> None:
    generation = str(_created(folder).get("generation", ""))
    spared = other_guardians(_home_of(folder), folder)
    killed: List[List[Any]] = []
    if generation:
        below = {each.pid for pid in spared for each in descendants(pid, set)} | spared
        for process in carrying(_mark(generation)):
            if process.pid not in below and send(process, 9):  # a run that this one started has its mark
                killed.append([process.pid, process.name, "SIGKILL"])
    group = group_of(journal.events())
    killed += [list(each) for each in group.end(lambda: spared)]
    group.remove()
    if _is_contained(folder):
        _remove_container(folder)  # ends what is in it too
        killed += _ended_inside(folder)
    if killed:
        journal.append("swept", processes=killed[:100], count=len(killed))


def _is_contained(folder: str) -> bool:
    return _has_any(folder, (FIFO, INSIDE))


def _journal(folder: str) -> JournalWriter:
    return JournalWriter(os.path.join(folder, JOURNAL), os.path.join(folder, RESERVE))


def _ended_inside(folder: str) -> List[List[Any]]:
    from holdfast.farside.containers.removal import swept

    return swept(folder)


def _remove_container(folder: str) -> None:
    """Waits briefly: the caller has other runs to look at. If Docker needs longer, `clean` removes it."""
    from holdfast.farside.containers.removal import remove

    remove(folder, PATIENCE)
