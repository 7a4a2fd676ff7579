"""What a guardian does at the start of a run, and at its end."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from holdfast.farside.run import guardian, run_files, run_start
from holdfast.farside.run.run_group import RunGroup
from holdfast.farside.system import processes
from holdfast.farside.system.layout import SAMPLER_NAME, Home
from holdfast.farside.system.processes import Process
from holdfast.farside.system.refusal import Refused


def test_a_run_whose_plan_a_power_cut_took_is_known_by_its_journal(home):
    plan = {"format": 1, "project": "p", "run": "r_1", "generation": "g"}
    folder = Path(home.run("p", "r_1"))
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text("")
    run_files.write_created(str(folder), plan, "machine")

    assert run_start.start(home, plan, {}, {}) is False
    with pytest.raises(Refused, match="another run"):
        run_start.start(home, dict(plan, generation="other"), {}, {})


class Held:
    """Leases that the guardian has for its run."""

    is_closed = False

    def close(self) -> None:
        self.is_closed = True


def test_gpus_are_free_when_nothing_but_what_watches_them_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = processes.look(os.getpid())
    assert mine is not None
    script, sampler = Process(1, "1", SAMPLER_NAME, "D", 1), mine  # a name proves nothing
    left = [[sampler, script], [sampler], []]
    held, seen, exit_ = Held(), [], os._exit
    told, tell = os.pipe()

    def descendants(*_: object) -> list[Process]:
        seen.append(held.is_closed)
        return left.pop(0)

    def ended(code: int) -> None:
        os.write(tell, json.dumps(seen).encode())
        exit_(code)

    child = os.fork()
    if child == 0:
        try:
            owner = guardian.Guardian(Home(str(tmp_path)), str(tmp_path), {}, {}, tell, RunGroup())
            owner.held = held
            owner.helpers.add(sampler.pid)
            owner.journal.append("ended", reason="completed")
            monkeypatch.setattr(owner, "_become_supervisor", lambda pipe: exit_(0))
            monkeypatch.setattr(owner, "_tick", lambda *_: None)
            monkeypatch.setattr(processes, "descendants", descendants)
            monkeypatch.setattr(os, "_exit", ended)
            owner.main()
        finally:
            exit_(70)
    os.close(tell)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert json.loads(os.read(told, 100)) == [False, False, True]
    os.close(told)
