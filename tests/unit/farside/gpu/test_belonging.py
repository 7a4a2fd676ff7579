"""Whose a process is, from a /proc that is written for the test."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.farside import kernel
from holdfast.farside.gpu.watching.belonging import OTHER, OWN, UNMATCHED, Belonging

GUARDIAN = 100
GENERATION = "18d2721bfe8f"
DOCKER = "0::/system.slice/docker-1234.scope\n"
DOCKER_V1 = "12:memory:/docker/1234\n11:cpu,cpuacct:/docker/1234\n1:name=systemd:/docker/1234\n0::/\n"
HOST = "0::/user.slice/user-1000.slice/session-2.scope\n"
HOST_V1 = "12:memory:/\n11:cpu,cpuacct:/\n1:name=systemd:/user.slice\n0::/\n"


class Proc:
    """Processes as files: `add(pid, parent)`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.add(1, 0, "systemd")
        self.add(GUARDIAN, 1, "hf-guardian", cgroup=HOST)
        self.add(101, GUARDIAN, "python3", cgroup=HOST)

    def add(
        self, pid: int, parent: int, name: str = "python", start: int = 5, cgroup: str = "", environ: bytes = b""
    ) -> None:
        folder = self.root / str(pid)
        folder.mkdir(parents=True, exist_ok=True)
        rest = ["S", str(parent), *("0" for _ in range(17)), str(start), "0", "0"]
        (folder / "stat").write_text(f"{pid} ({name}) {' '.join(rest)}\n")
        (folder / "cgroup").write_text(cgroup)
        (folder / "environ").write_bytes(environ)

    def remove(self, pid: int) -> None:
        for file in (self.root / str(pid)).iterdir():
            file.unlink()

    def belonging(self, inside_lock: Path | None = None) -> Belonging:
        return Belonging(GUARDIAN, GENERATION, None if inside_lock is None else str(inside_lock), str(self.root))


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path / "proc")


def test_descendants_of_the_guardian_are_the_runs_and_others_are_not(proc: Proc) -> None:
    proc.add(102, 101)
    proc.add(103, 102, "a (strange) name")
    proc.add(200, 1, "Xorg")
    belonging = proc.belonging()
    assert [belonging.of(pid) for pid in (102, 103, 200, 999)] == [OWN, OWN, OTHER, UNMATCHED]


def test_what_is_below_another_guardian_first_is_another_runs(proc: Proc) -> None:
    proc.add(110, 101, "hf-guardian")
    proc.add(111, 110)
    proc.add(112, 111, environ=b"HOLDFAST_GENERATION=18d2721bfe8f\0")
    belonging = proc.belonging()
    assert [belonging.of(pid) for pid in (111, 112)] == [OTHER, OTHER]


def test_what_carries_the_mark_is_the_runs_wherever_it_hangs(proc: Proc) -> None:
    proc.add(300, 1, environ=b"HOME=/\0HOLDFAST_GENERATION=18d2721bfe8f\0A=b\0")
    proc.add(301, 1, environ=b"HOLDFAST_GENERATION=18d2721bfe8f1\0")
    proc.add(302, 1, environ=b"XHOLDFAST_GENERATION=18d2721bfe8f\0")
    proc.add(303, 1, environ=b"HOLDFAST_RUN_ID=18d2721bfe8f\0")
    belonging = proc.belonging()
    assert [belonging.of(pid) for pid in (300, 301, 302, 303)] == [OWN, OTHER, OTHER, OTHER]


def test_the_server_by_which_several_share_a_device_is_nobodys_unless_the_run_started_it(proc: Proc) -> None:
    proc.add(310, 1, "nvidia-cuda-mps")
    proc.add(311, 1, "nvidia-cuda-mps-server")
    proc.add(312, 101, "nvidia-cuda-mps")
    proc.add(313, 1, "nvidia-smi")
    belonging = proc.belonging()
    assert [belonging.of(pid) for pid in (310, 311, 312, 313)] == [UNMATCHED, UNMATCHED, OWN, OTHER]


def test_another_process_with_the_guardians_pid_is_not_the_guardian(proc: Proc) -> None:
    belonging = proc.belonging()
    proc.add(GUARDIAN, 1, "sshd", start=99)
    proc.add(320, GUARDIAN)
    assert [belonging.of(pid) for pid in (GUARDIAN, 320)] == [OTHER, OTHER]


