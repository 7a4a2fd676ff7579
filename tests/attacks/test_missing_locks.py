"""Cleaners of /tmp and /scratch take files of runs that live. A file that is gone proves nothing: no reader ends a run
for it, and its owners put it back."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.farside.environments.built_environment import Environment
from holdfast.farside.operations import environment_list, storage
from holdfast.farside.run import kept_files, liveness
from holdfast.farside.system import kernel, lost_locks, own_files
from holdfast.farside.system.held_lock import HeldLock
from holdfast.farside.system.journal import JournalWriter
from holdfast.farside.system.layout import GUARDIAN_BYTE, SUPERVISOR_BYTE, USE_BYTE, Home
from holdfast.farside.system.lost_locks import LostLocks
from holdfast.farside.system.refusal import Refused
from integration.runs.conftest import is_gone
from kit.waiting import wait_for
from unit.farside.programs import lock_held

WAITS = """
    import os, time
    print("up", flush=True)
    while not os.path.exists("/proc/%d/cwd/../go" % os.getpid()) and not os.path.exists(GO):
        time.sleep(0.01)
    print("on", flush=True)
    open("outputs/result", "w").write("whole") if os.path.isdir("outputs") else None
"""


def begin(bench) -> tuple[str, Path, Path]:
    """The run's id, its folder, and the file that lets its script go on."""
    go = bench.root / "go-on"
    run_id = bench.begin(f"GO = {str(go)!r}\n" + "\n".join(line[4:] for line in WAITS.splitlines()))
    return run_id, bench.far(run_id), go


def owners(folder: Path) -> list[int | None]:
    return [lost_locks.holder(str(folder / "lock"), byte) for byte in (GUARDIAN_BYTE, SUPERVISOR_BYTE)]


def holders(folder: Path) -> list[int | None]:
    """By the file that is there."""
    return [kernel.lock_holder(str(folder / "lock"), byte) for byte in (GUARDIAN_BYTE, SUPERVISOR_BYTE)]


def unharmed(bench, run_id: str, folder: Path, go: Path) -> None:
    """It is alive, and its end is its own."""
    assert bench.record(run_id)["status"] == "Running"
    go.touch()
    wait_for(lambda: bench.record(run_id)["status"] == "Completed", what="the run's own end")
    assert (bench.near(run_id) / "driver_log").read_text() == "up\non\n"
    bench.until_left(run_id)


def test_a_run_whose_lock_is_gone_goes_on_whoever_looks(bench):
    run_id, folder, go = begin(bench)
    before = holders(folder)
    (folder / "lock").unlink()
    assert bench.run("history", "list").code == 0
    wait_for(lambda: holders(folder) == before, what="guardian and supervisor hold a new lock")
    unharmed(bench, run_id, folder, go)


def test_a_lock_that_another_made_again_is_not_a_free_one(bench):
    run_id, folder, go = begin(bench)
    before = holders(folder)
    (folder / "lock").unlink()
    (folder / "lock").touch()
    assert bench.run("history", "list").code == 0
    wait_for(lambda: holders(folder) == before, what="guardian and supervisor hold the new lock")
    unharmed(bench, run_id, folder, go)


def test_all_files_of_a_run_may_go_and_its_record_is_whole(bench):
    run_id, folder, go = begin(bench)
    told = [event["e"] for event in bench.journal(run_id)]
    for path in folder.iterdir():
        if path.is_file():
            path.unlink()
    assert bench.run("history", "list").code == 0
    wait_for(lambda: {"plan.json", "owner.json", "journal.jsonl", "lock"} <= set(os.listdir(folder)))
    wait_for((folder / "driver_log").exists, what="the output is back")
    unharmed(bench, run_id, folder, go)
    assert [event["e"] for event in bench.journal(run_id)][: len(told) + 1] == [*told, "note"]
    assert bench.record(run_id)["notes"][0].startswith("Something removed files of this run.")


