"""A host whose link is a relay on this machine: it counts the bytes of both directions and breaks where a test says.

The far side has another home and uses nothing of the client's disk: everything travels through the protocol.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from holdfast.hosts.connection import Connection, new_nonce
from holdfast.hosts.host import Local


class Traffic(NamedTuple):
    """Bytes of one connection, from the client (`up`) and to it (`down`)."""

    up: int
    down: int


class Cut(NamedTuple):
    """Bytes after which the link breaks, in one direction or the other."""

    up: int | None = None
    down: int | None = None


class Relayed(Local):
    """Each connection takes the next of `cuts`; when none is left, it is not cut."""

    name = "relayed"
    is_here = False

    def __init__(self, home: Path, environment: Mapping[str, str], reports: Path, cuts: Sequence[Cut] = ()) -> None:
        super().__init__(home, environment)
        reports.mkdir(exist_ok=True)
        self.reports, self.cuts = reports, list(cuts)
        self.connections = 0

    def connect(self, may_ask: bool = True) -> Connection:
        cut = self.cuts.pop(0) if self.cuts else Cut()
        nonce = new_nonce()
        report = self.reports / f"{self.connections:03}.json"
        self.connections += 1
        relay = [sys.executable, __file__, str(report), json.dumps(cut)]
        return Connection([*relay, *self.argv(nonce)], nonce, self._environment)

    def traffic(self) -> list[Traffic]:
        """Of all connections; waits until the last one has ended."""
        from kit.waiting import wait_for  # not at the top: this file is the relay's program, too

        wait_for(lambda: len(list(self.reports.glob("*.json"))) == self.connections, what="the end of each connection")
        return [Traffic(*json.loads(each.read_text())) for each in sorted(self.reports.glob("*.json"))]


def _main(report: str, cut: Sequence[int | None], argv: list[str]) -> None:
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    counts = [0, 0]
    over = threading.Event()

    def pump(number: int, source: BinaryIO, target: BinaryIO) -> None:
        limit = cut[number]
        while data := source.read1(1 << 16):  # type: ignore[attr-defined] # streams of processes are buffered readers
            data = data if limit is None else data[: limit - counts[number]]
            counts[number] += len(data)
            target.write(data)
            target.flush()
            if counts[number] == limit:
                child.kill()
                break
        target.close()
        if number == 1 or counts[number] == limit:
            over.set()

    ways = ((0, sys.stdin.buffer, child.stdin), (1, child.stdout, sys.stdout.buffer))
    for way in ways:
        threading.Thread(target=pump, args=way, daemon=True).start()
    over.wait()
    Path(report + ".new").write_text(json.dumps(counts))
    Path(report + ".new").replace(report)
    sys.stderr.write("the link was cut\n")
    sys.stderr.flush()
    child.kill()
    import os

    os._exit(1)


if __name__ == "__main__":
    _main(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3:])
