"""The zip of a bug report says what happened, without any of the user's values."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from holdfast.history.run_folder import RunFolders
from holdfast.model import Submission
from holdfast.project.folder import Project
from holdfast.workbench.reach.context import Context
from holdfast.workbench.records import diagnostics
from holdfast.workbench.records.diagnostics import write_diagnostics
from kit.projects import home, own_state


@pytest.fixture
def project(tmp_path: Path) -> Project:
    own_state(tmp_path)
    return Project(tmp_path, "0" * 32, "iris", is_bare=True, home=home())


def report(
    project: Project, variables: Mapping[str, str], shell: Mapping[str, str], words: Sequence[str] = (), **files: str
) -> dict[str, str]:
    """The texts in the zip of a run with these variables, whose folder has these files (`driver_log="…"`); `words` are
    its target's for `docker run`."""
    folders = RunFolders(project.state_directory)
    run_id = folders.reserve("iris", 1.0)
    words_of = ("--token", "hunter22")
    submission = Submission(
        run_id, 1, project.id, "iris", "train.py", words_of, "local", "local", "local", "a" * 64, 1.0, "g"
    )
    plan = {"format": 1, "secrets": ["TOKEN"], "command": {"environment": dict(variables)}}
    run, target = {"environment_variables": dict(variables)}, {"docker_arguments": list(words)}
    folders.commit(run_id, submission, plan, {"run_configuration": run, "compute_target": target})
    for name, text in files.items():
        (folders.path(run_id) / name.replace("__", ".")).write_text(text, encoding="utf-8")
    context = Context(project.root, shell, project.root, project.root)
    names = write_diagnostics(project, run_id, project.root / "report.zip", context)
    with zipfile.ZipFile(project.root / "report.zip") as archive:
        assert [f"{run_id}/{name}" for name in names] == sorted(archive.namelist())
        return {name: archive.read(f"{run_id}/{name}").decode() for name in names}


def test_values_of_variables_are_masked_in_the_logs_whatever_their_name(project):
    variables = {"WHERE": "db.example.org/private", "PERSON": "ada@example.org", "PHRASE": 'with "quotes" é'}
    told = (
        f"{variables['WHERE']} {variables['PERSON']} {variables['PHRASE']} {json.dumps(variables['PHRASE'])} loss 0.5\n"
    )
    texts = report(project, variables, {}, driver_log=told, control_log=told, journal__jsonl=told)
    assert texts["driver_log"] == texts["control_log"] == '*** *** *** "***" loss 0.5\n'
    assert not [name for name, text in texts.items() if "example.org" in text]


@pytest.mark.parametrize(
    "value", ["true", "False", "none", "INFO", "abc", "1", "0.001", "8080", "20480", "-1.5", "10:30", "utf-8"]
)
def test_everyday_words_and_short_numbers_stay(project, value):
    assert report(project, {"MODE": value}, {}, driver_log=f"x={value} y\n")["driver_log"] == f"x={value} y\n"


@pytest.mark.parametrize("odd", ["7", "NaN", '"text"', "[1]", "null"])
def test_a_record_of_another_shape_is_reported_all_the_same(project, odd):
    plan = f'{{"secrets": {odd}}}'
    for configuration in (f'"run_configuration": {odd}', f'"run_configuration": {{"environment_variables": {odd}}}'):
        text = f'{{{configuration}, "compute_target": {{"docker_arguments": {odd}}}}}'
        texts = report(project, {}, {}, plan__json=plan, configuration__json=text)
        assert json.loads(texts["configuration.json"])["compute_target"].keys() == {"docker_arguments"}


@pytest.mark.parametrize(("name", "value"), [("MODE", "12345678"), ("API_KEY", "8080"), ("PASSWORD", "true")])
def test_long_numbers_and_whatever_a_secret_is_called_by_are_masked(project, name, value):
    assert report(project, {name: value}, {}, driver_log=f"x={value} y\n")["driver_log"] == "x=*** y\n"


def test_secrets_that_the_shell_still_has_are_masked_everywhere(project):
    texts = report(project, {}, {"TOKEN": "hunter22"}, driver_log="hunter22\n")
    assert not [name for name, text in texts.items() if "hunter22" in text]
    assert json.loads(texts["submission.json"])["arguments"] == ["--token", "***"]


def test_records_stay_readable_when_a_value_is_also_a_key_or_a_number(project):
    event = {"t": 12345678, "e": "note", "text": "it is text, 12345678", "code": None}
    texts = report(
        project, {"A": "text", "B": "12345678", "C": "run_id"}, {}, journal__jsonl=json.dumps(event) + "\n{torn text"
    )
    first, rest = texts["journal.jsonl"].split("\n")
    assert json.loads(first) == {**event, "text": "it is ***, ***"}
    assert rest == "{torn ***"
    assert json.loads(texts["submission.json"])["run_number"] == 1
    assert json.loads(texts["plan.json"])["command"]["environment"] == {"A": "***", "B": "***", "C": "***"}


@pytest.mark.parametrize("words", [["-e", "API_KEY=hunter22x"], ["-eAPI_KEY=hunter22x"], ["--env=API_KEY=hunter22x"]])
def test_secrets_among_the_words_for_docker_are_masked(project, words):
    texts = report(project, {}, {}, words, driver_log="hunter22x\n")
    assert "hunter22x" not in str(texts) and "API_KEY" in texts["configuration.json"]


def test_credentials_in_addresses_are_masked(project):
    log = report(project, {}, {}, control_log="get https://user:pass@host/x\n")["control_log"]
    assert log == "get https://***@host/x\n"


def test_a_long_log_is_cut_between_lines_so_that_no_half_of_a_secret_is_left(project, monkeypatch):
    monkeypatch.setattr(diagnostics, "_LOG_TAIL", 20)
    log = report(project, {"A": "hunter22"}, {}, driver_log="first hunter22\nsecond hunter22\n")["driver_log"]
    assert log == "second ***\n"
