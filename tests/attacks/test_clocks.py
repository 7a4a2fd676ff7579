"""Clocks that are wrong, or set while a run is on: the host's, and the laptop's."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.farside.containers import container_age
from holdfast.farside.gpu.request import GpuRequest
from holdfast.farside.gpu.samples import Tick, encode_devices, encode_start, encode_tick
from holdfast.farside.gpu.watch.watchdog import GpuWatchdog
from holdfast.farside.system import kernel
from holdfast.farside.system.clock import seconds_since_boot
from holdfast.farside.system.journal import JournalWriter
from holdfast.history.run_folder import RunFolders
from holdfast.hosts.replies import Followed
from holdfast.model import Submission
from holdfast.project.folder import find_project
from holdfast.workbench.following.session import Session
from holdfast.workbench.reach.boot_clock import SinceBoot
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.run_hosts import DetachedHost
from holdfast.workbench.submitting.submit import submit
from holdfast.workbench.submitting.submit_request import SubmitRequest
from kit.gpu_values import facts, holding, row, samples
from kit.projects import own_state, project_at

YEAR = 365 * 86400.0


@pytest.fixture
def set_clock(monkeypatch):
    """Sets the machine's clock, for this process."""
    real = time.time
    return lambda seconds: monkeypatch.setattr(time, "time", lambda: real() + seconds)


def begun(folder: Path) -> JournalWriter:
    from holdfast.farside.run.run_files import write_created

    plan = {"format": 1, "run": "r_1", "project": "p", "generation": "g"}
    write_created(str(folder), plan, "machine")
    return JournalWriter(str(folder / "journal.jsonl"))


@pytest.mark.parametrize("step", [-3600.0, 3600.0, YEAR])
def test_what_a_run_took_is_not_by_a_clock_that_is_set_meanwhile(tmp_path, set_clock, step):
    begun(tmp_path).append("started", pid=1, argv=[])
    set_clock(step)
    JournalWriter(str(tmp_path / "journal.jsonl")).append("ended", reason="completed")  # another process's
    created, started, ended = JournalWriter(str(tmp_path / "journal.jsonl")).events()
    assert created["t"] <= started["t"] <= ended["t"] < created["t"] + 60


def test_a_run_of_an_earlier_boot_or_version_is_told_by_the_clock(tmp_path, set_clock, monkeypatch):
    begun(tmp_path)
    set_clock(YEAR)
    monkeypatch.setenv("HOLDFAST_BOOT_ID", "another")
    JournalWriter(str(tmp_path / "journal.jsonl")).append("ended", reason="host-rebooted")
    assert JournalWriter(str(tmp_path / "journal.jsonl")).events()[-1]["t"] == pytest.approx(time.time(), abs=60)


@pytest.fixture
def going_on(tmp_path) -> Callable[[float, SinceBoot | None], Session]:
    """`going_on(now, since_boot)`: the run, as a command sees it on a laptop whose clock says `now`."""
    own_state(tmp_path)
    folders = RunFolders(tmp_path / ".holdfast")
    run_id = folders.reserve("r", 1.0)
    submission = Submission(run_id, 1, "p", "r", "t.py", (), "far", "far", "gpu1", "a" * 64, 1.0, "g")
    folders.commit(run_id, submission, {"format": 1}, {"run": {}})
    (folders.path(run_id) / "journal.jsonl").write_text('{"t": 1000.0, "e": "started", "pid": 7, "argv": []}\n')

    def see(now: float, since_boot: SinceBoot | None) -> Session:
        context = Context(tmp_path, {}, tmp_path, tmp_path, lambda: now, lambda: since_boot)
        return Session(project_at(tmp_path), run_id, DetachedHost("gpu1", ()), context)

    return see


def hear(session: Session, clock: float) -> None:
    """The host tells the time of the run."""
    session.hear_clock(Followed({}, None, {session.run_id: clock}))


def shown(session: Session) -> float | None:
    return session.read().running_time(session.time_there())


@pytest.mark.parametrize("step", [-3600.0, 3600.0, YEAR])
def test_how_long_a_run_is_going_on_is_not_by_a_clock_that_is_set_meanwhile(going_on, step):
    hear(going_on(1100.0, SinceBoot("b", 50.0)), 1100.0)
    assert shown(going_on(1100.0, SinceBoot("b", 50.0))) == 100.0
    assert shown(going_on(1130.0 + step, SinceBoot("b", 80.0))) == 130.0
    hear(going_on(1130.0 + step, SinceBoot("b", 80.0)), 1130.0)
    assert shown(going_on(1140.0 + step, SinceBoot("b", 90.0))) == 140.0


@pytest.mark.parametrize(
    "since_boot", [None, SinceBoot("c", 5.0)], ids=["no such clock", "another start of the laptop"]
)
def test_where_only_clocks_can_be_asked_they_are(going_on, since_boot):
    hear(going_on(1100.0, SinceBoot("b", 50.0)), 1100.0)
    assert shown(going_on(1160.0, since_boot)) == 160.0
    session = going_on(1160.0, since_boot)
    session.folders.write_clock(session.run_id, "gpu1", 3600.0, 0.0)
    assert shown(going_on(1160.0, since_boot)) == 3760.0


