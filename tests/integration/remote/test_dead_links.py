"""Links that die without a word under a connection of the user's own: ssh's own looks at the link do not count
there."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from remote.benches import FarBench, far_bench, watched  # noqa: F401 - a fixture

IMPATIENT = """
import sys
from holdfast.cli.main import main
from holdfast.workbench.following import follower
follower.PULSE, follower.SILENCE = 0.5, 3.0
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def sockets() -> Iterator[Path]:
    """A path that is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="hf-") as folder:
        yield Path(folder)


@pytest.fixture
def masters(far_bench: Callable[..., FarBench], sockets: Path) -> Iterator[FarBench]:  # noqa: F811
    """A box to which the user keeps a connection open that nobody looks after."""
    bench = far_bench()
    box = bench.box
    box.client.config.write_text(f"ControlPath {sockets}/theirs-%C\n" + box.client.config.read_text())
    ssh = [*shlex.split(box.environment["HOLDFAST_SSH"]), "-i", str(box.key), "-o", "ServerAliveInterval=0"]
    place = ["-p", str(box.link.port), "-l", box.account.name, "127.0.0.1"]
    subprocess.run([*ssh, "-M", "-N", "-f", *place], check=True, capture_output=True, stdin=subprocess.DEVNULL)
    yield bench
    subprocess.run([*ssh, "-O", "exit", *place], capture_output=True, check=False)


def test_a_followed_run_notices_that_the_users_own_connection_died(masters: FarBench) -> None:
    masters.write(
        "t.py", "import os, time\nprint(1, flush=True)\nwhile not os.path.exists('../go'): time.sleep(0.01)\nprint(2)\n"
    )
    argv = [sys.executable, "-c", IMPATIENT, "submit", "-c", masters.box.name, "t.py"]
    before = masters.box.link.counters.connections
    client = subprocess.Popen(
        argv,
        cwd=masters.root,
        env={**os.environ, **masters.box.environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with watched(client):
        assert client.stdout is not None
        assert client.stdout.readline() == b"1\n"
        assert masters.box.link.counters.connections == before, "the user's own connection is used"
        masters.box.link.silence()
        (masters.far(masters.near_ids()[0]) / "go").write_text("")
        out, err = client.communicate(timeout=60)
    assert (client.returncode, out) == (0, b"2\n"), err
    assert b"connection lost (Nothing was heard of" in err
