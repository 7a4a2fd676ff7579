"""Files to and from a host that does not share this disk: few bytes, few round trips, verified, taken up where a link
broke."""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.containers.bare import Bare
from holdfast.engines.direct import Direct
from holdfast.errors import FarSideError, HostError, LoginNeeded, StorageError
from holdfast.farside.store import objects
from holdfast.history.folder import RunFolders
from holdfast.history.records import read_run
from holdfast.hosts.connection import Connection
from holdfast.model import Reason, Run
from holdfast.project.folder import Project, ensure_identity, find_project
from holdfast.snapshots.store import ObjectStore
from holdfast.snapshots.take import take_snapshot
from holdfast.workbench import events
from holdfast.workbench.following import reconnecting
from holdfast.workbench.machines import contacts
from holdfast.workbench.records import artifacts, runs
from holdfast.workbench.submitting import submit as submitting
from holdfast.workbench.submitting.planning import Request
from holdfast.workbench.submitting.sending import SMALL, WINDOW, Sender
from holdfast.workbench.surroundings import Surroundings
from holdfast.workbench.targets import Product
from kit.relay import Cut, Relayed


@dataclass(frozen=True)
class Bench:
    """A project and a host that a relay leads to."""

    root: Path
    host: Relayed
    around: Surroundings

    @property
    def project(self) -> Project:
        return find_project(self.root)

    @property
    def store(self) -> ObjectStore:
        return ObjectStore(self.root / ".holdfast" / "objects")

    @property
    def far_objects(self) -> Path:
        return self.around.home / "objects"

    def write(self, name: str, content: str | bytes) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def snapshot(self) -> str:
        return take_snapshot(self.root, self.root / ".holdfast", lambda files, size: None, {}).digest

    def send(self, connection: Connection, snapshot: str) -> Iterator[events.Sending]:
        sender = Sender(connection, self.store, snapshot, None)
        sender.announce()
        yield from sender.complete()
        sender.confirm()

    def submit(self, script: str = "t.py", **asked: Any) -> Iterator[events.Event]:
        return submitting.submit(self.project, Request(script, **asked), self.around)

    def run(self, script: str = "t.py", **asked: Any) -> Run:
        ended = list(self.submit(script, **asked))[-1]
        assert isinstance(ended, events.Ended)
        return ended.run

    def near(self, run: Run) -> Path:
        return self.root / ".holdfast" / "runs" / run.run_id

    def far(self, run: Run) -> Path:
        return next((self.around.home / "runs").glob(f"*/{run.run_id}"))


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    root = tmp_path / "project"
    root.mkdir()
    environment = {**os.environ, "PATH": os.path.dirname(sys.executable)}
    host = Relayed(tmp_path / "home", environment, tmp_path / "reports")
    for place in (submitting, runs):
        monkeypatch.setattr(place, "product_of", lambda target, around: Product(host, Direct(), Bare()), raising=False)
    monkeypatch.setattr(reconnecting, "TRIES", (0.01, 0.01, 0.02))
    made = Bench(root, host, Surroundings(tmp_path / "home", environment, root, tmp_path))
    made.write("t.py", "print('ran')\n")
    return made


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    return random.Random(request.param)


def test_one_changed_file_among_ten_thousand_costs_little_more_than_itself(bench):
    for number in range(10_000):
        bench.write(f"folder{number // 100}/file{number}.txt", f"content of file {number}\n" * 3)
    first = bench.snapshot()
    with bench.host.connect() as connection:
        list(bench.send(connection, first))
    ensure_identity(bench.project, bench.around.user_home)
    contacts.sent(bench.project, bench.host.name, first, 0.0, time.time())
    changed = os.urandom(20_000)
    bench.write("folder7/file700.txt", changed)
    run = bench.run()
    assert run.ending.reason is Reason.COMPLETED
    whole, little = bench.host.traffic()
    assert little.up < (64 << 10) + len(changed)
    assert whole.up < 2_000_000, "names and digests of all files, and contents that compress well"
    assert whole.down < 10_000, "that everything is missing is said in a word"
    assert (bench.far(run) / "work/folder7/file700.txt").read_bytes() == changed


def test_a_warm_submit_waits_for_no_answer_before_it_has_asked_for_everything(bench, monkeypatch):
    bench.run()
    happened: list[str] = []
    send, answer = Connection.send, Connection.answer_with_body
    monkeypatch.setattr(Connection, "send", lambda self, name, *rest: happened.append(name) or send(self, name, *rest))
    monkeypatch.setattr(
        Connection, "answer_with_body", lambda self, number: happened.append("answer") or answer(self, number)
    )
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
            assert answer == {"needs": "manifest"}
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
    """Its refusal is heard while others are still being sent."""
    contents = [os.urandom(SMALL + 1) for _ in range(2 * WINDOW)]
    for number, content in enumerate(contents):
        bench.write(f"large{number}.bin", content)
    digests = sorted(hashlib.sha256(content).hexdigest() for content in contents)
    part = bench.far_objects / ".incoming" / digests[0]
    part.parent.mkdir(parents=True)
    part.write_bytes(b"something else")
    assert bench.run().ending.reason is Reason.COMPLETED
    assert all((bench.far_objects / digest[:2] / digest[2:]).stat().st_size == SMALL + 1 for digest in digests)