def test_a_run_whose_whole_folder_is_removed_ends_as_it_does_and_is_not_called_lost(bench):
    run_id, folder, go = begin(bench)
    shutil.rmtree(folder)
    assert bench.run("history", "list").code == 0
    unharmed(bench, run_id, folder, go)


def test_a_canceled_run_is_found_without_its_lock(bench):
    run_id, folder, _ = begin(bench)
    (folder / "lock").unlink()
    assert bench.run("cancel", "-r", run_id).code == 0
    wait_for(lambda: bench.record(run_id)["status"] == "Canceled")
    bench.until_nothing_is_left(run_id)


def test_a_living_run_is_not_removed_because_its_lock_is_gone(bench):
    run_id, folder, go = begin(bench)
    (folder / "lock").unlink()
    home = Home(str(bench.home))
    with pytest.raises(Refused, match="still alive"):
        storage.remove(home, {"project": folder.parent.name, "run": run_id})
    unharmed(bench, run_id, folder, go)


def test_a_lock_that_one_list_of_the_kernel_left_out_is_held(tmp_path, monkeypatch):
    open_files = tmp_path / "proc" / "4242" / "fd"
    open_files.mkdir(parents=True)
    (open_files / "3").symlink_to(f"{tmp_path}/lock (deleted)")
    lists = iter([[], [f"7: POSIX  ADVISORY  WRITE 4242 08:01:99 {GUARDIAN_BYTE} {GUARDIAN_BYTE}"], []])
    monkeypatch.setattr(lost_locks, "_listed", lambda root: next(lists))
    assert LostLocks(str(tmp_path / "proc")).holder(str(tmp_path / "lock"), GUARDIAN_BYTE) == 4242


def test_owners_that_are_gone_are_found_dead_without_a_lock(bench):
    run_id, folder, _ = begin(bench)
    pids = [pid or 0 for pid in owners(folder)]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: all(map(is_gone, pids)))
    (folder / "lock").unlink()
    assert bench.record(run_id)["status"] == "Failed"
    bench.until_nothing_is_left(run_id)


def test_where_owners_could_not_be_seen_nothing_is_decided(bench, monkeypatch):
    """A reader in a container that shares the home: pids of the machine mean nothing to it."""
    run_id, folder, go = begin(bench)
    supervisor, guardian = (lost_locks.holder(str(folder / "lock"), byte) or 0 for byte in (1, 0))
    (folder / "lock").unlink()
    with monkeypatch.context() as patched:
        patched.setattr(kernel, "pid_namespace", lambda: 1)
        patched.setattr(lost_locks.LostLocks, "holder", lambda *_: None)
        liveness.adjudicate(str(folder))
        assert liveness.is_alive(str(folder))
    assert JournalWriter(str(folder / "journal.jsonl")).ended() is None
    assert not is_gone(supervisor)
    assert not is_gone(guardian)
    unharmed(bench, run_id, folder, go)


def test_an_emptied_folder_is_left_alone_and_told_of_as_lost(bench):
    run_id, folder, _ = begin(bench)
    assert bench.record(run_id)["status"] == "Running"
    bench.kill_owners(run_id)
    shutil.rmtree(folder)
    folder.mkdir()
    assert bench.record(run_id)["reason"] == "lost"
    assert list(folder.iterdir()) == []


def test_files_of_a_run_are_kept_young_and_those_of_its_script_keep_their_times(bench):
    run_id, folder, go = begin(bench)
    old = 1_000_000_000
    script = bench.there(run_id) / "t.py"
    ours = [folder / name for name in ("plan.json", "lock", "journal.jsonl", "metrics")]
    for path in [*ours, script, folder / "driver_log"]:
        os.utime(path, (old, old))
    os.kill(owners(folder)[0] or 0, signal.SIGHUP)
    wait_for(lambda: all(path.stat().st_mtime > old for path in ours), what="the files are touched")
    kept_files.touch_tree(str(folder / "work"))
    assert (script.stat().st_atime > old, script.stat().st_mtime) == (True, old)
    wait_for(lambda: (folder / "driver_log").stat().st_atime > old)
    assert (folder / "driver_log").stat().st_mtime == old
    unharmed(bench, run_id, folder, go)


