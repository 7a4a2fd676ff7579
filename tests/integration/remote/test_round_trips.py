"""How often a submit waits for the box: each wait costs a round trip, and they add up on a far link."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable

import pytest

from integration.remote.benches import FarBench, far_bench, watched  # noqa: F401 - a fixture
from kit import processes
from kit.waiting import wait_for

DELAY = 0.05
"""Seconds one way: large compared with the work of both ends, so that overlaps do not count as turns."""
SCRIPT = "print('first', flush=True)\nopen('outputs/x', 'w').write('y' * 1000)\n"


@pytest.fixture
def warm(far_bench: Callable[..., FarBench]) -> FarBench:  # noqa: F811
    """A box that has the far side and the snapshot, with our own connection to it open."""
    bench = far_bench()
    bench.write("t.py", SCRIPT)
    for number in range(200):
        bench.write(f"folder{number % 10}/file{number}.txt", f"text {number}\n" * number)
    assert bench.submit("t.py").code == 0
    bench.box.link.slow(delay=DELAY)
    return bench


def _turns_until_the_first_line(bench: FarBench) -> int:
    before = bench.box.link.turns
    with watched(bench.submitting("t.py")) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == b"first\n"
        turns = bench.box.link.turns - before
        client.communicate(timeout=60)
    assert client.returncode == 0
    return turns


TRIES = 5
"""On a busy machine one end is late sometimes, which looks like a turn. Necessary turns are in every try."""


def _is_enough(measured: Callable[[], float], limit: float) -> bool:
    """Whether one of a few tries keeps the limit."""
    return any(measured() <= limit for _ in range(TRIES))


def test_a_warm_submit_has_its_first_line_after_four_round_trips(warm: FarBench) -> None:
    assert _is_enough(lambda: _turns_until_the_first_line(warm), 4)


def test_a_changed_file_costs_no_round_trip_more(warm: FarBench) -> None:
    numbers = itertools.count()

    def changed() -> int:
        warm.write("folder3/file3.txt", f"changed {next(numbers)}\n")
        warm.write(f"new{next(numbers)}.txt", "new\n")
        return _turns_until_the_first_line(warm)

    assert _is_enough(changed, 4)


def test_a_new_connection_costs_no_more_round_trips_of_ours(warm: FarBench) -> None:
    """ssh's own login time is measured beside it."""

    def beyond_the_login() -> int:
        _cut(warm)
        before = warm.box.link.turns
        warm.box.client.run("gpu1", "true")
        login = warm.box.link.turns - before
        return _turns_until_the_first_line(warm) - login

    assert _is_enough(beyond_the_login, 3)


def _cut(bench: FarBench) -> None:
    """Cut the link and wait until our own connection has noticed: the next submit finds none."""
    wait_for(lambda: _has_master(bench), what="a process keeps the connection open")
    bench.box.link.cut()
    wait_for(lambda: not _has_master(bench), what="it has noticed")


def _has_master(bench: FarBench) -> bool:
    """It has written a title over its arguments, and its working directory is unchanged."""
    masters = [each for each in processes.every() if each.argv[:1] and each.argv[0].startswith("ssh: ")]
    return any(each.folder == str(bench.root) for each in masters)


def _of_client(bench: FarBench) -> dict[int, list[str]]:
    """Every process of this test's client, by its pid."""
    config = str(bench.box.client.config)
    return {each.pid: words for each in processes.every() if config in (words := each.argv)}


@pytest.mark.parametrize("is_warm", [True, False])
def test_one_ssh_process_does_the_whole_submit(warm: FarBench, is_warm: bool) -> None:
    """Holdfast's master goes to the background as a second process of the same command; it does not count."""
    if not is_warm:
        _cut(warm)
    warm.write("large.bin", "x" * 3_000_000)
    sessions = warm.box.server.log.read_text().count("Starting session")
    connections = warm.box.link.counters.connections
    seen: set[str] = set()
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(warm, seen, over, set(_of_client(warm))))
    watcher.start()
    done = warm.submit("t.py")
    over.set()
    watcher.join()
    assert done.code == 0, done.err
    assert warm.box.server.log.read_text().count("Starting session") - sessions == 1
    assert warm.box.link.counters.connections - connections == (0 if is_warm else 1)
    assert len(seen) == 1, seen


def _watch(bench: FarBench, seen: set[str], over: threading.Event, before: set[int]) -> None:
    """Note the command of every ssh of this test's client that talks to the box; `ssh -G` only prints. Each has its own
    nonce in its command, except the copy that is about to become a master."""
    while not over.wait(0.005):
        for pid, argv in _of_client(bench).items():
            if pid not in before and "-G" not in argv and os.path.basename(argv[0]) == "ssh":
                seen.add(" ".join(argv))
