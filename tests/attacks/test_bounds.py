"""Row 12: whatever a foreign side or file can make grow has a bound, and reading a journal takes as long as it is."""

from __future__ import annotations

import json
import os
import sys
import tracemalloc
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast import frozen
from holdfast.environments.environment_plan import read_lock
from holdfast.errors import HoldfastError, HostError
from holdfast.farside.gpu import samples
from holdfast.farside.system.whole_lines import WholeLines
from holdfast.history import records
from holdfast.history.metrics import summarize
from holdfast.hosts import complaints, inbox
from holdfast.hosts.connection import MOST_PUSHED, Carrier, Connection, Push
from holdfast.hosts.far_end import Said
from holdfast.hosts.replies import Contents, FilePage, FileRow, KnownRun, RunPage
from holdfast.workbench.following import far_listing
from holdfast.workbench.following.mirror import Mirror, View
from holdfast.workbench.following.transfer import FarRun
from holdfast.workbench.machines.port_forward import REFUSED, _near_port, _Tunnel
from holdfast.workbench.reach import events
from holdfast.workbench.records import import_runs, recover_snapshot
from kit.hostile import hostile, memory
from kit.journals import folded, parsed
from kit.near_readers import SUBMISSION
from kit.waiting import wait_for

MIB = 1 << 20


def test_of_endless_complaints_only_the_end_is_kept():
    before = memory()
    flood = "[os.write(2, b'e' * 65536) for _ in range(6400)]"
    with hostile(
        f"ready(); request(); {flood}; send({{'id': 1, 'ok': 7}}); os.write(2, b'\\nlast words')"
    ) as connection:
        assert connection.request("hello") == 7
        with pytest.raises(HostError, match="last words"):
            connection.request("hello")
        assert memory() - before < 100 * MIB
        assert len(connection._end._complaints.kept) <= complaints.KEPT


def test_of_a_megabyte_of_complaints_only_the_end_is_kept():
    flood = "[os.write(2, b'e' * 65536) for _ in range(16)]"
    with hostile(f"ready(); request(); {flood}; send({{'id': 1, 'ok': 7}}); request()") as connection:
        assert connection.request("hello") == 7
        with pytest.raises(HostError):
            connection.request("hello")
        assert 0 < len(connection._end._complaints.kept) <= complaints.KEPT


@pytest.mark.parametrize("end", ["", "\\n"], ids=["one line", "lines"])
def test_of_endless_complaints_about_a_port_only_the_end_is_kept(end):
    """And the one that is waited for is noticed, also where it comes in two parts."""
    said = f"[os.write(2, b'e' * 65535 + b'{end or 'e'}') for _ in range(3200)]"
    program = f"import os, time; {said}; os.write(2, b'{REFUSED[:9]}'); time.sleep(0.1); os.write(2, b'{REFUSED[9:]}')"
    heard: list[Said] = []

    def explain(said: Said) -> HostError:
        heard.append(said)
        return HostError("It ended.")

    carrier = Carrier(
        lambda port: [sys.executable, "-c", f"{program}; time.sleep(1000)"],
        os.environ,
        explain,
    )
    before = memory()
    tunnel = _Tunnel(carrier, events.PortOpened(8888, near_port=_near_port(1, None), host="gpu1"))
    try:
        assert isinstance(next(tunnel.watch()), events.Warned)
    finally:
        tunnel.end()
    tunnel.why()
    assert REFUSED in heard[0].stderr and len(heard[0].stderr) <= complaints.KEPT
    assert memory() - before < 60 * MIB


def test_a_far_side_that_begins_a_file_again_and_again_is_refused(tmp_path):
    copies = Mirror(tmp_path)
    with pytest.raises(HostError, match="began `driver_log` again more than 20 times"):
        for _ in range(1000):
            copies.apply(Push("data", "r", "driver_log", 0, b"x"))
            copies.apply(Push("restart", "r", "driver_log", 0, b""))
    assert len(os.listdir(tmp_path)) == 21


def test_of_old_copies_of_many_files_some_are_named_and_the_rest_is_counted(recorded):
    run_id = recorded.add()
    for number in range(500):
        (recorded.folders.path(run_id) / "metrics" / f"{number}-a.jsonl.diverged-1").touch()
    notes = records.read_run(recorded.folders, run_id).notes
    assert (len(notes), notes[-1]) == (21, "480 more old copies have `.diverged-` in their names.")


def test_a_lock_without_an_end_is_none(tmp_path):
    with (tmp_path / "environment.json").open("wb") as lock:
        lock.truncate(1 << 42)
    assert read_lock(tmp_path / "environment.json") is None


def test_a_login_shell_that_prints_without_end_is_given_up():
    with (
        hostile("while True: out.write(b'motd ' * 9999)", is_remote=True) as connection,
        pytest.raises(HostError, match="printed over 4 MB") as raised,
    ):
        connection.request("hello")
    assert "start-up files" in raised.value.hint


