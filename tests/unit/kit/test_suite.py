"""What the plugins of the suite say and choose."""

from __future__ import annotations

import pytest

from kit.suite import missing_parts, progress, proven
from kit.suite.moments import Moment

pytestmark = pytest.mark.kit


def test_what_was_left_out_is_a_table_with_the_line_to_type(monkeypatch):
    monkeypatch.setattr(missing_parts, "absent_pythons", lambda: ["3.6", "3.7"])
    reasons = ["Skipped: needs dockerd, debootstrap", "Skipped: needs dockerd, debootstrap", "Skipped: needs root"]
    rows = missing_parts.table([*reasons, "Skipped: not on this system"])
    assert [row.split() for row in rows] == [
        ["2", "need", "dockerd,", "debootstrap", "sudo", "apt-get", "install", "debootstrap", "docker.io"],
        ["1", "need", "root", "sudo", "make", "test"],
        ["Not", "tested", "with", "Python", "3.6,", "3.7.", "Install", "them", "with", "pyenv."],
    ]
    monkeypatch.setattr(missing_parts, "absent_pythons", list)
    assert missing_parts.table(["Skipped: not on this system"]) == []


def test_every_program_that_is_asked_for_has_a_package():
    known = {program for program, _ in missing_parts.known_packages()}
    assert {"dockerd", "docker", "sshd", "csh", "fish", "zsh", "gcc", "faketime", "debootstrap"} <= known


@pytest.mark.parametrize(
    ("nodeid", "part"),
    [
        ("tests/unit/farside/gpu/test_leases.py::test_x[a/b]", "unit/farside"),
        ("tests/contract/test_hosts.py::test_x", "contract"),
        ("tests/integration/test_readme.py::test_x", "integration"),
    ],
)
def test_progress_is_told_by_folder(nodeid, part):
    assert progress._part(nodeid) == part


def test_a_moment_waits_in_a_soak_only(monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    Moment("created", 3, is_soak=False).pause(0.3)
    assert slept == []
    Moment("created", 3, is_soak=True).pause(0.3)
    assert 0 <= slept[0] <= 0.3


def test_a_change_of_the_kit_is_noticed(monkeypatch, tmp_path):
    for name in ("tests/kit", "tests/integration/suite", "bench"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setattr(proven, "ROOT", tmp_path)
    monkeypatch.setattr(proven, "NOTE", tmp_path / "tests/kit/proven")
    (tmp_path / "tests/kit/a.py").write_text("1")
    assert not proven.is_proven()
    proven.NOTE.write_text(proven.digest() + "\n")
    assert proven.is_proven()
    (tmp_path / "bench/b.py").write_text("2")
    assert not proven.is_proven()
