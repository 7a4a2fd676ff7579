"""A script that wants something of itself to outlive the run: what ends all the same, and what counts as its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.farside.gpu.watch.process_owner import OWN, Belonging
from holdfast.farside.run import run_group
from integration.runs.conftest import Bench, is_gone
from kit.waiting import wait_for

HIDES = """
    import os, signal, sys, time
    KILLS
    pid = os.fork()
    if pid == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        os.execve(sys.executable, [sys.executable, "-c", PROGRAM, PIDS], {})
    os.waitpid(pid, 0)
    while not os.path.exists(PIDS):
        time.sleep(0.01)
    print("hidden", flush=True)
    if KILL:
        supervisor = os.getppid()
        guardian = int(open("/proc/%d/stat" % supervisor).read().rpartition(")")[2].split()[1])
        os.kill(guardian, signal.SIGKILL)
        os.kill(supervisor, signal.SIGKILL)
    time.sleep(600)
"""
STAYS = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1] + ".new", "w").write(str(os.getpid())); os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(600)
"""
ROTATES = """
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1] + ".new", "w").write(str(os.getpid())); os.rename(sys.argv[1] + ".new", sys.argv[1])
while True:
    if os.fork():
        os._exit(0)
    os.setsid()
"""


@pytest.fixture
def groups() -> Path:
    """Where groups of runs are made: as the machine has them or, in this suite's own mount namespace, mounted here."""
    if not run_group.group_above():
        folder = Path(run_group.ROOTS[-1])
        folder.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "cgroup2", "none", str(folder)], check=True)
    return Path(run_group.group_above())


def hidden(bench: Bench, program: str, kill: bool) -> tuple[str, int]:
    """A run with a process that left its parents, its session, its output and its environment; run and pid."""
    pids = bench.root / "pid"
    head = f"PROGRAM, PIDS, KILL = {program!r}, {str(pids)!r}, {kill}\n"
    body = "\n".join(line[4:] for line in HIDES.replace("KILLS", "").splitlines())
    bench.write("t.py", head + body)
    run_id = bench.start("t.py")
    return run_id, int(wait_for(pids.read_text))


def group_of(bench: Bench, run_id: str) -> Path:
    return Path(bench.event(run_id, "created")["group"])


def test_a_script_that_kills_its_owners_and_clears_an_environment_leaves_nothing_behind(bench, groups):
    run_id, pid = hidden(bench, STAYS, kill=True)
    group = group_of(bench, run_id)
    assert group.parent == groups
    assert bench.record(run_id)["reason"] == "supervisor-died"
    wait_for(lambda: is_gone(pid), what="the hidden process is gone")
    assert [pid, "SIGKILL"] in [[each[0], each[2]] for each in bench.event(run_id, "swept")["processes"]]
    assert not group.exists()


@pytest.mark.parametrize("victims", [(1,), ()], ids=["its supervisor is killed", "it is canceled"])
def test_a_process_that_forks_quicker_than_it_is_looked_for_ends(bench, groups, victims):
    run_id, _ = hidden(bench, ROTATES, kill=False)
    group = group_of(bench, run_id)
    assert len(group.joinpath("cgroup.procs").read_text().split()) >= 1
    for byte in victims:
        os.kill(bench.holder(run_id, byte), signal.SIGKILL)
    if not victims:
        assert bench.run("cancel", "-r", run_id, "--grace", "0").code == 0
    bench.event(run_id, "ended")
    bench.until_left(run_id)
    assert not group.exists()


def test_owners_and_runs_that_the_script_started_are_not_in_its_group(bench, groups):
    bench.write("inner.py", "import time\nprint('inner', flush=True)\ntime.sleep(600)\n")
    outer = f"""
    import subprocess, sys, time
    argv = [{sys.executable!r}, "-m", "holdfast", "submit", "-a", "inner.py"]
    told = subprocess.run(argv, cwd={str(bench.root)!r}, capture_output=True, text=True)
    open({str(bench.root / "inner-id")!r}, "w").write(told.stdout.strip())
    print(told.stderr, "up", flush=True)
    time.sleep(600)
    """
    outer_id = bench.begin(outer, until="up\n")
    inner_id = (bench.root / "inner-id").read_text()
    group = group_of(bench, outer_id)
    assert group_of(bench, inner_id).parent == groups
    guardians = {bench.holder(each, 0) for each in (outer_id, inner_id)}
    inside = {int(line) for line in (group / "cgroup.procs").read_text().split()}
    assert bench.holder(outer_id, 1) in inside
    assert not inside & {*guardians, bench.holder(inner_id, 1)}
    bench.kill_owners(outer_id)
    assert bench.record(outer_id)["reason"] == "supervisor-died"
    assert bench.record(inner_id)["status"] == "Running"
    assert bench.run("cancel", "-r", inner_id, "--grace", "0").code == 0
    bench.until_left()


def test_a_journal_that_names_another_group_ends_nothing_in_it(bench, groups):
    """A script may write to its journal."""
    other = groups / f"other-{os.getpid()}-{os.urandom(3).hex()}"
    other.mkdir()
    victim = subprocess.Popen(["sleep", "600"])
    (other / "cgroup.procs").write_text(str(victim.pid))
    run_id = bench.begin("import time\nprint('up', flush=True)\ntime.sleep(600)\n")
    journal = bench.far(run_id) / "journal.jsonl"
    events = bench.journal(run_id)
    events[0]["group"] = str(other)
    journal.write_text("".join(json.dumps(each) + "\n" for each in events))
    bench.kill_owners(run_id)
    assert bench.record(run_id)["reason"] == "supervisor-died"
    assert victim.poll() is None
    victim.kill()
    victim.wait()
    other.rmdir()