def test_a_far_side_that_asks_for_itself_again_and_again_is_given_up():
    with (
        hostile("while True: ready(' need'); sys.stdin.buffer.readline()", is_remote=True) as connection,
        pytest.raises(HostError, match="asked for Holdfast's program 8 times"),
    ):
        connection.request("hello")


def test_news_in_place_of_an_answer_are_not_kept_without_end():
    before = memory()
    flood = "[send({'push': 'piece', 'run': 'r', 'file': 'f', 'offset': 0}, bytes(1 << 20)) for _ in range(400)]"
    with hostile(f"ready(); request(); {flood}; send({{'id': 1, 'ok': 7}})") as connection:
        with pytest.raises(HostError, match="more than 64 MB"):
            connection.request("list")
        assert memory() - before < 4 * MOST_PUSHED


def test_what_is_followed_is_taken_in_its_order_while_an_answer_is_awaited():
    flood = "[send({'push': 'data', 'run': 'r', 'file': 'f', 'offset': n}, bytes(1 << 20)) for n in range(100)]"
    with hostile(f"ready(); request(); {flood}; send({{'id': 1, 'ok': 7}}); request()") as connection:
        taken: list[int] = []
        connection.spill = lambda push: taken.append(push.offset)
        assert connection.request("list") == 7
        assert len(taken) >= 30
        while (push := connection.next_push(0)) is not None:
            taken.append(push.offset)
        assert taken == list(range(100))


def test_a_far_side_that_sends_faster_than_it_is_taken_has_to_wait():
    flood = "while True: send({'push': 'data', 'run': 'r', 'file': 'f'}, bytes(1 << 20))"
    with hostile(f"ready()\n{flood}") as connection:
        wait_for(lambda: connection._inbox._weight > inbox.MOST - 2 * MIB, what="the inbox is full")
        assert connection._inbox._weight <= inbox.MOST
        assert not connection._inbox.put("more", 2 * MIB, 0)


def test_a_header_counts_as_what_it_becomes():
    nested = "send({'id': 1, 'ok': [[]] * 1000000}); send({'id': 2, 'ok': 7})"
    with hostile(f"ready(); request(); {nested}; request()") as connection:
        connection.send("hello")
        wait_for(lambda: connection._inbox._weight > 16 * MIB, what="the first frame is there")


@pytest.mark.parametrize("number", ["7", "None", "[1]", "10 ** 400", "1.5", "'1'"])
def test_an_answer_to_nothing_that_was_asked_is_refused(number):
    with (
        hostile(f"ready(); request(); send({{'id': {number}, 'ok': 1}}); request()") as connection,
        pytest.raises(HostError, match="no answer and no news"),
    ):
        connection.request("hello")


ODD = ("None", "7", "True", "[1]", "{}", "10 ** 400", "'\\ud800'", "float('nan')")


@pytest.mark.parametrize("field", ["kind", "message", "hint", "errno", "path"])
@pytest.mark.parametrize("odd", ODD)
def test_an_error_whose_words_are_no_text_is_an_error_all_the_same(field, odd):
    error = f"dict({{'kind': 'storage', 'message': 'm', 'hint': '', 'errno': 28, 'path': '/'}}, **{{'{field}': {odd}}})"
    with (
        hostile(f"ready(); request(); send({{'id': 1, 'error': {error}}}); request()", True) as connection,
        pytest.raises(HoldfastError) as raised,
    ):
        connection.request("hello")
    assert isinstance(raised.value.message, str) and isinstance(raised.value.hint, str)


def test_a_long_error_is_cut():
    error = "{'kind': 'refused', 'message': 'm' * (1 << 23), 'hint': 'h' * (1 << 22)}"
    with (
        hostile(f"ready(); request(); send({{'id': 1, 'error': {error}}}); request()") as connection,
        pytest.raises(HostError) as raised,
    ):
        connection.request("hello")
    assert len(str(raised.value)) < 10_000


