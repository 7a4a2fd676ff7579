"""What is remembered about each host, and what a damaged file means."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.model import Place
from holdfast.project.folder import Project
from holdfast.workbench.reach import contacts
from holdfast.workbench.reach.contacts import Contact
from kit.projects import own_state, project_at


@pytest.fixture
def project(tmp_path: Path) -> Project:
    own_state(tmp_path)
    return project_at(tmp_path)


def written(project: Project) -> Path:
    """The file that remembers a host."""
    (file,) = (project.state_directory / "hosts").iterdir()
    return file


def test_what_was_sent_is_remembered_for_this_host_alone(project):
    assert contacts.read(project, "me@gpu1:2222") == Contact(), "it was never reached"
    contacts.sent(project, "me@gpu1:2222", "a" * 64, 1.5, 100.0)
    assert contacts.read(project, "me@gpu1:2222") == Contact("a" * 64, 100.0, None, "", 1.5)
    assert contacts.read(project, "me@gpu1_2222") == Contact()


def test_a_host_is_unreachable_since_the_first_try_that_failed_and_until_it_is_reached(project):
    contacts.sent(project, "gpu1", "a" * 64, 0.0, 100.0)
    assert contacts.unreachable(project, "gpu1", 200.0, "Connection refused") == 200.0
    assert contacts.unreachable(project, "gpu1", 300.0, "No route to host") == 200.0
    assert contacts.read(project, "gpu1") == Contact("a" * 64, 100.0, 200.0, "No route to host", 0.0)
    contacts.reached(project, "gpu1", 400.0)
    assert contacts.read(project, "gpu1") == Contact("a" * 64, 400.0, None, "", 0.0)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"format": 2, "host": "gpu1"}', '{"format": 1, "host": "gpu2"}', "\udcff", "[" * 100000]
)
def test_a_damaged_file_is_nothing_known(project, text):
    contacts.sent(project, "gpu1", "a" * 64, 0.0, 100.0)
    written(project).write_text(text, errors="surrogateescape")
    assert contacts.read(project, "gpu1") == Contact()


def test_a_value_of_another_kind_is_not_taken_and_the_others_are(project):
    contacts.sent(project, "gpu1", "a" * 64, 0.0, 100.0)
    file = written(project)
    file.write_text(file.read_text().replace("100.0", '"soon"').replace('"clock_offset": 0.0', '"clock_offset": true'))
    assert contacts.read(project, "gpu1") == Contact("a" * 64)


def test_a_folder_that_cannot_be_written_loses_the_memory_and_nothing_else(project):
    (project.state_directory / "hosts").write_text("in the way")
    contacts.sent(project, "gpu1", "a" * 64, 0.0, 100.0)
    assert contacts.read(project, "gpu1") == Contact()


def test_who_answered_is_remembered_with_what_was_sent_to_it(project):
    place = Place("ab", "/home/me/.holdfast", "node1")
    contacts.sent(project, "gpu1", "a" * 64, 0.0, 100.0, place)
    assert contacts.read(project, "gpu1").place == place
    contacts.reached(project, "gpu1", 200.0)
    assert contacts.read(project, "gpu1").place == place
    contacts.sent(project, "gpu1", "b" * 64, 0.0, 300.0)
    assert contacts.read(project, "gpu1").place is None


def test_runs_that_are_elsewhere_are_remembered_until_they_are_found(project):
    assert contacts.found(project, "gpu1", {"run_1": "another machine"}, ["run_2"], 100.0) == 100.0
    assert contacts.found(project, "gpu1", {"run_1": "another folder", "run_2": "another folder"}, [], 200.0) == 100.0
    contacts.sent(project, "gpu1", "a" * 64, 0.0, 250.0)
    elsewhere = {"run_1": (100.0, "another folder"), "run_2": (200.0, "another folder")}
    assert contacts.read(project, "gpu1").elsewhere == elsewhere
    contacts.found(project, "gpu1", {}, ["run_1"], 300.0)
    assert contacts.read(project, "gpu1").elsewhere == {"run_2": (200.0, "another folder")}


@pytest.mark.parametrize("damaged", ["7", "[]", '{"run_1": 7}', '{"run_1": [1]}', '{"run_1": ["soon", "x"]}'])
def test_what_cannot_be_read_of_runs_elsewhere_is_not_known(project, damaged):
    contacts.found(project, "gpu1", {"run_1": "x"}, [], 100.0)
    file = written(project)
    file.write_text(json.dumps({**json.loads(file.read_text()), "elsewhere": json.loads(damaged)}))
    assert contacts.read(project, "gpu1") == Contact()