def test_parts_that_nobody_went_on_with_for_a_day_are_removed(bench):
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
    assert read_run(folders, folders.resolve("last")).ending.reason is Reason.NOT_STARTED


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


@pytest.mark.parametrize("chance", range(6), indirect=True)
def test_a_link_that_breaks_anywhere_leaves_one_run_with_all_its_files(bench, chance):
    bench.write("data.bin", os.urandom(3_000_000))
    bench.write(
        "t.py",
        "import hashlib\n"
        "data = open('data.bin', 'rb').read()\n"
        "print(hashlib.sha256(data).hexdigest())\n"
        "for i in range(3):\n    open('outputs/%d' % i, 'wb').write(data[i:] + bytes(i * 1000000))\n",
    )
    for _ in range(8):
        cut = (
            Cut(up=chance.randrange(100, 3_000_000)) if chance.random() < 0.5 else Cut(down=chance.randrange(9_000_000))
        )
        bench.host.cuts.append(cut)
    run = bench.run()
    assert bench.host.connections > 1, "the link broke"
    data = (bench.root / "data.bin").read_bytes()
    assert run.ending.reason is Reason.COMPLETED
    assert (bench.near(run) / "driver_log").read_text() == hashlib.sha256(data).hexdigest() + "\n"
    for number in range(3):
        expected = data[number:] + bytes(number * 1000000)
        assert (bench.near(run) / f"outputs/{number}").read_bytes() == expected
    assert len(list((bench.around.home / "runs").glob("*/*"))) == 1, "it ran once"
    assert not (bench.near(run) / ".incoming").exists()


def test_a_file_that_was_half_fetched_is_continued(bench):
    bench.write("t.py", "import os\nopen('outputs/big', 'wb').write(os.urandom(8 << 20))\n")
    bench.host.cuts.append(Cut(down=11 << 19))
    run = bench.run()
    first, second = bench.host.traffic()
    assert (bench.near(run) / "outputs/big").read_bytes() == (bench.far(run) / "work/outputs/big").read_bytes()
    assert first.down + second.down < (9 << 20), "nothing travels twice"


def test_what_compresses_travels_compressed(bench):
    bench.write("t.py", "open('outputs/big', 'wb').write(b'0123456789' * 1000000)\n")
    run = bench.run()
    assert (bench.near(run) / "outputs/big").stat().st_size == 10_000_000
    assert bench.host.traffic()[0].down < 500_000


def test_outputs_have_the_hosts_times_and_are_not_fetched_twice(bench):
    bench.write("t.py", "import os\nopen('outputs/x', 'w').write('1')\nos.utime('outputs/x', (5, 5))\n")
    run = bench.run()
    home = bench.near(run) / "outputs/x"
    assert home.stat().st_mtime == 5
    (bench.near(run) / "collected.json").unlink()
    inode = home.stat().st_ino
    list(runs.follower_of(bench.project, run.run_id, bench.around).follow())
    assert home.stat().st_ino == inode


def test_a_file_outside_outputs_is_fetched_later_also_over_a_link_that_breaks(bench, tmp_path):
    bench.write("t.py", "import os\nopen('model.bin', 'wb').write(os.urandom(3 << 20))\nopen('b', 'w').write('2')\n")
    run = bench.run()
    bench.host.cuts.append(Cut(down=5 << 19))
    asked = artifacts.Download(run.run_id, tmp_path / "here", ("model.bin", "b"))
    with pytest.raises(HostError):
        list(artifacts.download(bench.project, asked, bench.around))
    before = bench.host.connections
    copied = list(artifacts.download(bench.project, replace(asked, overwrite=True), bench.around))
    assert bench.host.connections == before + 1, "one connection for all"
    assert [each.path for each in copied] == ["model.bin", "b"]
    there = bench.far(run) / "work"
    assert (tmp_path / "here/model.bin").read_bytes() == (there / "model.bin").read_bytes()
    assert bench.host.traffic()[-1].down < 2 << 20


def test_two_downloads_of_one_file_at_once_both_bring_it_whole(bench, tmp_path):
    bench.write("t.py", "import os\nopen('model.bin', 'wb').write(os.urandom(12 << 20))\n")
    run = bench.run()
    together = threading.Barrier(2)

    def download(name: str) -> Path:
        together.wait(20)
        asked = artifacts.Download(run.run_id, tmp_path / name, ("model.bin",))
        (copied,) = artifacts.download(bench.project, asked, bench.around)
        return copied.destination

    with ThreadPoolExecutor(2) as pool:
        copies = [each.read_bytes() for each in pool.map(download, ("one", "two"))]
    content = (bench.far(run) / "work/model.bin").read_bytes()
    assert [each == content for each in copies] == [True, True]
    assert not [each for each in bench.near(run).glob(".incoming*") if each.is_dir()]


