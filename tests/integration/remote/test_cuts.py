"""Links that break at every stage: every run exists once, its record is right, its bytes are equal."""

from __future__ import annotations

import contextlib
import hashlib
import random
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from integration.remote.benches import SHARE_LINE, FarBench, cut_once_there, far_bench, largest, watched  # noqa: F401 - a fixture
from kit.flows import Way
from kit.suite.moments import Moment
from kit.waiting import wait_for

UNREACHABLE = 245
LINES = 60
LARGE = 3 << 20
SCRIPT = f"""
import hashlib, os, time
{SHARE_LINE}
assert hashlib.sha256(open("data.bin", "rb").read()).hexdigest() == open("data.sha256").read()
for number in range({LINES}):
    print("line", number, "x" * 50, flush=True)
    time.sleep(0.004)
blocks = [hashlib.sha256(b"%d" % number).digest() for number in range({LARGE} // 32)]
open("outputs/large", "wb").write(b"".join(blocks))
for number in range(20):
    open("outputs/small-%d" % number, "w").write("small %d\\n" % number * number)
os.makedirs("outputs/empty/folder")
open("outputs/empty/file", "w").close()
"""
OUTPUT = b"".join(b"line %d %s\n" % (number, b"x" * 50) for number in range(LINES))
OUTPUTS = {
    "large": b"".join(hashlib.sha256(b"%d" % number).digest() for number in range(LARGE // 32)),
    "empty/file": b"",
    **{f"small-{number}": (b"small %d\n" % number) * number for number in range(20)},
}


@pytest.fixture
def bench(far_bench: Callable[..., FarBench], moment: Moment) -> FarBench:  # noqa: F811
    made = far_bench()
    made.write("train.py", SCRIPT)
    data = moment.chance.randbytes(400_000)  # so large that it travels in pieces, and cannot be compressed
    (made.root / "data.bin").write_bytes(data)
    made.write("data.sha256", hashlib.sha256(data).hexdigest())
    return made


STAGES = ("at once", "sending", "created", "output", "ended", "fetching")
"""The progress of a run when the link first breaks, independent of the machine's speed."""


def has_reached(bench: FarBench, stage: str) -> bool:
    with contextlib.suppress(FileNotFoundError):  # files are renamed and removed meanwhile
        return _is_at(bench, stage)
    return False


def _is_at(bench: FarBench, stage: str) -> bool:
    far = next(bench.home.glob("runs/*/*_*"), None)
    match stage:
        case "at once":
            return True
        case "sending":
            return (bench.home / "objects").is_dir()
        case "created":
            return far is not None
        case "output":
            return far is not None and (far / "driver_log").stat().st_size > 0
        case "ended":
            return far is not None and b'"e":"ended"' in (far / "journal.jsonl").read_bytes()
        case _:
            return any(bench.root.glob(".holdfast/runs/*_*/outputs/*")) or any(
                bench.root.glob(".holdfast/runs/*_*/.incoming/*")
            )


class Saboteur:
    """Breaks a link in several ways, one after another, from a stage of the run until the test stops it."""

    def __init__(self, bench: FarBench, moment: Moment, stage: str) -> None:
        self._bench, self._link, self._chance, self._stage = bench, bench.box.link, moment.chance, stage
        self._is_soak = moment.is_soak
        self._over = threading.Event()

    def work(self) -> None:
        while not has_reached(self._bench, self._stage):
            if self._over.wait(0.002):
                return
        for _ in range(self._chance.randint(1, 3)):
            ways = [self._cut, self._cut_after_bytes, self._cut_after_a_while, self._stall, self._refuse]
            self._chance.choice(ways)()
            if self._over.is_set():
                return

    def stop(self) -> None:
        self._over.set()

    def _pause(self, longest: float) -> None:
        if self._is_soak:
            self._over.wait(self._chance.uniform(0.0, longest))

    def _cut(self) -> None:
        self._link.cut(reset=self._chance.random() < 0.5)

    def _cut_after_bytes(self) -> None:
        before = self._link.counters.cuts
        way = self._chance.choice([Way.TO_SERVER, Way.TO_CLIENT, None])
        count = int(10 ** self._chance.uniform(1.0, 6.5))
        self._link.cut_after(count, way, reset=self._chance.random() < 0.5)
        deadline = time.monotonic() + 3.0
        while self._link.counters.cuts == before and time.monotonic() < deadline and not self._over.wait(0.005):
            pass

    def _cut_after_a_while(self) -> None:
        self._pause(0.3)
        self._cut()

    def _stall(self) -> None:
        self._pause(0.2)
        self._link.stall()
        self._pause(0.3)
        if self._chance.random() < 0.7:
            self._cut()
        self._link.resume()

    def _refuse(self) -> None:
        self._pause(0.2)
        self._link.refuse()
        self._cut()
        self._pause(0.3)
        self._link.accept()


@contextlib.contextmanager
def sabotaged(bench: FarBench, moment: Moment, stage: str) -> Iterator[None]:
    bench.box.link.slow(throttle=8e6)
    saboteur = Saboteur(bench, moment, stage)
    thread = threading.Thread(target=saboteur.work)
    thread.start()
    try:
        yield
    finally:
        saboteur.stop()
        thread.join()
        bench.box.link.cut_after(1 << 40)  # instead of a planned one that did not happen


def require_whole(bench: FarBench, run_id: str) -> None:
    """The run completed once, and everything was fetched."""
    record = bench.record(run_id)
    assert (record["status"], record["reason"], record["exit_code"]) == ("Completed", "completed", 0), record
    assert bench.starts().count(run_id) == 1
    near = bench.near(run_id)
    assert (near / "driver_log").read_bytes() == OUTPUT
    found = {
        path.relative_to(near / "outputs").as_posix(): path.read_bytes()
        for path in (near / "outputs").rglob("*")
        if path.is_file()
    }
    assert {name: len(data) for name, data in found.items()} == {name: len(data) for name, data in OUTPUTS.items()}
    assert found == OUTPUTS
    assert record["notes"] == []
    left = [each.name for each in near.iterdir() if "diverged" in each.name or each.name == ".incoming"]
    assert left == []
    wait_for(
        lambda: len(list(bench.home.glob("runs/*/*"))) == len(bench.near_ids()),
        what="what a connection that was cut had begun is gone",
    )


def require_settled(bench: FarBench, run_id: str) -> bool:
    """The run is complete, or it never existed: then False."""
    record = bench.record(run_id)
    if record["reason"] != "not-started":
        require_whole(bench, run_id)
        return True
    assert record["status"] == "Failed"
    assert run_id not in bench.starts()
    return False


@pytest.mark.moments(*STAGES)
def test_a_submit_over_a_link_that_breaks_brings_everything_home(bench: FarBench, moment: Moment) -> None:
    stage = moment.stage
    with sabotaged(bench, moment, stage):
        done = bench.submit("train.py", timeout=120)
    assert len(bench.near_ids()) == 1, done.err
    if require_settled(bench, bench.near_ids()[0]):
        assert (done.code, done.out.encode()) == (0, OUTPUT), done.err
    else:
        assert (stage, done.code) == ("at once", UNREACHABLE), done.err
        assert done.err.count("error: ") == 1


@pytest.mark.moments(*STAGES[2:])
def test_a_later_client_follows_a_run_to_its_end_over_a_link_that_breaks(bench: FarBench, moment: Moment) -> None:
    """Like a laptop that is closed and opened again: several clients, one after another, each with breaks."""
    run_id = bench.start("train.py")
    with sabotaged(bench, moment, moment.stage):
        for _ in range(2):
            with watched(bench.popen("logs", "-f", "-r", run_id)) as follower:
                assert follower.stdout is not None
                wanted = moment.chance.randrange(len(OUTPUT))
                output = follower.stdout.read(wanted)
                assert OUTPUT.startswith(output)
                assert len(output) == wanted or follower.wait() == UNREACHABLE
        done = bench.run("logs", "-f", "-r", run_id, timeout=120)
        while done.code == UNREACHABLE:  # at its first connection: a later one is resumed automatically
            assert "connection lost" not in done.err
            done = bench.run("logs", "-f", "-r", run_id, timeout=120)
    assert (done.code, done.out.encode()) == (0, OUTPUT), done.err
    require_whole(bench, run_id)


@pytest.mark.moments(*STAGES)
def test_a_client_killed_during_a_submit_over_a_link_that_breaks_leaves_the_run_once_or_not_at_all(
    bench: FarBench, moment: Moment
) -> None:
    kill_at, chance = moment.stage, moment.chance
    cut_at = chance.choice(STAGES[: 1 + STAGES.index(kill_at)])
    options = chance.choice([[], ["-a"], ["--wait"]])
    with sabotaged(bench, moment, cut_at), watched(bench.submitting(*options, "train.py")) as client:
        wait_for(lambda: client.poll() is not None or has_reached(bench, kill_at), 60, kill_at)
        moment.pause(0.2)
        client.kill()
    ids = bench.near_ids()
    if not ids:
        assert bench.starts() == []
        assert not list(bench.home.glob("runs/*/*"))
        return
    (run_id,) = ids
    asked = bench.run("status", "-r", run_id)
    assert asked.code == 0, asked.err
    bench.run("logs", "-f", "-r", run_id, timeout=120)
    require_settled(bench, run_id)


SIX_MEGABYTES = random.Random(1).getrandbits(8 * (6 << 20)).to_bytes(6 << 20, "big")
WRITES_SIX_MEGABYTES = """
import random
open("outputs/x", "wb").write(random.Random(1).getrandbits(8 * (6 << 20)).to_bytes(6 << 20, "big"))
"""


@pytest.fixture
def steady(far_bench: Callable[..., FarBench]) -> FarBench:  # noqa: F811
    return far_bench()


def test_what_was_sent_before_a_cut_is_not_sent_again(steady: FarBench) -> None:
    (steady.root / "data.bin").write_bytes(SIX_MEGABYTES)
    steady.write("t.py", "import hashlib\nprint(hashlib.sha256(open('data.bin', 'rb').read()).hexdigest())\n")
    with cut_once_there(steady.box.link, 5 << 20, Way.TO_SERVER, lambda: largest(steady.incoming) > 3 << 20):
        done = steady.submit("t.py")
    assert (done.code, done.out) == (0, hashlib.sha256(SIX_MEGABYTES).hexdigest() + "\n"), done.err
    assert "connection lost" in done.err
    assert steady.box.link.counters.to_server < 9 << 20


def test_what_came_home_before_a_cut_is_not_fetched_again(steady: FarBench) -> None:
    steady.write("t.py", WRITES_SIX_MEGABYTES)
    with cut_once_there(steady.box.link, 5 << 20, Way.TO_CLIENT, lambda: largest(steady.root) > 3 << 20):
        done = steady.submit("t.py")
    assert done.code == 0, done.err
    assert "connection lost" in done.err
    assert (steady.near(steady.near_ids()[0]) / "outputs" / "x").read_bytes() == SIX_MEGABYTES
    assert steady.box.link.counters.to_client < 9 << 20


def test_a_download_that_was_cut_goes_on_where_it_stopped(steady: FarBench) -> None:
    steady.write("t.py", WRITES_SIX_MEGABYTES)
    assert steady.submit("--no-outputs", "t.py").code == 0
    (run_id,) = steady.near_ids()
    with cut_once_there(steady.box.link, 5 << 20, Way.TO_CLIENT, lambda: largest(steady.root) > 3 << 20):
        first = steady.run("history", "download", "-r", run_id, "-d", "there")
    second = first if first.code == 0 else steady.run("history", "download", "-r", run_id, "-d", "there")
    assert second.code == 0, (first.err, second.err)
    (found,) = (steady.root / "there").rglob("x")
    assert found.read_bytes() == SIX_MEGABYTES
    assert steady.box.link.counters.to_client < 9 << 20


def test_a_command_over_a_connection_that_fell_silent_makes_a_new_one(steady: FarBench) -> None:
    """Like a laptop that wakes up in another network: the open connection is dead without notice."""
    steady.write("t.py", "print('works')\n")
    assert steady.submit("t.py").code == 0
    steady.box.link.silence()
    done = steady.submit("t.py")
    assert (done.code, done.out) == (0, "works\n"), done.err


@pytest.mark.waits
def test_a_run_that_is_followed_over_a_link_that_falls_silent_is_taken_up_again(steady: FarBench) -> None:
    steady.write(
        "t.py",
        "import os, time\nprint(1, flush=True)\n"
        "while not os.path.exists(os.environ['HOLDFAST_RUN_DIRECTORY'] + '/go'): time.sleep(0.01)\nprint(2)\n",
    )
    with watched(steady.submitting("t.py")) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == b"1\n"
        steady.box.link.silence()
        (steady.far(steady.near_ids()[0]) / "go").write_text("")
        out, err = client.communicate(timeout=120)
    assert (client.returncode, out) == (0, b"2\n")
    assert b"connection lost" in err