def copied(monkeypatch: pytest.MonkeyPatch, lines: int) -> int:
    """What folding a journal of so many notes and ended processes copies, in elements."""
    found = 0
    replace = frozen.replace

    def counting(run: Any, **changes: Any) -> Any:
        nonlocal found
        found += 1 + sum(len(each) for each in changes.values() if isinstance(each, tuple))
        return replace(run, **changes)

    monkeypatch.setattr(records, "replace", counting)
    swept = {"t": 1.0, "e": "swept", "processes": [[1, "a", "SIGTERM"]], "count": 1}
    events = [swept, {"t": 1.0, "e": "note", "text": "n"}, {"t": 1.0, "e": "phase", "text": "p"}]
    data = b"".join(json.dumps(each).encode() + b"\n" for each in events * (lines // 3))
    assert len(parsed(data).events) == lines
    folded(SUBMISSION, data)
    monkeypatch.setattr(records, "replace", replace)
    return found


def test_a_journal_of_twice_the_length_takes_twice_the_work(monkeypatch):
    assert copied(monkeypatch, 3000) < 2.2 * copied(monkeypatch, 1500)


def test_of_a_flood_of_notes_and_processes_some_are_kept_and_the_rest_is_counted():
    note, swept = b'{"t": 1, "e": "note", "text": "n"}\n', b'{"t": 1, "e": "swept", "processes": [[1, "a", 9]]}\n'
    run = folded(SUBMISSION, note * 5000 + swept * 3000)
    assert len(run.ended_processes) == records.MOST_KEPT
    assert run.notes[records.MOST_KEPT :] == (
        "2000 more processes were ended.",
        "4000 more notes are in the run's journal.jsonl.",
    )


def test_a_follower_reads_each_line_of_a_journal_once(tmp_path):
    view = View(tmp_path)
    with (tmp_path / "journal.jsonl").open("ab") as journal:
        for number in range(300):
            half = len(line := json.dumps({"t": number, "e": "note", "text": str(number)}).encode() + b"\n") // 2
            for part in (line[:half], line[half:]):
                journal.write(part)
                journal.flush()
                found = [cast(Any, each).event.text for each in view.news()]
            assert found == [str(number)]
    assert view._journal.lines == 300


def test_a_line_without_an_end_is_dropped_while_it_comes():
    lines = WholeLines(longest=1000)
    for _ in range(100):
        assert lines.feed(b"x" * 100) == []
        assert sum(map(len, lines._rest)) <= 1000
    assert (lines.feed(b"\nwhole\n"), lines.dropped) == ([b"whole"], 1)


def test_a_metric_without_an_end_is_not_held(tmp_path):
    good = b'{"t": 1, "n": "loss", "v": 0.5, "s": null}\n'
    (tmp_path / "1-a.jsonl").write_bytes(good + b"x" * (100 * MIB) + b"\n" + good)
    tracemalloc.start()
    try:
        found = summarize(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 60 * MIB
    finally:
        tracemalloc.stop()
    assert found["loss"].count == 2


def test_of_endless_samples_only_so_many_are_kept(monkeypatch):
    monkeypatch.setattr(samples, "MOST_ROWS", 100)
    fold = samples.Fold()
    for number in range(1000):
        fold.feed(b'{"t": %d, "d": [[0, 1, 1, null, null, null, null, [], [], 0]]}\n' % number)
        fold.feed(b'{"t": %d, "lost": %d}\n' % (number, number))
    assert len(fold.samples().ticks) == 50
    assert len(fold.samples().losses) <= samples.MOST_LOSSES
    fold.forget(before=40)
    fold.feed(b'{"t": 2000, "d": []}\n')
    assert fold.samples().ticks[-1].time == 2000, "what is forgotten makes room: a watchdog reads for months"


class Endless:
    """Answers each request with one more page."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def __getattr__(self, name: str) -> Any:
        reply = SimpleNamespace(wait=lambda: self._answer, wait_with_body=lambda: self._answer)
        return lambda *words, **more: reply if name in ("list", "objects") else self._answer


@pytest.fixture
def endless(monkeypatch):
    """`endless(answer)`: every client gets it, again and again."""

    def make(answer: object) -> Connection:
        for module in (far_listing, import_runs, recover_snapshot):
            monkeypatch.setattr(module, "Client", lambda connection: Endless(answer))
        return cast(Connection, object())

    return make


def test_a_listing_of_millions_of_files_is_refused(endless, monkeypatch):
    monkeypatch.setattr(far_listing, "MOST_FILES", 1000)
    page = FilePage((FileRow("work/outputs/a", "f", 1, 1, "", False),) * 300, 1 << 62, ())
    with pytest.raises(HostError, match="more than 1,000 output files"):
        far_listing.list_files(endless(page), True, FarRun("p", "r", True), [])


def test_a_host_with_endless_runs_is_refused(endless, monkeypatch):
    monkeypatch.setattr(import_runs, "_MOST_RUNS", 1000)
    importer = import_runs._Importer.__new__(import_runs._Importer)
    importer._target = cast(Any, SimpleNamespace(name="gpu1"))
    importer._open = endless(RunPage((KnownRun("p", "r", "g"),) * 300, True))
    with pytest.raises(HostError, match="lists more than 1,000 runs"):
        importer.runs(None)


def test_a_manifest_without_an_end_is_refused(endless, tmp_path, monkeypatch):
    import zlib

    monkeypatch.setattr(recover_snapshot, "MOST_MANIFEST", 1 << 20)
    connection = endless((Contents((1 << 62,)), zlib.compress(b"x" * (1 << 18))))
    with pytest.raises(HostError, match="list of files has more than"):
        recover_snapshot.recover_snapshot(
            connection, tmp_path, recover_snapshot.FarSnapshot("p", "r", "a" * 64), limit=None
        )
