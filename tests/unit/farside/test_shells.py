"""What a shell in a run's environment finds."""

import json
from pathlib import Path

import pytest

from holdfast.farside.operations.shells import prepare
from holdfast.farside.system.layout import INSIDE
from holdfast.farside.system.refusal import Refused

MESSAGE = {"project": "0123456789abcdef0123456789abcdef", "run": "cats_1"}


def test_a_shell_has_all_that_the_script_had_but_the_runs_mark(home):
    """What a person starts there does not belong to the run, and must not end with it."""
    folder = Path(home.run(MESSAGE["project"], MESSAGE["run"]))
    folder.mkdir(parents=True)
    variables = {"HOLDFAST_RUN_ID": "cats_1", "COLOUR": "red"}
    environment = {**variables, "HOLDFAST_GENERATION": "18d2721bfe8f"}
    command = {
        "argv": ["/usr/bin/python3", "train.py"],
        "python": "/usr/bin/python3",
        "directory": "/srv/cats",
        "environment": environment,
    }
    (folder / "bound.json").write_text(json.dumps(command))
    found = prepare(home, MESSAGE)
    description = json.loads((Path(home.path) / "shells" / found["token"]).read_text())
    assert (description["environment"], description["directory"]) == (variables, "/srv/cats")


def test_a_run_in_a_container_whose_plan_is_damaged_gets_no_shell_on_the_host(home):
    folder = Path(home.run(MESSAGE["project"], MESSAGE["run"]))
    (folder / INSIDE).mkdir(parents=True)
    (folder / "bound.json").write_text(json.dumps({"python": "p", "directory": "/srv", "environment": {}}))
    (folder / "plan.json").write_text("{")
    with pytest.raises(Refused) as refused:
        prepare(home, MESSAGE)
    assert refused.value.kind == "not-ready"
