"""Out of memory is reported only with proof."""

import os

import pytest

from holdfast.farside.run import bare_run
from holdfast.farside.run.bare_run import Witness

STRANGER = (1 << 22) + 1
"""No process has that id: it is larger than any that Linux assigns."""


@pytest.mark.parametrize(
    ("after", "members", "log", "is_proven", "detail"),
    [
        (3, set(), [41, 42], True, "The kernel's log names the process."),
        (3, set(), [41, 43], False, ""),
        (4, {os.getpid(), os.getppid()}, [], True, ""),
        (4, {STRANGER, os.getpid()}, [], False, "which one is not known"),
        (3, {os.getpid()}, [], False, None),
    ],
    ids=[
        "the kernel's log names the process",
        "it names others",
        "the counter rose in the run's own group",
        "it rose in a group with others",
        "it did not rise",
    ],
)
def test_only_what_names_the_process_or_its_own_group_is_proof(
    monkeypatch, tmp_path, after, members, log, is_proven, detail
):
    counter = tmp_path / "memory.events"
    counter.write_text("low 0\noom 0\noom_kill 3\n")
    (tmp_path / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in members))
    monkeypatch.setattr(bare_run, "_counter_file", lambda: str(counter))
    monkeypatch.setattr(bare_run, "_kernel_log", lambda: 99)
    monkeypatch.setattr(bare_run, "_killed_since", lambda descriptor: log)
    witness = Witness()
    counter.write_text(f"low 0\noom 1\noom_kill {after}\n")
    proven, said = witness.verdict(42)
    assert proven is is_proven
    assert said == "" if detail is None else detail in said


def test_both_spellings_of_the_kernels_sentence_are_understood(monkeypatch):
    lines = [
        b"3,1,2,-;Memory cgroup out of memory: Killed process 77 (python3) total-vm:1kB\n",
        b"3,2,3,-;Out of memory: Killed process 78 (x)\n",
        b"6,3,4,-;something else 79\n",
    ]
    monkeypatch.setattr(os, "read", lambda descriptor, size: lines.pop(0) if lines else b"")
    assert bare_run._killed_since(5) == [77, 78]
