"""Links that die silently under a connection of the user's own, where ssh's own checks do not count."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.remote.benches import FarBench, far_bench, watched  # noqa: F401 - a fixture
from kit.waiting import wait_for

IMPATIENT = """
import sys
from holdfast.cli.main import main
from holdfast.workbench.reach import link
link.PULSE, link.SILENCE = 0.5, 3.0
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def sockets() -> Iterator[Path]:
    """A path short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="hf-") as folder:
        yield Path(folder)


@pytest.fixture
def masters(far_bench: Callable[..., FarBench], sockets: Path) -> Iterator[FarBench]:  # noqa: F811
    """A box with an open connection of the user's own that nothing monitors."""
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
        "t.py",
        "import os, time\nprint(1, flush=True)\n"
        "while not os.path.exists(os.environ['HOLDFAST_RUN_DIRECTORY'] + '/go'): time.sleep(0.01)\nprint(2)\n",
    )
    before = masters.box.link.counters.connections
    with watched(_impatient(masters, "submit", "-c", masters.box.name, "t.py")) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == b"1\n"
        assert masters.box.link.counters.connections == before, "the user's own connection is used"
        masters.box.link.silence()
        (masters.far(masters.near_ids()[0]) / "go").write_text("")
        out, err = client.communicate(timeout=60)
    assert (client.returncode, out) == (0, b"2\n"), err
    assert b"connection lost (Nothing was heard of" in err


@pytest.mark.waits
def test_outputs_on_their_way_home_notice_it_too_and_go_on_where_they_were(masters: FarBench) -> None:
    masters.write("t.py", "import os\nopen('outputs/big', 'wb').write(os.urandom(6 << 20))\n")
    link = masters.box.link
    link.slow(throttle=1e6)  # three seconds for the other half: a busy machine is in time to cut it
    before = link.counters
    with watched(_impatient(masters, "submit", "-c", masters.box.name, "t.py")) as client:
        wait_for(lambda: link.counters.to_client - before.to_client > 3 << 20, what="half of the file")
        assert link.counters.connections == before.connections, "the user's own connection is used"
        link.silence()
        out, err = client.communicate(timeout=60)
    assert client.returncode == 0, (out, err)
    assert b"connection lost (Nothing was heard of" in err
    (run,) = masters.near_ids()
    near = masters.root / ".holdfast" / "runs" / run / "outputs" / "big"
    assert near.read_bytes() == (masters.there(run) / "outputs" / "big").read_bytes()
    assert link.counters.to_client - before.to_client < 9 << 20, "what was at home did not travel again"


@pytest.mark.waits
def test_a_download_over_it_ends_with_an_error_and_the_next_one_works(masters: FarBench) -> None:
    masters.write("t.py", "import os\nopen('aside', 'wb').write(os.urandom(4 << 20))\n")
    assert masters.submit("--outputs-limit", "0", "t.py").code == 0
    (run,) = masters.near_ids()
    link = masters.box.link
    link.slow(throttle=1e6)
    before = link.counters.to_client
    with watched(_impatient(masters, "history", "download", "-r", run, "--artifact", "aside", "-d", "here")) as client:
        wait_for(lambda: link.counters.to_client - before > 1 << 20, what="a part of the file")
        link.silence()
        _, err = client.communicate(timeout=60)
    assert client.returncode == 245, err
    assert b"Nothing was heard of" in err
    assert b"Traceback" not in err
    done = masters.run("history", "download", "-r", run, "--artifact", "aside", "-d", "here")
    assert done.code == 0, done.err
    (copy,) = (masters.root / "here").rglob("aside")
    assert copy.read_bytes() == (masters.there(run) / "aside").read_bytes()


def test_a_slow_link_is_not_a_dead_one(masters: FarBench) -> None:
    """A piece of a file takes longer than the accepted silence."""
    masters.write("t.py", "import os\nopen('outputs/big', 'wb').write(os.urandom(1 << 20))\n")
    assert masters.submit("--no-outputs", "t.py").code == 0
    (run,) = masters.near_ids()
    masters.box.link.slow(throttle=1.5e5)
    with watched(_impatient(masters, "history", "download", "-r", run, "-d", "here")) as client:
        _, err = client.communicate(timeout=60)
    assert client.returncode == 0, err
    assert b"lost" not in err


def _impatient(bench: FarBench, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", IMPATIENT, *words],
        cwd=bench.root,
        env={**os.environ, **bench.box.environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