def test_what_was_the_runs_stays_the_runs_when_it_is_gone(proc: Proc) -> None:
    proc.add(102, 101)
    belonging = proc.belonging()
    assert belonging.of(102) == OWN
    proc.add(102, 1)  # its parents are gone
    assert belonging.of(102) == OWN
    proc.remove(102)
    assert belonging.of(102) == OWN


def test_a_later_process_with_the_same_pid_is_looked_up_anew(proc: Proc) -> None:
    proc.add(102, 101)
    belonging = proc.belonging()
    assert belonging.of(102) == OWN
    proc.add(102, 1, start=6)
    assert belonging.of(102) == OTHER


def test_a_process_is_looked_up_once(proc: Proc) -> None:
    proc.add(200, 1)
    belonging = proc.belonging()
    assert belonging.of(200) == OTHER
    proc.add(200, 101)  # nobody asks again who is above it
    assert belonging.of(200) == OTHER


def test_a_chain_that_changes_while_it_is_read_ends(proc: Proc) -> None:
    proc.add(400, 401)
    proc.add(401, 400)
    assert proc.belonging().of(400) == OTHER


def launcher(inside: Path) -> int:
    """The process that holds the lock."""
    return kernel.lock_holder(str(inside / "lock"), 0) or 0


@pytest.mark.parametrize(("group", "host"), [(DOCKER, HOST), (DOCKER_V1, HOST_V1)], ids=["v2", "v1"])
def test_what_is_in_the_containers_control_group_or_below_it_is_the_runs(
    group: str, host: str, proc: Proc, tmp_path: Path, make_living: Callable[[Path], Path]
) -> None:
    inside = make_living(tmp_path / "inside")
    first = launcher(inside)
    proc.add(GUARDIAN, 1, "hf-guardian", cgroup=host)
    proc.add(500, 1, "containerd-shim", cgroup=host)
    proc.add(first, 500, cgroup=group)
    proc.add(501, first, cgroup=group)
    proc.add(502, 500, "docker-exec", cgroup=group)
    proc.add(503, 500, cgroup=re.sub(r"(/\S*1234\S*)", r"\1/init", group))
    proc.add(505, 500, cgroup=group.replace("1234", "12345"))
    proc.add(506, 500, cgroup=host)
    belonging = proc.belonging(inside / "lock")
    assert [belonging.of(pid) for pid in (first, 501, 502, 503)] == [OWN, OWN, OWN, OWN]
    assert [belonging.of(pid) for pid in (505, 506)] == [OTHER, OTHER]


def test_a_control_group_that_the_guardian_is_in_too_proves_nothing(
    proc: Proc, tmp_path: Path, make_living: Callable[[Path], Path]
) -> None:
    inside = make_living(tmp_path / "inside")
    proc.add(launcher(inside), 1, cgroup=HOST)
    proc.add(600, 1, cgroup=HOST)
    assert proc.belonging(inside / "lock").of(600) == OTHER


def test_nobody_is_a_stranger_for_good_before_the_launcher_is_known(
    proc: Proc, tmp_path: Path, make_living: Callable[[Path], Path]
) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "lock").touch()
    proc.add(700, 1, cgroup=DOCKER)
    belonging = proc.belonging(inside / "lock")
    assert belonging.of(700) == OTHER
    make_living(inside)
    proc.add(launcher(inside), 1, cgroup=DOCKER)
    assert belonging.of(700) == OWN


def test_another_process_with_the_launchers_pid_is_not_the_launcher(
    proc: Proc, tmp_path: Path, make_living: Callable[[Path], Path]
) -> None:
    inside = make_living(tmp_path / "inside")
    first = launcher(inside)
    proc.add(first, 1, cgroup=DOCKER)
    belonging = proc.belonging(inside / "lock")
    assert belonging.of(first) == OWN
    proc.add(first, 1, "sshd", start=99, cgroup=HOST)
    proc.add(800, first, cgroup=HOST)
    assert [belonging.of(pid) for pid in (first, 800)] == [OTHER, OTHER]
