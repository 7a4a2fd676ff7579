"""Another account that binds abstract sockets, as any account of a machine may."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Iterator

_PROGRAM = """
import json, os, resource, socket, sys, time
given = json.loads(sys.stdin.readline())
resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000))
os.setgroups([])
os.setgid(given["uid"])
os.setuid(given["uid"])
made = []
now = "%016x" % time.clock_gettime_ns(time.CLOCK_BOOTTIME)
for name in given["names"]:
    name = name.replace("{pid}", str(os.getpid())).replace("{time}", now)
    made.append(socket.socket(socket.AF_UNIX, given["kind"]))
    made[-1].bind(b"\\0" + name.encode("latin-1"))
    if given["is_full"]:
        made[-1].listen(0)
        for _ in range(2):
            made.append(socket.socket(socket.AF_UNIX))
            made[-1].setblocking(False)
            made[-1].connect_ex(b"\\0" + name.encode("latin-1"))
print(os.getpid(), flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def squatting(uid: int, *names: bytes, kind: int = socket.SOCK_STREAM, is_full: bool = False) -> Iterator[int]:
    """Until the end, `uid` has bound these names; `{pid}` in them is its process, whose number is returned, and
    `{time}` the moment. `is_full`: the sockets listen, and accept nobody any more."""
    given = {"uid": uid, "names": [each.decode("latin-1") for each in names], "kind": kind, "is_full": is_full}
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", _PROGRAM], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(given) + "\n")
        process.stdin.flush()
        said = process.stdout.readline()
        assert said, "it could not bind them"
        try:
            yield int(said)
        finally:
            process.stdin.close()
            process.wait()
