"""Files to a host that does not share this disk: few bytes, few round trips, verified, resumed where a link broke."""

from __future__ import annotations

import hashlib
import json
import os
import time
import zlib
from dataclasses import replace
from typing import Any

import pytest

from holdfast.errors import FarSideError, HostError, StorageError
from holdfast.farside.operations import objects
from holdfast.history.records import read_run
from holdfast.history.run_folder import RunFolders
from holdfast.hosts.connection import Connection
from holdfast.model import Reason
from holdfast.project.folder import ensure_identity
from holdfast.workbench.reach import contacts, events
from holdfast.workbench.submitting.send import SMALL, WINDOW
from kit.relay import Cut
from kit.transfers import Bench


def test_one_changed_file_among_thousands_costs_little_more_than_itself(bench):
    for number in range(2_000):
        bench.write(f"folder{number // 100}/file{number}.txt", f"content of file {number}\n" * 3)
    first = bench.snapshot()
    with bench.host.connect() as connection:
        list(bench.send(connection, first))
    ensure_identity(bench.project, bench.context.user_home)
    contacts.sent(bench.project, bench.host.name, first, 0.0, time.time())
    changed = os.urandom(20_000)
    bench.write("folder7/file700.txt", changed)
    run = bench.run()
    assert run.ending.reason is Reason.COMPLETED
    whole, little = bench.host.traffic()
    assert little.up < (40 << 10) + len(changed)
    assert whole.up < 400_000, "names and digests of all files, and contents that compress well"
    assert whole.down < 4_000, "that everything is missing is said in a word"
    assert (bench.there(run) / "folder7/file700.txt").read_bytes() == changed


def test_a_warm_submit_waits_for_no_answer_before_it_has_asked_for_everything(bench, monkeypatch):
    bench.run()
    happened: list[str] = []
    send, answer = Connection.send, Connection.answer_with_body

    def sending(self: Connection, name: str, *rest: Any) -> Any:
        happened.append(name)
        return send(self, name, *rest)

    def answering(self: Connection, number: int) -> Any:
        happened.append("answer")
        return answer(self, number)

    monkeypatch.setattr(Connection, "send", sending)
    monkeypatch.setattr(Connection, "answer_with_body", answering)
    bench.write("t.py", "print('ran again')\n")
    assert bench.run().ending.reason is Reason.COMPLETED
    assert happened[:6] == ["hello", "prepare", "pack", "start", "follow", "answer"]


def _lose_everything(bench: Bench) -> None:
    for path in bench.far_objects.glob("??/*"):
        path.unlink()


def _lose_one(bench: Bench) -> None:
    digest = hashlib.sha256(b"kept").hexdigest()
    (bench.far_objects / digest[:2] / digest[2:]).unlink()


def _shorten_one(bench: Bench) -> None:
    digest = hashlib.sha256(b"kept").hexdigest()
    path = bench.far_objects / digest[:2] / digest[2:]
    path.chmod(0o644)
    path.write_bytes(b"")


def _damage_manifests(bench: Bench) -> None:
    for path in bench.far_objects.glob("??/*"):
        if path.read_bytes().startswith(b'{"format"'):
            path.chmod(0o644)
            path.write_bytes(b'{"format":1,"files":[["t.py","f","%s",1]]}' % (b"0" * 64))


@pytest.mark.parametrize("harm", [_lose_everything, _lose_one, _shorten_one, _damage_manifests])
@pytest.mark.parametrize("is_changed", [True, False])
def test_what_the_host_lost_since_the_last_time_is_sent_again(bench, harm, is_changed):
    bench.write("kept.txt", b"kept")
    bench.write("t.py", "print(open('kept.txt').read())\n")
    bench.run()
    harm(bench)
    if is_changed:
        bench.write("t.py", "print('again', open('kept.txt').read())\n")
    run = bench.run()
    assert run.ending.reason is Reason.COMPLETED
    assert (bench.near(run) / "driver_log").read_bytes().endswith(b"kept\n")


def test_a_difference_that_leads_to_another_manifest_is_not_taken(bench):
    base = bench.snapshot()
    with bench.host.connect() as connection:
        list(bench.send(connection, base))
        bench.write("more.py", "")
        snapshot = bench.snapshot()
        for body in (b"", b"not zlib", zlib.compress(b"[]"), zlib.compress(b'{"rows":[["x"]]}'), zlib.compress(b"{}")):
            answer = connection.request("prepare", {"snapshot": snapshot, "base": base}, body)
            assert answer["needs"] == "manifest"
        with pytest.raises(FarSideError) as caught:
            connection.request("start", {"plan": {"project": "p", "run": "r", "generation": "g", "snapshot": snapshot}})
    assert caught.value.kind == "incomplete"


