"""A full disk at each step: a small file system for the host's folder or for the project."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kit.disks import fill
from kit.suite.missing_parts import leave_out
from kit.waiting import wait_for


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[Path, int], None]]:
    """Mounts a file system of this many kilobytes at a folder, with its files of `aml_config`; unmounts it at the
    end."""
    mounted: list[Path] = []

    def mount(folder: Path, kilobytes: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        owner = folder.parent.stat().st_uid
        kept = {each.name: each.read_bytes() for each in folder.glob("aml_config/*")}
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k,mode=700,uid={owner}", "tmpfs", str(folder)],
            capture_output=True,
        )
        if done.returncode != 0:
            leave_out("the right to mount")
        mounted.append(folder)
        for name, content in kept.items():
            (folder / "aml_config").mkdir(exist_ok=True)
            (folder / "aml_config" / name).write_bytes(content)

    yield mount
    for folder in reversed(mounted):
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_project_disk_refuses_the_submit_and_leaves_no_half_record(bench, target, small_disk):
    small_disk(bench.root, 512)
    bench.write("t.py", "print(1)")
    fill(bench.root)
    result = bench.submit("t.py")
    assert result.code == 244, result.err
    assert "No space left" in result.err
    runs = bench.root / ".holdfast" / "runs"
    assert not runs.exists() or not [each for each in runs.iterdir() if not each.name.endswith(".new")]
    assert not list(bench.home.glob("runs/*/*"))


def test_a_full_host_refuses_the_start_and_the_record_says_so(bench, target, small_disk):
    bench.write("t.py", "print(1)")
    bench.submit("t.py")
    small_disk(bench.home, 4000)
    if target == "local":
        bench.run("project", "trust", "--yes")  # what the home knew of the project is below the disk
    bench.write("u.py", "print(2)")
    assert bench.submit("u.py").code == 0
    filler = fill(bench.home)
    result = bench.submit("u.py")
    assert result.code == 244, result.err
    assert bench.record()["reason"] in ("not-started", "storage")
    filler.unlink()
    assert bench.submit("u.py").code == 0, "and all is well when there is room again"


def test_a_host_disk_that_fills_up_during_the_run_holds_the_output_back_and_loses_nothing(bench, target, small_disk):
    bench.home.mkdir(parents=True, exist_ok=True)
    small_disk(bench.home, 4000)
    bench.write(
        "t.py",
        """
        import os, time
        print("up", flush=True)
        while not os.path.exists(os.environ["HOLDFAST_RUN_DIRECTORY"] + "/go"):
            time.sleep(0.01)
        for number in range(2000):
            print("line", number, "x" * 100)
        """,
    )
    run_id = bench.start("t.py")
    wait_for(lambda: (bench.far(run_id) / "driver_log").read_bytes() == b"up\n")
    (bench.far(run_id) / "soon").write_text("")
    filler = fill(bench.home)
    (bench.far(run_id) / "soon").rename(bench.far(run_id) / "go")
    wait_for(lambda: bench.far(run_id).joinpath("driver_log").stat().st_size >= 3 and _is_waiting(bench, run_id))
    filler.unlink()
    expected = "up\n" + "".join(f"line {number} {'x' * 100}\n" for number in range(2000))
    result = bench.run("logs", "-f", "-r", run_id)
    assert (result.code, result.out) == (0, expected)


def _is_waiting(bench, run_id: str) -> bool:
    """The script has ended or is stuck in a write, and the log does not grow: the disk is full."""
    return os.statvfs(bench.home).f_bavail == 0


def test_a_script_that_fills_the_disk_itself_still_gets_its_end_recorded(bench, target, small_disk):
    bench.home.mkdir(parents=True, exist_ok=True)
    small_disk(bench.home, 4000)
    bench.write("t.py", "f = open('big', 'wb', buffering=0)\nwhile True:\n    f.write(b'x' * 4096)\n")
    run_id = bench.start("t.py")
    ended = bench.event(run_id, "ended")
    assert (ended["reason"], ended["code"]) == ("exit-code", 1)
    assert any("others" in event for event in bench.journal(run_id))


def test_outputs_that_do_not_fit_at_home_stay_on_the_host_and_come_when_there_is_room(bench, target, small_disk):
    small_disk(bench.root, 700)
    bench.write("t.py", "open('outputs/big', 'wb').write(b'x' * 2000000)\n")
    result = bench.submit("t.py")
    assert result.code == 244, result.err
    assert "kept on their machine" in result.err
    run_id = next(each.name for each in (bench.root / ".holdfast" / "runs").iterdir())
    kept = bench.run("experiment", "clean", "--all")
    assert "not at home yet" in kept.err
    assert (bench.there(run_id) / "outputs/big").stat().st_size == 2000000
    subprocess.run(["mount", "-o", "remount,size=8m", str(bench.root)], check=True)
    assert bench.run("logs", "-f", "-r", run_id).code == 0
    assert (bench.near(run_id) / "outputs/big").stat().st_size == 2000000


def test_clean_keeps_outputs_that_were_not_fetched(bench, target, obeying_modes):
    bench.write("t.py", "open('outputs/x', 'w').write('x')\n")
    run_id = bench.start("t.py")
    bench.event(run_id, "ended")
    near = bench.near(run_id)
    near.chmod(0o555)
    result = obeying_modes(bench.root, "experiment", "clean", "--all")
    assert "removed" not in result.err.replace("0 removed", "")
    assert (bench.there(run_id) / "outputs/x").exists()
    near.chmod(0o755)
    assert "removed" in bench.run("experiment", "clean", "--all").err
    assert (near / "outputs/x").read_text() == "x", "fetched first, then removed"
