"""Files from a host that does not share this disk: complete, verified, resumed where a link broke."""

from __future__ import annotations

import hashlib
import os
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.errors import HostError, LoginNeeded
from holdfast.history.run_folder import RunFolders
from holdfast.hosts.connection import Connection
from holdfast.model import Reason
from holdfast.workbench.following.follower import Follower
from holdfast.workbench.following.session import session_of
from holdfast.workbench.reach import events
from holdfast.workbench.records import artifacts
from kit.relay import Cut
from kit.transfers import Bench


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    return random.Random(request.param)


@pytest.fixture(params=["another machine", "this machine"])
def anywhere(request: pytest.FixtureRequest, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(bench.host, "is_here", request.param == "this machine", raising=False)
    return bench


def _executables(folder: Path) -> dict[str, bool]:
    return {each.name: os.access(each, os.X_OK) for each in folder.glob("*")}


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
    assert len(list((bench.context.home / "runs").glob("*/*"))) == 1, "it ran once"
    assert not (bench.near(run) / ".incoming").exists()


def test_a_file_that_was_half_fetched_is_continued(bench):
    bench.write("t.py", "import os\nopen('outputs/big', 'wb').write(os.urandom(8 << 20))\n")
    bench.host.cuts.append(Cut(down=11 << 19))
    run = bench.run()
    first, second = bench.host.traffic()
    assert (bench.near(run) / "outputs/big").read_bytes() == (bench.there(run) / "outputs/big").read_bytes()
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
    list(Follower(session_of(bench.project, run.run_id, bench.context)).follow())
    assert home.stat().st_ino == inode


def test_a_file_that_stayed_there_is_fetched_later_also_over_a_link_that_breaks(bench, tmp_path):
    bench.write("t.py", "import os\nopen('model.bin', 'wb').write(os.urandom(3 << 20))\nopen('b', 'w').write('2')\n")
    run = bench.run(outputs_limit=0)
    assert [each.path for each in run.left.files] == ["b", "model.bin"]
    bench.host.cuts.append(Cut(down=5 << 19))
    asked = artifacts.DownloadRequest(run.run_id, tmp_path / "here", ("model.bin", "b"))
    with pytest.raises(HostError):
        list(artifacts.download(bench.project, asked, bench.context))
    before = bench.host.connections
    copied = list(artifacts.download(bench.project, replace(asked, overwrite=True), bench.context))
    assert bench.host.connections == before + 1, "one connection for all"
    assert [each.path for each in copied] == ["model.bin", "b"]
    there = bench.there(run)
    assert (tmp_path / "here/model.bin").read_bytes() == (there / "model.bin").read_bytes()
    assert bench.host.traffic()[-1].down < 2 << 20


def test_of_more_files_than_a_record_names_all_that_are_asked_for_are_fetched(bench, tmp_path, monkeypatch):
    monkeypatch.setattr("holdfast.workbench.following.outputs._MOST_LEFT", 2)
    bench.write("t.py", "for i in range(5): open('part%d' % i, 'w').write(str(i))\n")
    run = bench.run(outputs_limit=0)
    assert (len(run.left.files), run.left.count, run.left.size) == (2, 5, 5)
    asked = artifacts.DownloadRequest(run.run_id, tmp_path / "here", ("part[2-4]",))
    copied = list(artifacts.download(bench.project, asked, bench.context))
    assert [each.path for each in copied] == ["part2", "part3", "part4"]


def test_programs_among_the_outputs_are_programs_at_home(anywhere, tmp_path):
    anywhere.write(
        "t.py",
        "import os\n"
        "for name in ('outputs/tool', 'outputs/data', 'aside'):\n    open(name, 'w').write('#!/bin/sh\\n')\n"
        "os.chmod('outputs/tool', 0o755)\nos.chmod('outputs/data', 0o644)\nos.chmod('aside', 0o700)\n",
    )
    run = anywhere.run()
    assert _executables(anywhere.near(run) / "outputs") == {"tool": True, "data": False}
    asked = artifacts.DownloadRequest(run.run_id, tmp_path / "copies", ("outputs/tool", "outputs/data", "aside"))
    downloaded = artifacts.download(anywhere.project, asked, anywhere.context)
    copied = {each.destination.name: each.destination for each in downloaded if isinstance(each, artifacts.Copied)}
    assert {name: os.access(path, os.X_OK) for name, path in copied.items()} == {
        "tool": True,
        "data": False,
        "aside": True,
    }


FIRST = {"a": True, "b": False}


def test_a_file_that_becomes_a_program_or_stops_being_one_does_so_at_home_too(anywhere):
    anywhere.write(
        "t.py",
        "import os, time\n"
        "for name in 'ab': open('outputs/' + name, 'w').write(name); os.utime('outputs/' + name, (5, 5))\n"
        "os.chmod('outputs/a', 0o755)\n"
        "print('up', flush=True)\n"
        "while not os.path.exists(os.environ['HOLDFAST_RUN_DIRECTORY'] + '/go'): time.sleep(0.01)\n"
        "os.chmod('outputs/a', 0o644); os.chmod('outputs/b', 0o755)\n",
    )
    was_so = False
    for event in anywhere.submit(sync_outputs=0.05):
        if isinstance(event, events.RunCreated):
            near = anywhere.root / ".holdfast" / "runs" / event.run_id
        if isinstance(event, events.Fetched | events.StillWaiting) and _executables(near / "outputs") == FIRST:
            was_so = True
            (next((anywhere.context.home / "runs").glob(f"*/{near.name}")) / "go").touch()
    assert was_so
    assert _executables(near / "outputs") == {"a": False, "b": True}


def test_two_downloads_of_one_file_at_once_both_bring_it_whole(bench, tmp_path):
    bench.write("t.py", "import os\nopen('model.bin', 'wb').write(os.urandom(12 << 20))\n")
    run = bench.run()
    together = threading.Barrier(2)

    def download(name: str) -> Path:
        together.wait(60)
        asked = artifacts.DownloadRequest(run.run_id, tmp_path / name, ("model.bin",))
        (copied,) = artifacts.download(bench.project, asked, bench.context)
        assert isinstance(copied, artifacts.Copied)
        return copied.destination

    with ThreadPoolExecutor(2) as pool:
        copies = [each.read_bytes() for each in pool.map(download, ("one", "two"))]
    content = (bench.there(run) / "model.bin").read_bytes()
    assert [each == content for each in copies] == [True, True]
    assert not [each for each in bench.near(run).glob(".incoming*") if each.is_dir()]


def test_outputs_that_were_left_there_come_when_they_are_asked_for(bench, tmp_path):
    from holdfast.workbench.following.outputs import bring_outputs_home

    bench.write(
        "t.py", "import holdfast\nholdfast.upload('u', 'up')\nfor i in '012': open('outputs/' + i, 'w').write(i)\n"
    )
    run = bench.run(fetch_outputs=False)
    near = bench.near(run)
    assert (near / "uploads/u").read_text() == "up"
    assert not (near / "outputs").exists()
    assert any("--no-outputs" in note for note in run.notes)
    one = artifacts.DownloadRequest(run.run_id, tmp_path / "one", ("outputs/1",))
    assert [each.path for each in artifacts.download(bench.project, one, bench.context)] == ["outputs/1"]
    assert not (near / "outputs").exists(), "only what was asked for"
    list(bring_outputs_home(bench.project, run.run_id, bench.context))
    assert sorted(each.read_text() for each in (near / "outputs").iterdir()) == ["0", "1", "2"]
    assert not RunFolders(bench.root / ".holdfast").outputs_are_left(run.run_id)


SYNCED = """
import os, time
def write(name, text):
    with open('PLACE/' + name, 'w') as file: file.write(text)
def wait(name):
    while not os.path.exists(os.environ['HOLDFAST_RUN_DIRECTORY'] + '/' + name): time.sleep(0.01)
os.makedirs('PLACE', exist_ok=True)
write('kept', 'old'); write('gone', '1'); os.mkdir('PLACE/f'); write('f/x', '1'); write('turns', 'file')
print('up', flush=True)
wait('go')
write('kept', 'new'); os.unlink('PLACE/gone'); os.unlink('PLACE/turns')
os.mkdir('PLACE/turns'); write('turns/y', '2')
"""


@pytest.mark.parametrize(("place", "near"), [("outputs", "outputs"), ("logs/tb", "files/logs/tb")])
def test_outputs_come_home_while_the_run_goes_on_and_are_exact_at_its_end(bench, place, near):
    bench.write("t.py", SYNCED.replace("PLACE", place))
    run_id, outputs, is_over = "", Path(), False
    for event in bench.submit(sync_outputs=0.05):
        if isinstance(event, events.RunCreated):
            run_id, outputs = event.run_id, bench.root / ".holdfast" / "runs" / event.run_id / near
        if isinstance(event, events.Fetched) and not is_over:  # afterwards files are removed while this looks
            texts = {each.name: each.read_text() for each in outputs.rglob("*") if each.is_file()}
            if texts == {"kept": "old", "gone": "1", "x": "1", "turns": "file"}:
                is_over = True
                (next((bench.context.home / "runs").glob(f"*/{run_id}")) / "go").touch()
    assert is_over
    assert isinstance(event, events.Ended)
    texts = {each.relative_to(outputs).as_posix(): each.read_text() for each in outputs.rglob("*") if each.is_file()}
    assert texts == {"kept": "new", "f/x": "1", "turns/y": "2"}


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