def test_a_large_object_goes_on_where_the_link_broke(bench):
    content = os.urandom(6 << 20)
    bench.write("large.bin", content)
    snapshot = bench.snapshot()
    bench.host.cuts.append(Cut(up=3 << 20))
    with bench.host.connect() as connection, pytest.raises(HostError):
        list(bench.send(connection, snapshot))
    with bench.host.connect() as connection:
        done = list(bench.send(connection, snapshot))
    assert done[0].done >= 2 << 20, "what had arrived is not sent again"
    assert done[-1].done == done[-1].total == len(content) + len("print('ran')\n")
    digest = hashlib.sha256(content).hexdigest()
    assert (bench.far_objects / digest[:2] / digest[2:]).read_bytes() == content
    assert not list((bench.far_objects / ".incoming").iterdir())


def test_what_is_left_of_a_large_object_and_is_not_its_beginning_is_sent_anew(bench):
    content = os.urandom(3 << 20)
    bench.write("large.bin", content)
    snapshot = bench.snapshot()
    digest = hashlib.sha256(content).hexdigest()
    part = bench.far_objects / ".incoming" / digest
    part.parent.mkdir(parents=True)
    part.write_bytes(bytes(1 << 20))
    with bench.host.connect() as connection:
        list(bench.send(connection, snapshot))
    assert (bench.far_objects / digest[:2] / digest[2:]).read_bytes() == content


def test_an_object_that_is_refused_does_not_keep_those_after_it_from_arriving(bench):
    """Its refusal arrives while others are still being sent."""
    contents = [os.urandom(SMALL + 1) for _ in range(2 * WINDOW)]
    for number, content in enumerate(contents):
        bench.write(f"large{number}.bin", content)
    digests = sorted(hashlib.sha256(content).hexdigest() for content in contents)
    part = bench.far_objects / ".incoming" / digests[0]
    part.parent.mkdir(parents=True)
    part.write_bytes(b"something else")
    assert bench.run().ending.reason is Reason.COMPLETED
    assert all((bench.far_objects / digest[:2] / digest[2:]).stat().st_size == SMALL + 1 for digest in digests)


def test_parts_that_did_not_grow_for_a_day_are_removed(bench):
    folder = bench.far_objects / ".incoming"
    folder.mkdir(parents=True)
    for name, age in (("old", 2 * objects.STALE), ("young", 60)):
        (folder / name).write_bytes(b"x")
        os.utime(folder / name, (time.time() - age,) * 2)
    with bench.host.connect() as connection:
        list(bench.send(connection, bench.snapshot()))
    assert [each.name for each in folder.iterdir()] == ["young"]


def test_an_object_that_is_damaged_here_is_named_and_nothing_starts(bench):
    digest = bench.store.put_bytes(b"print('ran')\n")
    bench.snapshot()
    path = bench.store.path_of(digest)
    path.chmod(0o644)
    path.write_bytes(b"print('bad')\n")
    with pytest.raises(StorageError, match=f"`{digest}` is damaged"):
        bench.run()
    folders = RunFolders(bench.root / ".holdfast")
    ending = read_run(folders, folders.resolve("last")).ending
    assert ending is not None and ending.reason is Reason.NOT_STARTED


def test_many_files_are_sent_with_progress(bench):
    for number in range(40):
        bench.write(f"data{number}", os.urandom(100_000))
    progress = [event for event in bench.submit() if isinstance(event, events.Sending)]
    assert len(progress) > 3
    assert [each.done for each in progress] == sorted({each.done for each in progress})
    assert progress[-1].done == progress[-1].total == 40 * 100_000 + len("print('ran')\n")


def test_the_host_keeps_the_records_of_the_run(bench):
    run = bench.run()
    kept = {name: json.loads((bench.far(run) / f"{name}.json").read_text()) for name in ("submission", "configuration")}
    here = {name: json.loads((bench.near(run) / f"{name}.json").read_text()) for name in kept}
    assert kept == here


def test_the_clock_of_the_host_is_measured_and_a_wrong_one_told(bench):
    late = replace(bench, context=replace(bench.context, now=lambda: time.time() - 3600))
    happened = list(late.submit())
    run = happened[-1].run
    assert run.clock_offset == pytest.approx(3600, abs=30)
    assert any(isinstance(each, events.Warned) and "1h" in each.message for each in happened)
    assert read_run(RunFolders(bench.root / ".holdfast"), run.run_id).clock_offset == run.clock_offset
    running = replace(run, ended=None)
    there = late.context.now() + (run.clock_offset or 0.0)
    assert running.running_time(there) == pytest.approx(time.time() - run.started, abs=30)
