"""Where a run's project lies, and what its files are called."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from holdfast.farside.operations import storage
from holdfast.farside.system.layout import Home
from holdfast.farside.system.own_files import written
from holdfast.farside.system.refusal import Refused
from holdfast.farside.system.working_tree import WorkingTree, tree_of
from holdfast.written_files import path_at_home, path_in_project

PLACE = "above/above/above/iris"
NAMES = {
    "work/above/above/above/iris/train.py": ("work/train.py", "train.py"),
    "work/above/above/above/logs/x": ("above/1/logs/x", "../logs/x"),
    "work/above/above/above/iris2": ("above/1/iris2", "../iris2"),
    "work/above/above/x": ("above/2/x", "../../x"),
    "work/above/x": ("above/3/x", "../../../x"),
    "work/x": ("above/4/x", "../../../../x"),
    "work/iris/x": ("above/4/iris/x", "../../../../iris/x"),
}


@pytest.mark.parametrize(("place", "name", "typed"), [(place, *both) for place, both in NAMES.items()])
def test_a_file_has_one_name_on_the_wire_and_one_for_people(place, name, typed):
    tree = WorkingTree("/run", PLACE)
    assert tree.path_of(name) == place
    assert os.path.relpath(place, f"work/{PLACE}") == typed
    if name.startswith("above/"):
        below = place.removeprefix("work/")
        assert (tree.above(below), tree.from_project(below)) == (name, typed)
        assert (path_at_home(typed), path_in_project(name)) == (name, typed)


def test_a_run_of_an_earlier_version_has_its_project_in_the_working_folder_itself(tmp_path):
    tree = tree_of(str(tmp_path))
    assert (tree.project, tree.path_of("work/a"), tree.path_of("uploads/a")) == (
        f"{tmp_path}/work",
        "work/a",
        "uploads/a",
    )
    (tmp_path / "plan.json").write_text('{"run": "iris_1"}')
    assert tree_of(str(tmp_path)).place == ""
    (tmp_path / "plan.json").unlink()
    (tmp_path / "plan.json").write_text(json.dumps({"place": PLACE}))
    assert tree_of(str(tmp_path)).place == PLACE, "what is remembered is of another plan"


@pytest.mark.parametrize("name", ["above/0/x", "above/5/x", "above/x", "above", "above/1/../x"])
def test_there_is_nothing_above_the_working_tree(name):
    with pytest.raises(Refused):
        WorkingTree("/run", PLACE).path_of(name)


def test_what_a_script_wrote_beside_the_project_is_listed_and_nothing_of_the_run_s_own(home: Home):
    folder = Path(home.run("p", "r"))
    tree = WorkingTree(str(folder), PLACE)
    for path in (
        "outputs/model",
        "own",
        "../logs/x",
        "../.cache/x",
        "../../up",
        "../../../../topmost",
        "../iris.egg/a",
    ):
        file = Path(os.path.normpath(Path(tree.project, path)))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("1")
    (folder / "plan.json").write_text(json.dumps({"place": PLACE}))
    (folder / "journal.jsonl").write_text('{"t": 1, "e": "ready", "since": 1}\n')
    assert [path for path, _ in written(tree, 1, {})] == [
        *("outputs/model", "own", "../iris.egg/a", "../logs/x", "../../up", "../../../../topmost"),
    ]
    message = {"project": "p", "run": "r", "roots": ["work/outputs", "work", "above"]}
    rows, problems = storage.list_files(home, message, lambda: None)
    assert ([row[0] for row in rows], problems) == (
        [
            *("work/outputs/model", "work/own", "above/1/iris.egg/a", "above/1/logs/x", "above/2/up"),
            "above/4/topmost",
        ],
        [],
    )