def test_without_such_a_group_a_run_is_as_it_was(bench, monkeypatch):
    """Where nothing may be made, as on most login nodes."""
    monkeypatch.setattr(run_group, "ROOTS", ())
    assert run_group.make("g").path == ""
    monkeypatch.setattr(run_group, "ROOTS", ("/proc",))  # a file system that takes no folder
    assert run_group.make("g").path == ""
    group = run_group.RunGroup()
    group.enter(os.getpid())
    group.kill(set)
    assert (group.end(set), group.members()) == ([], set())


def test_no_group_is_made_in_a_hierarchy_in_which_this_process_is_not(groups, monkeypatch, tmp_path):
    """What is mounted may be the machine's, and this process in a container with limits of its own."""
    (tmp_path / "cgroup.procs").write_text("1\n")
    monkeypatch.setattr(run_group, "ROOTS", (str(tmp_path),))
    assert run_group.make("g").path == ""
    assert [each.name for each in tmp_path.iterdir()] == ["cgroup.procs"]


def test_a_kernel_that_cannot_kill_a_group_at_once_has_it_emptied_all_the_same(groups, monkeypatch):
    """Before Linux 5.14."""
    write = run_group._write
    monkeypatch.setattr(
        run_group, "_write", lambda folder, name, number: name != "cgroup.kill" and write(folder, name, number)
    )
    group = run_group.make(f"attack-{os.getpid()}-{os.urandom(3).hex()}")
    living = [subprocess.Popen(["sleep", "600"]) for _ in range(3)]
    spared, *others = living
    for each in living:
        group.enter(each.pid)
    ended = group.end(lambda: {spared.pid})
    assert {each.pid for each in ended} == {each.pid for each in others}
    assert [each.wait() for each in others] == [-signal.SIGKILL] * 2
    assert spared.poll() is None
    group.end(set)
    assert spared.wait() == -signal.SIGKILL
    group.remove()
    assert not os.path.exists(group.path)


def named(name: str, ready: Path) -> str:
    program = (
        f"import ctypes, time; ctypes.CDLL(None).prctl(15, {name.encode()!r}, 0, 0, 0); open({str(ready)!r}, 'w'); "
    )
    return program + "time.sleep(600)"


@pytest.mark.parametrize("name", ["hf-sampler", "hf-guardian", "hf-gpus", "conmon"])
@pytest.mark.parametrize("victims", [(), (1,)], ids=["at the end", "after the supervisor's death"])
def test_a_process_is_not_spared_for_its_name(bench, name, victims):
    ready = bench.root / "ready"
    script = f"""
    import os, subprocess, sys, time
    left = subprocess.Popen([sys.executable, "-c", {named(name, ready)!r}], start_new_session=True)
    while not os.path.exists({str(ready)!r}):
        time.sleep(0.01)
    print(left.pid, flush=True)
    print("up", flush=True)
    time.sleep(600 if {bool(victims)} else 0)
    """
    run_id = bench.begin(script)
    pid = int((bench.far(run_id) / "driver_log").read_text().split()[0])
    for byte in victims:
        os.kill(bench.holder(run_id, byte), signal.SIGKILL)
    bench.event(run_id, "ended")
    assert is_gone(pid)
    assert [pid, name] in [each[:2] for each in bench.event(run_id, "swept")["processes"]]


def test_gpu_work_of_a_process_called_guardian_is_the_runs(tmp_path):
    ready = tmp_path / "ready"
    process = subprocess.Popen(["python3", "-c", named("hf-guardian", ready)])
    wait_for(ready.exists)
    assert Belonging(os.getpid(), "g").of(process.pid) == OWN
    process.kill()
    process.wait()


GUARDIAN = """
import os, signal, subprocess, time
from holdfast.farside.run.guarded import Helpers
from holdfast.farside.system import kernel, processes
kernel.become_subreaper()
helpers = Helpers()
told, tell = os.pipe()
supervisor = os.fork()
if supervisor == 0:
    sampler, script = (subprocess.Popen(["sleep", "600"], start_new_session=True).pid for _ in range(2))
    helpers.add(sampler)
    os.write(tell, b"%d %d" % (sampler, script))
    os._exit(0)
sampler, script = map(int, os.read(told, 100).split())
os.waitpid(supervisor, 0)
def tick(seconds):
    while os.waitpid(-1, os.WNOHANG)[0]:
        pass
ended = processes.sweep(5.0, tick, processes.SweepRules(own=helpers.pids))
print([each.pid for each in ended] == [script], helpers.pids() == {sampler})
os.kill(sampler, signal.SIGKILL)
os.waitpid(sampler, 0)
print(helpers.pids())
"""


def test_a_sampler_whose_supervisor_was_killed_is_not_called_the_scripts():
    """It outlives its supervisor here, as one that a sick driver holds."""
    done = subprocess.run([sys.executable, "-c", GUARDIAN], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("True True\nset()\n", "")