@pytest.mark.parametrize("step", [-YEAR, -3600.0, 3600.0, YEAR])
def test_the_time_to_finish_of_a_run_is_not_by_the_laptops_clock(going_on, step):
    hear(going_on(1100.0, SinceBoot("b", 50.0)), 1100.0)
    session = going_on(1104.0 + step, SinceBoot("b", 54.0))
    with (session.folder / "journal.jsonl").open("a") as journal:
        journal.write('{"t": 1100.0, "e": "ending", "cause": "cancel", "grace": 10.0}\n')
    assert session.time_to_finish() == 6.0


def test_status_asks_how_long_a_run_has_run_by_the_runs_own_clock(bench):
    """One of the clocks was set since they were compared."""
    run_id = bench.begin("import time\nprint('up', flush=True)\ntime.sleep(1000)\n")
    record = bench.near(run_id) / "host.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "clock_offset": YEAR}))
    shown = bench.run("status", "-r", run_id, "-o", "table").out
    assert re.search(r"Duration +[0-9.]+m?s", shown), shown
    ahead = json.loads(record.read_text())["run_ahead"]
    assert ahead + seconds_since_boot() == pytest.approx(time.time(), abs=60)


@pytest.mark.parametrize("step", [-3600.0, 3600.0, YEAR])
def test_a_container_at_work_is_not_old_because_the_clock_was_set(set_clock, step):
    label, made = container_age.begun(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    set_clock(step)
    assert 0 <= container_age.age(label, made) + 1 < 60


@pytest.mark.parametrize(
    "label", ["", "x", "another-start 5", f"{kernel.boot_id()} 99999999999", f"{kernel.boot_id()} 1e400", " 5", "nan"]
)
def test_any_label_of_a_container_is_read(label):
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 3600))
    assert container_age.age(label, made) > 3000
    container_age.age(label, "9999-99-99T99:99:99Z")


@pytest.mark.parametrize("offset", ["1e400", "NaN", '"x"', "null", "[]", "true", "-1e300"])
def test_any_clock_in_a_journal_is_read(tmp_path, offset):
    path = tmp_path / "journal.jsonl"
    boot = json.dumps(kernel.boot_id())
    path.write_text(f'{{"t":1,"e":"created","boot":{boot},"clock":{offset}}}\n')
    JournalWriter(str(path)).append("note", text="read")
    assert JournalWriter(str(path)).events()[-1]["text"] == "read"


def test_a_run_is_not_ended_as_idle_because_the_clock_was_set(tmp_path, set_clock):
    now = begun(tmp_path).clock().now
    (tmp_path / "driver_log").write_text("at work\n")
    known = facts(request=GpuRequest(asked=True, by="`--gpus 1`", stop_if_idle=600.0))
    said: list[str] = []
    dog = GpuWatchdog(str(tmp_path), known, "r_1", said.append, JournalWriter(str(tmp_path / "journal.jsonl")).clock())
    dog.due = 0.0
    with (tmp_path / "gpu.jsonl").open("wb") as samples_file:
        samples_file.write(encode_start(now(), "nvml") + encode_devices(samples([row()]).devices))
        for _ in range(9):
            samples_file.write(encode_tick(Tick(now(), (holding(),))))
        set_clock(7200.0)
        samples_file.write(encode_tick(Tick(now(), (holding(),))))
    assert (dog.look(), said) == (None, [])


def test_the_newest_run_is_the_one_made_last_whatever_the_clock_says(tmp_path):
    folders = RunFolders(tmp_path)
    future = time.time() + 4 * YEAR
    made = [folders.reserve("p", now) for now in (future, time.time(), 0.0, time.time())]
    for each in made:
        (folders.root / f"{each}.new").rename(folders.root / each)
    assert list(folders.all_ids()) == made
    assert folders.newest() == made[-1]
    assert len(set(made)) == 4


def test_last_and_the_list_go_by_the_order_of_making(bench):
    """A laptop whose clock was years ahead for a while."""
    bench.write("t.py", "print(1)\n")
    ahead = Context(bench.home, os.environ, bench.root, bench.root.parent, lambda: time.time() + 4 * YEAR)
    list(submit(find_project(bench.root, bench.home), SubmitRequest("t.py"), ahead, wait=True))
    assert bench.submit("t.py").code == 0
    listed = [each["run_id"] for each in json.loads(bench.run("history", "list", "-o", "json").out)]
    assert listed[0] == bench.record("last")["run_id"]
    assert int(listed[0].rpartition("_")[2]) - int(listed[1].rpartition("_")[2]) == 1


def test_a_folder_that_is_no_run_does_not_make_ids_endless(tmp_path):
    folders = RunFolders(tmp_path)
    folders.root.mkdir()
    for name in ("p_99999999999999999999", "p_9999999999999999", "notes", "p_x.new"):
        (folders.root / name).mkdir()
    run_id = folders.reserve("p", 1000.0)
    assert run_id == "p_1000000"
