"""Out of memory is said only with proof."""

from __future__ import annotations

import os

from holdfast.farside.run import memory
from holdfast.farside.run.memory import Witness


def _witness(monkeypatch, tmp_path, before: int, after: int, members: set[int], log: list[int]):
    counter = tmp_path / "memory.events"
    counter.write_text(f"low 0\noom 0\noom_kill {before}\n")
    (tmp_path / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in members))
    monkeypatch.setattr(memory, "_counter_file", lambda: str(counter))
    monkeypatch.setattr(memory, "_kernel_log", lambda: None if log is None else 99)
    monkeypatch.setattr(memory, "_killed_since", lambda descriptor: log)
    witness = Witness()
    counter.write_text(f"low 0\noom 1\noom_kill {after}\n")
    return witness


def test_the_kernels_log_that_names_the_process_is_proof(monkeypatch, tmp_path):
    witness = _witness(monkeypatch, tmp_path, 0, 0, set(), [41, 42])
    assert witness.verdict(42) == (True, "The kernel's log names the process.")
    assert witness.verdict(43)[0] is False


def test_a_counter_that_rose_in_the_runs_own_group_is_proof(monkeypatch, tmp_path):
    witness = _witness(monkeypatch, tmp_path, 3, 4, {os.getpid(), os.getppid()}, [])
    assert witness.verdict(42)[0] is True


def test_a_counter_that_rose_in_a_group_with_others_is_no_proof_but_said(monkeypatch, tmp_path):
    witness = _witness(monkeypatch, tmp_path, 3, 4, {1, os.getpid()}, [])
    proven, detail = witness.verdict(42)
    assert not proven
    assert "which one is not known" in detail


def test_a_counter_that_did_not_rise_says_nothing(monkeypatch, tmp_path):
    assert _witness(monkeypatch, tmp_path, 3, 3, {os.getpid()}, []).verdict(42) == (False, "")


def test_both_spellings_of_the_kernels_sentence_are_understood(monkeypatch):
    lines = [
        b"3,1,2,-;Memory cgroup out of memory: Killed process 77 (python3) total-vm:1kB\n",
        b"3,2,3,-;Out of memory: Killed process 78 (x)\n",
        b"6,3,4,-;something else 79\n",
    ]
    monkeypatch.setattr(os, "read", lambda descriptor, size: lines.pop(0) if lines else b"")
    assert memory._killed_since(5) == [77, 78]
