"""Which run a process belongs to, from a /proc that the test writes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast.farside.gpu.watch.process_owner import OTHER, OWN, UNMATCHED, Belonging
from holdfast.farside.system import kernel

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
        if name == "hf-guardian":
            (folder / "fd").mkdir(exist_ok=True)
            (folder / "fd" / "3").unlink(missing_ok=True)
            (folder / "fd" / "3").symlink_to("/home/me/.holdfast/runs/p/r/lock")

    def remove(self, pid: int) -> None:
        for file in (self.root / str(pid)).iterdir():
            file.unlink()

    def belonging(self, inside: Path | None = None) -> Belonging:
        return Belonging(GUARDIAN, GENERATION, None if inside is None else str(inside), str(self.root))


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    return Proc(tmp_path / "proc")


MARK = b"HOLDFAST_GENERATION=18d2721bfe8f"


@pytest.mark.parametrize(
    "rows",
    [
        [
            (102, 101, "python", b"", OWN),
            (103, 102, "a (strange) name", b"", OWN),
            (200, 1, "Xorg", b"", OTHER),
            (400, 401, "python", b"", OTHER),  # a chain that changed while it was read ends
            (401, 400, "python", b"", OTHER),
        ],
        [
            (110, 101, "hf-guardian", b"", OTHER),
            (111, 110, "python", b"", OTHER),
            (112, 111, "python", MARK + b"\0", OTHER),
        ],
        [
            (300, 1, "python", b"HOME=/\0" + MARK + b"\0A=b\0", OWN),
            (301, 1, "python", MARK + b"1\0", OTHER),
            (302, 1, "python", b"X" + MARK + b"\0", OTHER),
            (303, 1, "python", b"HOLDFAST_RUN_ID=18d2721bfe8f\0", OTHER),
        ],
        [
            (310, 1, "nvidia-cuda-mps", b"", UNMATCHED),
            (311, 1, "nvidia-cuda-mps-server", b"", UNMATCHED),
            (312, 101, "nvidia-cuda-mps", b"", OWN),
            (313, 1, "nvidia-smi", b"", OTHER),
        ],
    ],
    ids=[
        "descendants of the guardian are the run's and others are not",
        "what is below another guardian first is another run's",
        "what carries the mark is the run's wherever it hangs",
        "the server by which several share a device belongs to no run unless the run started it",
    ],
)
def test_whose_a_process_is(proc, rows):
    for pid, parent, name, environ, _ in rows:
        proc.add(pid, parent, name, environ=environ)
    belonging = proc.belonging()
    assert [belonging.of(row[0]) for row in rows] == [row[-1] for row in rows]
    assert belonging.of(999) == UNMATCHED


def test_another_process_with_the_guardians_pid_is_not_the_guardian(proc):
    belonging = proc.belonging()
    proc.add(GUARDIAN, 1, "sshd", start=99)
    proc.add(320, GUARDIAN)
    assert [belonging.of(pid) for pid in (GUARDIAN, 320)] == [OTHER, OTHER]


def test_what_was_the_runs_stays_the_runs_when_it_is_gone(proc):
    proc.add(102, 101)
    belonging = proc.belonging()
    assert belonging.of(102) == OWN
    proc.add(102, 1)  # its parents are gone
    assert belonging.of(102) == OWN
    proc.remove(102)
    assert belonging.of(102) == OWN


def test_a_process_is_looked_up_once_and_a_later_one_with_the_same_pid_anew(proc):
    proc.add(102, 101)
    proc.add(200, 1)
    belonging = proc.belonging()
    assert [belonging.of(pid) for pid in (102, 200)] == [OWN, OTHER]
    proc.add(102, 1, start=6)
    proc.add(200, 101)  # its parents are not read again
    assert [belonging.of(pid) for pid in (102, 200)] == [OTHER, OTHER]


def launcher(inside: Path) -> int:
    """The process that holds the lock."""
    return kernel.lock_holder(str(inside / "lock"), 0) or 0


@pytest.mark.parametrize(("group", "host"), [(DOCKER, HOST), (DOCKER_V1, HOST_V1)], ids=["v2", "v1"])
def test_what_is_in_the_containers_control_group_or_below_it_is_the_runs(group, host, proc, tmp_path, make_living):
    inside = make_living(tmp_path / "inside")
    first = launcher(inside)
    proc.add(GUARDIAN, 1, "hf-guardian", cgroup=host)
    proc.add(9_000_500, 1, "containerd-shim", cgroup=host)
    proc.add(first, 9_000_500, cgroup=group)
    proc.add(9_000_501, first, cgroup=group)
    proc.add(9_000_502, 9_000_500, "docker-exec", cgroup=group)
    proc.add(9_000_503, 9_000_500, cgroup=re.sub(r"(/\S*1234\S*)", r"\1/init", group))
    proc.add(9_000_505, 9_000_500, cgroup=group.replace("1234", "12345"))
    proc.add(9_000_506, 9_000_500, cgroup=host)
    belonging = proc.belonging(inside)
    assert [belonging.of(pid) for pid in (first, 9_000_501, 9_000_502, 9_000_503)] == [OWN, OWN, OWN, OWN]
    assert [belonging.of(pid) for pid in (9_000_505, 9_000_506)] == [OTHER, OTHER]


def test_a_control_group_that_the_guardian_is_in_too_proves_nothing(proc, tmp_path, make_living):
    inside = make_living(tmp_path / "inside")
    proc.add(launcher(inside), 1, cgroup=HOST)
    proc.add(9_000_600, 1, cgroup=HOST)
    assert proc.belonging(inside).of(9_000_600) == OTHER


def test_no_process_is_a_stranger_for_good_before_the_launcher_is_known(proc, tmp_path, make_living):
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "lock").touch()
    proc.add(9_000_700, 1, cgroup=DOCKER)
    belonging = proc.belonging(inside)
    assert belonging.of(9_000_700) == OTHER
    make_living(inside)
    proc.add(launcher(inside), 1, cgroup=DOCKER)
    assert belonging.of(9_000_700) == OWN


def test_another_process_with_the_launchers_pid_is_not_the_launcher(proc, tmp_path, make_living):
    inside = make_living(tmp_path / "inside")
    first = launcher(inside)
    proc.add(first, 1, cgroup=DOCKER)
    belonging = proc.belonging(inside)
    assert belonging.of(first) == OWN
    proc.add(first, 1, "sshd", start=99, cgroup=HOST)
    proc.add(9_000_800, first, cgroup=HOST)
    assert [belonging.of(pid) for pid in (first, 9_000_800)] == [OTHER, OTHER]