def test_outputs_that_were_left_there_come_when_they_are_asked_for(bench, tmp_path):
    from holdfast.workbench.following.fetching import bring_outputs_home

    bench.write(
        "t.py", "import holdfast\nholdfast.upload('u', 'up')\nfor i in '012': open('outputs/' + i, 'w').write(i)\n"
    )
    run = bench.run(fetch_outputs=False)
    near = bench.near(run)
    assert (near / "uploads/u").read_text() == "up"
    assert not (near / "outputs").exists()
    assert any("--no-outputs" in note for note in run.notes)
    one = artifacts.Download(run.run_id, tmp_path / "one", ("outputs/1",))
    assert [each.path for each in artifacts.download(bench.project, one, bench.around)] == ["outputs/1"]
    assert not (near / "outputs").exists(), "only what was asked for"
    list(bring_outputs_home(bench.project, run.run_id, bench.around))
    assert sorted(each.read_text() for each in (near / "outputs").iterdir()) == ["0", "1", "2"]
    assert not RunFolders(bench.root / ".holdfast").outputs_are_left(run.run_id)


SYNCED = """
import os, time
def write(name, text):
    with open('outputs/' + name, 'w') as file: file.write(text)
def wait(name):
    while not os.path.exists('../' + name): time.sleep(0.01)
write('kept', 'old'); write('gone', '1'); os.mkdir('outputs/f'); write('f/x', '1'); write('turns', 'file')
print('up', flush=True)
wait('go')
write('kept', 'new'); os.unlink('outputs/gone'); os.unlink('outputs/turns')
os.mkdir('outputs/turns'); write('turns/y', '2')
"""


def test_outputs_come_home_while_the_run_goes_on_and_are_exact_at_its_end(bench, monkeypatch):
    bench.write("t.py", SYNCED)
    run_id, outputs = "", Path()
    for event in bench.submit(sync_outputs=0.05):
        if isinstance(event, events.RunCreated):
            run_id, outputs = event.run_id, bench.root / ".holdfast" / "runs" / event.run_id / "outputs"
        if isinstance(event, events.Fetched) and not (outputs.parent / "collected.json").exists():
            texts = {each.name: each.read_text() for each in outputs.rglob("*") if each.is_file()}
            if texts == {"kept": "old", "gone": "1", "x": "1", "turns": "file"}:
                (next((bench.around.home / "runs").glob(f"*/{run_id}")) / "go").touch()
    assert isinstance(event, events.Ended)
    texts = {each.relative_to(outputs).as_posix(): each.read_text() for each in outputs.rglob("*") if each.is_file()}
    assert texts == {"kept": "new", "f/x": "1", "turns/y": "2"}


def test_the_clock_of_the_host_is_measured_and_a_wrong_one_told(bench):
    late = replace(bench, around=replace(bench.around, now=lambda: time.time() - 3600))
    happened = list(late.submit())
    run = happened[-1].run
    assert run.clock_offset == pytest.approx(3600, abs=30)
    assert any(isinstance(each, events.Warned) and "1h" in each.message for each in happened)
    assert read_run(RunFolders(bench.root / ".holdfast"), run.run_id).clock_offset == run.clock_offset
    running = replace(run, ended=None)
    assert running.running_time(late.around.now()) == pytest.approx(time.time() - run.started, abs=30)


def test_a_lost_connection_is_taken_up_again_however_often(bench):
    bench.write("t.py", "import os\nopen('outputs/big', 'wb').write(os.urandom(1 << 20))\nprint('done')\n")
    bench.host.cuts += [Cut(down=2000)] + [Cut(down=0)] * 8
    happened = list(bench.submit())
    assert sum(isinstance(each, events.ConnectionLost) for each in happened) == 9
    assert happened[-1].run.ending.reason is Reason.COMPLETED


def test_a_host_that_wants_a_login_ends_the_following_and_says_how_to_go_on(bench, monkeypatch):
    bench.host.cuts.append(Cut(down=2500))
    connect: Callable[..., Connection] = bench.host.connect

    def refuse(may_ask: bool = True) -> Connection:
        if not may_ask:
            raise LoginNeeded("relayed asks for a password.", "Log in once.")
        return connect(may_ask)

    monkeypatch.setattr(bench.host, "connect", refuse, raising=False)
    bench.write("t.py", "import time\nfor i in range(200): print('x' * 100, flush=True)\n")
    with pytest.raises(HostError, match="asks for a password") as caught:
        list(bench.submit())
    assert "holdfast logs -f -r" in caught.value.hint or "holdfast status -r" in caught.value.hint
