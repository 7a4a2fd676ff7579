"""`history info`, `list` and `compare` as people read them: order, width, what they leave out."""

from __future__ import annotations

import json

import pytest

from holdfast.cli import terminal
from holdfast.cli.gpu_plot import gpus_over_time
from holdfast.cli.tables import draw_page, fitting, left_out
from holdfast.history.records import read_run
from holdfast.presenting.run_page import rows
from holdfast.presenting.run_words import table
from holdfast.project.folder import Project
from holdfast.workbench.records.inspection import inspect
from kit.projects import home

from .conftest import Terminal


@pytest.fixture
def page(recorded, monkeypatch):
    """The page of a run on a terminal of 80 columns."""

    def draw(run_id: str) -> list[str]:
        monkeypatch.setenv("COLUMNS", "80")
        screen = Terminal()
        found = inspect(Project(recorded.root, "0" * 32, "iris", is_bare=False, home=home()), run_id)
        draw_page(rows(found, gpus_over_time(found.run, found.gpus, screen)), screen)
        return screen.getvalue().splitlines()

    return draw


def test_the_page_begins_with_how_the_run_ended_and_ends_with_what_was_asked(recorded, page):
    run_id = recorded.add({"id": "", "python": "3.11"}, {"outputs/model.pkl": "x"}, ["loss"], ["stray.txt"])
    titles = list(dict.fromkeys(line.split("  ")[0] for line in page(run_id) if line[0] != " "))
    assert titles == [
        *("Run", "Status", "How it ended", "What to do", "Duration", "Metrics", "Outputs", "Other files"),
        *("Submitted", "Started", "Ended", "Script", "Number", "Target", "Snapshot", "Python"),
        *("Configuration", "Settings"),
    ]


def test_lines_of_the_page_are_broken_between_words_and_never_inside_of_a_command(recorded, page):
    packages = [f"package-{number}==1.0" for number in range(9)]
    lines = page(recorded.add({"id": "", "packages": packages}, others=["stray.txt"]))
    assert max(map(len, lines)) <= 80
    assert "  holdfast history download -r iris_1521077190506 -d DIR --artifact stray.txt" in lines
    shown = next(number for number, line in enumerate(lines) if line.startswith("Packages"))
    assert lines[shown + 1].startswith(" " * 17 + "package-")


def test_a_path_that_is_wider_than_the_terminal_is_one_line_that_can_be_copied(recorded, page):
    name = "n" * 90
    lines = page(recorded.add(files={f"outputs/{name}": "x"}))
    at = lines.index("Outputs")
    assert lines[at + 1] == f"  outputs/{name}"


def test_a_narrow_table_says_which_columns_it_leaves_out(recorded):
    run = read_run(recorded.folders, recorded.add(metrics=["loss", "accuracy", "recall", "rare"]))
    found = table([run], {}, 0.0)
    columns = fitting(found.columns, found.by_worth(), found.rows, 80)
    missing = [*(each.title for each in found.columns if each not in columns), *found.others]
    assert [each.title for each in columns][-1] == "loss"
    assert missing == ["No", "Started", "accuracy", "recall", "rare"]
    assert left_out(missing, 80) == "Left out: No, Started, accuracy, recall, rare: -o json, or a wider terminal"
    assert left_out(missing, 60) == "Left out: No and 4 more: -o json, or a wider terminal"


def test_a_table_in_a_pipe_leaves_nothing_out_and_says_nothing(recorded, command, monkeypatch):
    recorded.add(metrics=["loss"])
    monkeypatch.setenv("COLUMNS", "40")
    assert command("history", "list", "-o", "table").err == ""
    monkeypatch.setattr(terminal, "is_terminal", lambda stream: True)
    assert command("history", "list", "-o", "table").err.endswith(" terminal\n")


def test_commit_and_python_are_compared(recorded, command):
    first = recorded.add({"id": "", "python": "3.11", "packages": ["a==1"]}, properties={"commit": "abc"})
    second = recorded.add({"id": "", "python": "3.12", "packages": ["a==1"]}, properties={"commit": "def"})
    facts = json.loads(command("history", "compare", first, second).out)["facts"]
    assert {each["name"]: (each["first"], each["second"]) for each in facts} == {
        "commit": ("abc", "def"),
        "Python": ("3.11", "3.12"),
    }


def test_packages_without_a_record_are_not_said_to_be_the_same(recorded, command):
    known = recorded.add({"id": "", "packages": ["a==1"]})
    unknown = recorded.add()
    built = recorded.add({"id": "env-1", "packages": []})

    def compared(*runs: str) -> str:
        return str(command("history", "compare", *runs, "-o", "table").out)

    assert f"Packages: not recorded for {unknown}.\n" in compared(known, unknown)
    both = f"Packages: not recorded for {unknown} and {unknown}.\nThe same: arguments, configuration, code.\n"
    assert compared(unknown, unknown) == both
    assert "not recorded" not in compared(known, built)


def test_what_says_nothing_of_a_run_in_a_container_is_not_on_its_page(recorded, page):
    run_id = recorded.add(properties={"environment_of": "iris_1"})
    named = {"e": "container", "image": "sha256:ab", "image_name": "ubuntu", "name": "holdfast-x", "gpus": True}
    recorded.insert(run_id, named, at=1)
    settings = {
        "run_configuration": {"framework": "Python", "framework_was_missing": False},
        "compute_target": {"cpus": "2", "spark_submit_location": "spark-submit", "yarn_deploy_mode": "cluster"},
    }
    (recorded.folders.path(run_id) / "configuration.json").write_text(json.dumps(settings))
    text = "\n".join(page(run_id))
    assert "cpus: 2" in text
    assert not [word for word in ("spark", "yarn", "was_missing", "Clock") if word in text]
    assert "holdfast-x, with the machine's GPUs" in text
    assert "environment_of: iris_1" in text


@pytest.mark.parametrize(("offset", "is_told"), [(0.04, False), (-0.04, False), (0.3, True), (-7.0, True)])
def test_a_clock_is_only_told_of_where_it_differs(recorded, page, monkeypatch, offset, is_told):
    run_id = recorded.add()
    monkeypatch.setattr(type(recorded.folders), "clock_offset", lambda *_: offset)
    assert any(line.startswith("Clock") for line in page(run_id)) is is_told
