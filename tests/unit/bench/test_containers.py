"""Containers in the benchmarks, as far as that needs no engine: what is typed, what is built, what is counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import container_places
import first_imports
import image_builds
import pytest
from children import Place, make_place
from container_places import calls, in_turn, typed, using
from image_builds import BASE, WARM, Builder, variable_lines
from measuring import Contender, FailedError, Figures
from peers import Tool
from report import table_text
from results import Verdict, verdict
from rows import first_line
from rows.first_line import Person


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return make_place(tmp_path, "one", Tool("tool", tmp_path / "tool"))


def test_without_root_or_programs_a_row_says_why_it_was_not_measured(monkeypatch):
    monkeypatch.setattr(container_places.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(container_places.shutil, "which", lambda name, path: "/there")
    with pytest.raises(FailedError, match="only be started by root"), container_places.engine():
        pass
    monkeypatch.setattr(container_places.shutil, "which", lambda name, path: None if name == "dockerd" else "/there")
    with pytest.raises(FailedError, match="not installed: dockerd"), container_places.engine():
        pass


def test_an_engine_that_does_not_start_is_a_row_that_was_not_measured(monkeypatch):
    def fails() -> Path:
        raise AssertionError("debootstrap said no")

    monkeypatch.setattr(container_places.os, "geteuid", lambda: 0)
    monkeypatch.setattr(container_places.shutil, "which", lambda name, path: "/there")
    monkeypatch.setattr(container_places, "template", fails)
    with pytest.raises(FailedError, match="could be started: debootstrap said no"), container_places.engine():
        pass


def test_commands_of_a_place_find_the_engine_and_keep_what_they_had(place):
    daemon: Any = SimpleNamespace(environment={"DOCKER_HOST": "unix:///a/docker.sock"})
    twice = using(replace(place, variables=(("OTHER", "1"),)), daemon)
    assert twice.environment()["DOCKER_HOST"] == "unix:///a/docker.sock"
    assert twice.environment()["OTHER"] == "1"


def test_by_hand_the_folder_is_mounted_and_nothing_is_left():
    line = " ".join(typed("/a", "--network", "host", image="i"))
    assert line == "docker run --rm --network host -v /a:/work -w /work i python3 s.py"


def test_a_contender_begins_when_no_container_is_left():
    left = [["a", "b"], ["b"], []]
    daemon: Any = SimpleNamespace(containers=lambda: left.pop(0))
    (contender,) = in_turn(daemon, [Contender("one", lambda: float(len(left)))])
    assert (contender.name, contender.measure()) == ("one", 0)


def test_calls_of_docker_are_listed_in_order_with_the_time_of_each(place):
    place.tool.programs.mkdir(parents=True)
    docker = place.tool.programs / "docker"
    docker.write_text("#!/bin/sh\necho $1; exit $2\n")
    docker.chmod(0o755)
    told = calls(place, ["sh", "-c", "docker first 0; docker second 3; test $? = 3"]).splitlines()
    assert told[0].startswith("Calls of docker by `sh -c ")
    assert [line.rpartition("docker ")[2] for line in told[1:]] == ["first 0", "second 3"]


def test_a_build_begins_with_the_image_whose_cache_is_warm(tmp_path):
    Builder().write(tmp_path, ["numpy==1"], "7")
    classic = (tmp_path / "Dockerfile").read_text()
    assert (tmp_path / "requirements.txt").read_text() == "numpy==1\n# 7\n"
    Builder(with_buildkit=True).write(tmp_path, ["numpy==1"], "8")
    kit = (tmp_path / "Dockerfile").read_text()
    assert classic.startswith(f"FROM {WARM}\n") and "--mount" not in classic
    assert kit.startswith(f"FROM {BASE}\n") and "RUN --mount=type=cache,target=/var/cache/pip pip install" in kit


def test_an_added_line_leaves_what_is_above_it_as_it_was(tmp_path):
    Builder().write(tmp_path, ["numpy==1"])
    before = {name: (tmp_path / name).read_text() for name in ("Dockerfile", "requirements.txt")}
    Builder().write(tmp_path, ["numpy==1"], more="RUN more")
    assert (tmp_path / "requirements.txt").read_text() == before["requirements.txt"]
    assert (tmp_path / "Dockerfile").read_text() == before["Dockerfile"].rstrip() + "\nRUN more\n"


def test_a_build_reaches_packages_as_pip_of_the_machine_does():
    variables = {"SSL_CERT_FILE": "/here/ca", "PIP_INDEX_URL": 'https://a/"b"$c', "UV_DEFAULT_INDEX": "https://a/"}
    assert variable_lines(variables).splitlines() == [
        r'ENV PIP_INDEX_URL="https://a/\"b\"\$c"',
        f'ENV PIP_CERT="{image_builds._CERTIFICATES}"',
    ]


def test_the_first_import_is_added_to_both_sides():
    figures = {"ours": Figures((2.0, 2.0)), "pip": Figures((18.0, 18.0))}
    imports = {"ours": [99.0, 4.0, 4.0], "pip": [99.0, 2.0, 2.0]}
    text = " ".join(first_imports.note(figures, imports, "ours", "pip", "there").split())
    assert "takes 4.0 s as a run of Holdfast's and 2.0 s there; with it the sums are 6.0 against 20.0 s, 0.30" in text
    assert first_imports.note({**figures, "pip": Figures((), "failed")}, imports, "ours", "pip") == ""


def test_what_commands_write_is_not_edited_by_a_person(place):
    person = Person(place)
    person.types("echo a > a; mkdir .holdfast")
    (place.project / ".holdfast" / "state").write_text("a run goes on")
    person.types("echo b > b; rm a")
    assert person.edited == []


def test_every_file_that_changes_between_two_commands_was_edited(place):
    person = Person(place)
    person.types("echo a > a; echo b > b; echo c > c")
    (place.project / "a").write_text("changed")
    (place.project / "b").unlink()
    (place.project / "new").write_text("")
    person.types("true")
    assert person.edited == ["a", "b", "new"]


def test_one_edited_file_misses_the_bar_and_is_named():
    none, _ = first_line.tables([], [("one", 1.0), ("two", 2.0)])
    some, time = first_line.tables(["aml_config/x.compute"], [("one", 1.0), ("two", 2.0)])
    assert verdict(none, none.ours) is Verdict.MET
    assert verdict(some, some.ours) is Verdict.MISSED
    assert some.note == "Edited: aml_config/x.compute."
    assert "| all three commands | 3 |" in table_text(time)
