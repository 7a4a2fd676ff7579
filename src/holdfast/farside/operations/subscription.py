"""Copying a run's append-only files to its followers: by offset, with a checksum of what is there already."""

import os
import re
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from holdfast.farside.engines.owners import pace
from holdfast.farside.run.liveness import wait_until_on_host
from holdfast.farside.system.digests import prefix_checksum
from holdfast.farside.system.frames import CHUNK
from holdfast.farside.system.layout import CONTROL, ENVIRONMENT, JOURNAL, OUTPUT, SAMPLES, checked
from holdfast.farside.system.nofollow import open_below, open_folder
from holdfast.farside.system.refusal import Refused

_METRICS = re.compile(r"[0-9]+-[A-Za-z0-9]{1,64}\.jsonl\Z")
"""What `holdfast.log` calls its files; anything else there is the script's own affair."""

Push = Callable[[Dict[str, Any], bytes], None]


class Subscription:
    """One follower of one run. `have` says, per file, how many bytes the follower has and their checksum."""

    def __init__(self, folder: str, run: str, have: Dict[str, Tuple[int, int]]) -> None:
        self.folder, self.run = folder, run
        self._have = have
        self._sent: Dict[str, Tuple[int, bytes]] = {}
        self._rest = b""
        self.ended = False
        self.problem = ""
        """Why it cannot be judged, as the follower was told."""
        self.looked = time.monotonic()
        self.pace = pace(folder)

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
            descriptor = open_below(self.folder, name)
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
            folder = open_folder(self.folder, "metrics")
        except OSError:
            return []
        try:
            names = sorted(os.listdir(folder))
        finally:
            os.close(folder)
        return ["metrics/" + name for name in names if _METRICS.match(name)]

    def _notice_end(self, data: bytes) -> None:
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        self.ended = self.ended or any(b'"e":"ended"' in line for line in lines)


def _before(descriptor: int, offset: int) -> bytes:
    """The last bytes before a place: if they are not the same any more, the file is another or was cut."""
    begin = max(0, offset - 64)
    return os.pread(descriptor, offset - begin, begin)


def subscribe(folder: str, asked: Dict[str, Any]) -> Subscription:
    if not wait_until_on_host(folder):
        raise Refused("not-found", "The run `%s` is not on this host." % asked["run"])
    have = {}
    for name, (length, checksum) in asked.get("have", {}).items():
        parts = name.split("/")
        for part in parts:
            checked(part)
        have[name] = (int(length), int(checksum))
    return Subscription(folder, asked["run"], have)