def test_an_environment_in_use_is_not_removed_because_its_lock_is_gone(home):
    path = Path(home.environment("e1"))
    (path / "bin").mkdir(parents=True)
    (path / "bin" / "python").touch()
    (path / ".complete").write_text("{}")
    told, tell = os.pipe()
    user = os.fork()
    if user == 0:
        try:
            used = Environment(home, "e1")
            os.write(tell, b"%d" % used.use())
            signal.pause()
        finally:
            os._exit(1)
    try:
        assert os.read(told, 1) == b"1"
        Path(str(path) + ".lock").unlink()
        assert environment_list.listed(home, {})[0]["state"] == "in use"
        with pytest.raises(Refused, match="in use"):
            storage.remove(home, {"environment": "e1"})
        assert (path / ".complete").exists()
    finally:
        os.kill(user, signal.SIGKILL)
        os.waitpid(user, 0)
    storage.remove(home, {"environment": "e1"})
    assert not path.exists()


def test_the_user_of_an_environment_puts_its_lock_back(home):
    used, lock = used_environment(home)
    lock.unlink()
    used.keep()
    assert is_held_by_parent(lock)


def test_an_environment_s_lock_that_the_disk_cannot_give_ends_no_run_and_is_taken_later(home, monkeypatch):
    used, lock = used_environment(home)
    lock.unlink()

    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    before = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "lockf", refused)
        used.keep()
    assert len(os.listdir("/proc/self/fd")) == before
    used.keep()
    assert is_held_by_parent(lock)


def used_environment(home: Home) -> tuple[Environment, Path]:
    path = Path(home.environment("e1"))
    (path / "bin").mkdir(parents=True)
    (path / "bin" / "python").touch()
    (path / ".complete").write_text("{}")
    used = Environment(home, "e1")
    assert used.use()
    return used, Path(str(path) + ".lock")


