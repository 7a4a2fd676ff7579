"""What the options of a command mean, and what shell completion offers for them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from holdfast.cli.main import command_tree, main
from holdfast.cli.options import artifact_names, run_names, runconfig_names, target_names, target_types, template_names
from holdfast.project.gpu_wishes import WISHES
from holdfast.workbench.submitting.submit_request import SubmitRequest
from kit.projects import own_state


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[SubmitRequest]:
    """What `submit --dry-run` asked the workbench for."""
    asked: list[SubmitRequest] = []

    def dry_run(_project: Any, request: SubmitRequest, _context: Any) -> Iterator[Any]:
        asked.append(request)
        return iter(())

    monkeypatch.setattr("holdfast.workbench.submitting.submit.dry_run", dry_run)
    monkeypatch.chdir(tmp_path)
    return asked


def test_submit_hands_on_every_file_that_stands_in_for_the_run_configurations(requests):
    assert main(["submit", "--dry-run", "-c", "gpu", "-d", "c.yml", "-s", "s.yml", "t.py", "-s", "x"]) == 0
    assert requests == [SubmitRequest("t.py", ("-s", "x"), "gpu", conda_file="c.yml", spark_file="s.yml")]


def test_a_run_configuration_in_the_place_of_the_script_takes_arguments(requests):
    assert main(["submit", "--dry-run", "gpu.runconfig", "--epochs", "3"]) == 0
    assert requests == [SubmitRequest(None, ("--epochs", "3"), "gpu.runconfig")]
    assert main(["submit", "--dry-run", "-c", "other", "gpu.runconfig"]) == 240


COMPLETERS = [run_names, runconfig_names, target_names, template_names]


def completed(complete: Any, incomplete: str) -> list[str]:
    command = click.Command("x")
    found: list[str] = complete(click.Context(command), click.Option(["-x"]), incomplete)
    return found


def test_names_are_completed_from_the_project(tmp_path, monkeypatch, configure):
    monkeypatch.chdir(tmp_path)
    configure("gpu.compute", "")
    configure("gpu.runconfig", "")
    for run in ("iris_1", "iris_20", "iris_3"):
        (own_state(tmp_path) / "runs" / run).mkdir(parents=True)
    assert [completed(each, "") for each in COMPLETERS] == [
        ["last", "iris_20", "iris_3", "iris_1"],
        ["gpu", "local"],
        ["gpu", "local"],
        ["blank", "digits"],
    ]
    assert completed(run_names, "iris_2") == ["iris_20"]


def test_completing_a_word_is_no_place_to_complain(tmp_path, monkeypatch, configure):
    monkeypatch.chdir(tmp_path)
    configure("project.json", "{broken")
    assert [completed(each, "") for each in COMPLETERS[:3]] == [[], [], []]


def test_types_of_targets_and_files_of_the_named_run_are_completed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for run, name in (("iris_1", "a.txt"), ("iris_2", "b.txt")):
        outputs = own_state(tmp_path) / "runs" / run / "outputs"
        outputs.mkdir(parents=True)
        (outputs / name).write_text("")
    assert completed(target_types, "re") == ["remote", "remotedocker"]
    assert completed(artifact_names, "out") == ["outputs/b.txt"]
    context = click.Context(click.Command("x"))
    context.params["run"] = "iris_1"
    assert artifact_names(context, click.Option(["-x"]), "") == ["outputs/a.txt", "driver_log", "control_log"]


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["history", "download"], "directory"),
        (["asset", "download"], "directory"),
        (["project", "restore"], "path"),
        (["project", "create"], "path"),
    ],
)
def test_an_option_for_a_folder_is_completed_with_folders_only(words, option):
    tree = command_tree()
    command: Any = tree
    for word in words:
        command = command.get_command(click.Context(tree), word)
    (parameter,) = (each for each in command.params if each.name == option)
    (item,) = parameter.shell_complete(click.Context(command), "")
    assert item.type == "dir"


def test_options_of_submit_end_where_the_command_begins(requests):
    assert main(["submit", "--dry-run", "--env", "A=-m", "-m", "package.train", "-m", "x"]) == 0
    assert (requests[-1].script, requests[-1].arguments) == ("-m", ("package.train", "-m", "x"))
    assert main(["submit", "--dry-run", "-u", "-W", "ignore", "t.py"]) == 0
    assert (requests[-1].script, requests[-1].arguments) == ("-u", ("-W", "ignore", "t.py"))
    assert main(["submit", "--dry-run", "--", "train", "--dry-run"]) == 0
    assert (requests[-1].script, requests[-1].arguments, requests[-1].how.is_program) == ("train", ("--dry-run",), True)
    assert main(["submit", "--tag-output", "--dry-run", "t.py"]) == 240


def test_every_command_takes_the_options_that_it_declares() -> None:
    lacking = {name: missing for name, command in _commands("", command_tree()) if (missing := _unheard(command))}
    assert lacking == {}


def _commands(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    for each in command.list_commands(context):
        found = command.get_command(context, each)
        assert found is not None
        yield from _commands(f"{name} {each}".strip(), found)


def _unheard(command: click.Command) -> set[str]:
    """Options that neither the command's function nor a decorator around it has a parameter for. `gpu_options` takes
    its own by their names."""
    left = {each.name or "" for each in command.params if each.expose_value} - {each.name for each in WISHES}
    function: Any = command.callback
    while function is not None:
        left -= set(inspect.signature(function, follow_wrapped=False).parameters)
        function = getattr(function, "__wrapped__", None)
    return left
