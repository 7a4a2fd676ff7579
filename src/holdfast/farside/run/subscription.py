"""Copying a run's append-only files to whoever follows it: by offset, with a checksum of what is there already."""

import os
import re
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from holdfast.farside import kernel
from holdfast.farside.frames import CHUNK
from holdfast.farside.layout import (
    CONTROL,
    ENVIRONMENT,
    FIFO,
    GUARDIAN_BYTE,
    INSIDE,
    JOURNAL,
    OUTPUT,
    SAMPLES,
    SUPERVISOR_BYTE,
    Home,
    checked,
)
from holdfast.farside.machine import identity
from holdfast.farside.prefix import prefix_checksum
from holdfast.farside.refusal import Refused
from holdfast.farside.run.journal import Journal
from holdfast.farside.run.processes import carrying, send

METRICS = re.compile(r"[0-9]+-[A-Za-z0-9]{1,64}\.jsonl\Z")
"""What `holdfast.log` calls its files; anything else there is the script's own affair."""

PATIENCE = 2.0
"""Seconds for a Docker that may hang, while the run's lock is held and everybody waits."""
TIDYING = 5.0
"""Seconds that the owner of a run that has ended may take to remove its container."""

Push = Callable[[Dict[str, Any], bytes], None]


class Subscription:
    """One follower of one run. `have` says, per file, how many bytes the follower has and their checksum."""

    def __init__(self, folder: str, run: str, have: Dict[str, Tuple[int, int]]) -> None:
        self.folder, self.run = folder, run
        self._have = have
        self._sent: Dict[str, Tuple[int, bytes]] = {}
        self._rest = b""
        self.ended = False
        self.looked = time.monotonic()

    def push(self, send_frame: Push) -> None:
        """Send all that is new. The journal's length is taken before the other files are sent, and it is sent after
        them up to that length, so that a follower who sees the run's end has its output complete."""
        try:
            length = os.stat(os.path.join(self.folder, JOURNAL)).st_size
        except OSError:
            length = 0
        for name in [OUTPUT, CONTROL, ENVIRONMENT, SAMPLES] + self._metric_files():
            self._send(name, None, send_frame)
        self._send(JOURNAL, length, send_frame)

    def _send(self, name: str, limit: Optional[int], send_frame: Push) -> None:
        try:
            descriptor = os.open(os.path.join(self.folder, name), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return
        try:
            offset = self._begin(name, descriptor, send_frame)
            end = os.fstat(descriptor).st_size if limit is None else limit
            while offset < end:
                data = os.pread(descriptor, min(CHUNK, end - offset), offset)
                if not data:
                    break
                send_frame({"push": "data", "run": self.run, "file": name, "offset": offset}, data)
                offset += len(data)
                if name == JOURNAL:
                    self._notice_end(data)
            self._sent[name] = (offset, _before(descriptor, offset))
        finally:
            os.close(descriptor)

    def _begin(self, name: str, descriptor: int, send_frame: Push) -> int:
        """Where to go on. A follower whose bytes are not the beginning of this file is told to start it again."""
        if name in self._sent:
            sent, before = self._sent[name]
            if _before(descriptor, sent) == before:
                return sent
        else:
            length, checksum = self._have.get(name, (0, 0))
            if length == 0 or prefix_checksum(descriptor, length) == checksum:
                if name == JOURNAL:
                    self._notice_end(os.pread(descriptor, length, 0))
                return length
        send_frame({"push": "restart", "run": self.run, "file": name}, b"")
        return 0

    def _metric_files(self) -> List[str]:
        try:
            names = sorted(os.listdir(os.path.join(self.folder, "metrics")))
        except OSError:
            return []
        return ["metrics/" + name for name in names if METRICS.match(name)]

    def _notice_end(self, data: bytes) -> None:
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        self.ended = self.ended or any(b'"e":"ended"' in line for line in lines)


def _before(descriptor: int, offset: int) -> bytes:
    """The last bytes before a place: if they are not the same any more, the file is another or was cut."""
    begin = max(0, offset - 64)
    return os.pread(descriptor, offset - begin, begin)


def subscribe(folder: str, asked: Dict[str, Any]) -> Subscription:
    if not os.path.isdir(folder):
        raise Refused("not-found", "The run `%s` is not on this host." % asked["run"])
    have = {}
    for name, (length, checksum) in asked.get("have", {}).items():
        parts = name.split("/")
        for part in parts:
            checked(part)
        have[name] = (int(length), int(checksum))
    return Subscription(folder, asked["run"], have)


def adjudicate(folder: str) -> None:
    """If a run has neither guardian nor supervisor and no end, write down what happened to it. A repeat changes
    nothing. Of a run on another machine, in a home that both share, nothing can be said here."""
    path = os.path.join(folder, "lock")
    if is_alive(folder):
        return
    journal = Journal(os.path.join(folder, JOURNAL), os.path.join(folder, "reserve"))
    if journal.ended() is not None:
        return
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not kernel.lock(descriptor, GUARDIAN_BYTE) or not kernel.lock(descriptor, SUPERVISOR_BYTE):
            return
        if journal.ended() is None:
            _write_end(folder, journal)
    finally:
        os.close(descriptor)


def lives_on(folder: str) -> bool:
    """Whether it is alive, also after a moment if it has said its last word: then its owner only tidies up."""
    deadline = time.monotonic() + TIDYING
    while is_alive(folder):
        if time.monotonic() >= deadline or Journal(os.path.join(folder, JOURNAL)).ended() is None:
            return True
        time.sleep(0.02)
    return False


def is_alive(folder: str) -> bool:
    """Whether it is or, on another machine, may be."""
    path = os.path.join(folder, "lock")
    is_held = any(kernel.lock_holder(path, byte) is not None for byte in (GUARDIAN_BYTE, SUPERVISOR_BYTE))
    return is_held or bool(elsewhere(folder))


def elsewhere(folder: str) -> str:
    """The name of the machine on which the run of this folder may be alive, if that is not this one."""
    journal = Journal(os.path.join(folder, JOURNAL))
    created = _created(journal)
    if created is None or journal.ended() is not None:
        return ""
    return identity.elsewhere(created, Home(os.path.dirname(os.path.dirname(os.path.dirname(folder)))))


def _created(journal: Journal) -> Optional[Dict[str, Any]]:
    return next((event for event in journal.events() if event["e"] == "created"), None)


def _write_end(folder: str, journal: Journal) -> None:
    created = _created(journal)
    boot = created.get("boot") if created else None
    is_contained = any(os.path.lexists(os.path.join(folder, name)) for name in (FIFO, INSIDE))
    if boot and boot != kernel.boot_id():
        journal.append("ended", reason="host-rebooted", code=None, signal=None, detail="", by="agent")
        if is_contained:
            _remove_container(folder)
        return
    generation = str(created.get("generation")) if created else ""
    killed: List[List[Any]] = []
    if generation:
        for process in carrying(b"HOLDFAST_GENERATION=" + generation.encode("ascii", "replace")):
            if send(process, 9):
                killed.append([process.pid, process.name, "SIGKILL"])
    if is_contained:
        _remove_container(folder)  # ends what is in it too
        killed += _ended_inside(folder)
    if killed:
        journal.append("swept", processes=killed[:100], count=len(killed))
    detail = "Its guardian was gone too; what was left of the run was looked for by its mark."
    journal.append("ended", reason="supervisor-died", code=None, signal=None, detail=detail, by="agent")


def _ended_inside(folder: str) -> List[List[Any]]:
    from holdfast.farside.containers.ending import swept

    return swept(folder)


def _remove_container(folder: str) -> None:
    """Briefly: whoever asked for this run asked for others too. What Docker keeps now is for `clean`."""
    from holdfast.farside.containers.ending import remove

    remove(folder, PATIENCE)