def is_held_by_parent(lock: Path) -> bool:
    """Asked in a child: a process does not see its own locks."""
    child = os.fork()
    if child == 0:
        os._exit(0 if kernel.lock_holder(str(lock), USE_BYTE) == os.getppid() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_lock_that_is_made_again_during_the_look_is_a_held_one(home, make_living, monkeypatch):
    folder = Path(home.run("p", "r_1"))
    folder.mkdir(parents=True)
    JournalWriter(str(folder / "journal.jsonl")).begin(generation="g")

    def renewed(*_: object) -> None:
        if not (folder / "lock").exists():
            make_living(folder)

    monkeypatch.setattr(lost_locks.LostLocks, "holder", renewed)
    assert liveness.is_alive(str(folder))
    assert JournalWriter(str(folder / "journal.jsonl")).ended() is None


def test_what_a_run_was_given_is_kept_young_and_does_not_count_as_written(tmp_path):
    work = tmp_path / "work"
    (work / "d").mkdir(parents=True)
    (work / "d" / "given").write_text("x")
    (work / "link").symlink_to("d/given")
    os.mkfifo(work / "pipe")
    os.utime(work / "d" / "given", (5, 5))
    (tmp_path / "bound.json").touch()
    since = own_files.moment_after(os.lstat(work / "pipe").st_ctime_ns, str(tmp_path / "bound.json"))
    (tmp_path / "journal.jsonl").write_text(json.dumps({"t": 1, "e": "ready", "since": since}) + "\n")
    (work / "own").write_text("x")
    os.utime(work / "own", (5, 5))
    kept_files.touch_run(str(tmp_path))
    assert [each.stat().st_atime > 5 for each in (work / "d" / "given", work / "own")] == [True, True]
    assert [path for path, _ in own_files.own_files(str(work), since, [])] == ["own"]


@pytest.fixture
def kept(home) -> Iterator[kept_files.KeptFiles]:
    """Of a run that uses an environment; the next look but one is at all that it uses."""
    folder = Path(home.run("p", "r_1"))
    folder.mkdir(parents=True)
    JournalWriter(str(folder / "journal.jsonl")).append("environment", path=home.environment("e1"))
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
    files = kept_files.KeptFiles(home, str(folder), HeldLock(str(folder / "lock"), GUARDIAN_BYTE, descriptor))
    files.hold()
    for _ in range(kept_files.TREES_EVERY - 1):
        files.keep()
    yield files
    os.close(descriptor)


def test_what_a_run_uses_besides_is_kept_young_and_the_users_shared_files_are_left_alone(home, kept):
    script = Path(home.run("p", "r_1")) / "work" / "t.py"
    used = Path(home.environment("e1")) / "lib" / "module.py"
    shared = [Path(home.share("p")) / "data", Path(home.container_home()) / "model"]
    for path in (script, used, *shared):
        path.parent.mkdir(parents=True)
        path.touch()
        os.utime(path, (1e9, 1e9))
    kept.keep()
    (walker,) = kept.own()
    assert os.waitpid(walker, 0)[1] == 0
    assert all(path.stat().st_atime > 1e9 for path in (script, used))
    assert {path.stat().st_atime for path in shared} == {1e9}
    assert {path.stat().st_mtime for path in (script, used, *shared)} == {1e9}


def test_a_walk_in_a_dead_disk_is_not_waited_for_and_holds_nothing_of_the_run(kept, monkeypatch):
    def waits(*_: object) -> None:
        raise AssertionError("it may hang for ever")

    monkeypatch.setattr(kept_files, "touch_tree", lambda _: signal.pause())
    kept.keep()
    (walker,) = kept.own()
    wait_for(lambda: set(os.listdir(f"/proc/{walker}/fd")) <= {"0", "1", "2"}, what="it has closed what it inherited")
    with monkeypatch.context() as patched:
        patched.setattr(os, "waitpid", waits)
        kept.stop()
    assert kept.own() == {walker}, "it is not the run's, as long as it is there"
    os.waitpid(walker, 0)
    kept.ended(walker)
    assert kept.own() == set()


def test_a_walk_that_hangs_is_not_joined_by_another(kept, monkeypatch):
    monkeypatch.setattr(kept_files, "touch_tree", lambda _: signal.pause())
    kept.keep()
    first = kept.own()
    for _ in range(kept_files.TREES_EVERY):
        kept.keep()
    assert kept.own() == first
    kept.stop()
    (walker,) = first
    os.waitpid(walker, 0)


def test_a_time_that_cannot_be_set_is_told(tmp_path):
    (tmp_path / "file").touch()
    assert kernel.touch_read(str(tmp_path / "file"))
    assert not kernel.touch_read(str(tmp_path / "none"))
    assert len(kernel._TOUCHED) == 4 * ctypes.sizeof(ctypes.c_long)


def test_another_lock_and_a_deleted_file_do_not_make_a_held_environment(home):
    """On NFS a deleted file that is open gets a name beside the others."""
    folder = Path(home.environments())
    folder.mkdir(parents=True, exist_ok=True)
    with lock_held(folder / "e1.lock", USE_BYTE), (folder / ".nfs0001").open("w") as deleted:
        child = subprocess.Popen(
            [sys.executable, "-c", HOLDS, str(folder / "e2.lock"), str(USE_BYTE)],
            stdin=deleted,
            stdout=subprocess.PIPE,
        )
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == b"\n"
            lost = lost_locks.LostLocks()
            assert lost.holder(str(folder / "e3.lock"), USE_BYTE) is None
            (folder / "e2.lock").rename(folder / ".nfs0002")
            lost = lost_locks.LostLocks()
            assert lost.holder(str(folder / "e2.lock"), USE_BYTE) == child.pid
        finally:
            child.kill()
            child.communicate()


HOLDS = """
import fcntl, signal, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX, 1, int(sys.argv[2]))
print(flush=True)
signal.pause()
"""
