"""Starting a run that is there already."""

from pathlib import Path

import pytest

from holdfast.farside.refusal import Refused
from holdfast.farside.run import guardian


def test_a_run_whose_plan_a_power_cut_took_is_known_by_its_journal(home):
    plan = {"format": 1, "project": "p", "run": "r_1", "generation": "g"}
    folder = Path(home.run("p", "r_1"))
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text("")
    guardian.write_created(str(folder), plan, "machine")

    assert guardian.start(home, plan, {}, {}) is False
    with pytest.raises(Refused, match="another run"):
        guardian.start(home, dict(plan, generation="other"), {}, {})
