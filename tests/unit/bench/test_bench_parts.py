"""What the benchmarks count, and what does not count: installations, children, edited files, connections."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import peers
import pytest
import run
from children import Place, make_place
from children import run as run_child
from far_boxes import disconnect, kept_connections
from image_builds import _CERTIFICATES, variable_lines
from measuring import FailedError, Figures
from peers import Tool, measure_size
from rows import outputs_home
from rows.first_line import Person

pytestmark = pytest.mark.kit


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return make_place(tmp_path, "one", Tool("tool", tmp_path / "tool"))


def test_an_installation_counts_each_file_and_package_once_and_no_bytecode(tmp_path):
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    for name in ("thing-1.2.dist-info", "other-3.dist-info", "thing/carried/inner-9.dist-info", "thing/__pycache__"):
        (packages / name).mkdir(parents=True)
    (packages / "thing" / "data").write_bytes(b"x" * 50_000)
    before = measure_size(tmp_path)
    os.link(packages / "thing" / "data", packages / "thing" / "twin")
    (packages / "thing" / "__pycache__" / "data.pyc").write_bytes(b"x" * 50_000)
    assert measure_size(tmp_path).bytes == before.bytes >= 50_000
    assert before.packages == 2


def test_every_peer_is_pinned_to_one_version_and_every_row_has_a_name_of_its_own():
    pins = [line.split("==")[0] for line in peers.PINS.read_text().splitlines() if not line.startswith("#")]
    assert [name for name in peers.PEERS if pins.count(name) != 1] == []
    assert len({module.NAME for module in run.MODULES}) == len(run.MODULES)


def test_a_child_sees_its_own_home_and_nothing_of_this_environment(place, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("VIRTUAL_ENV", "/elsewhere")
    seen = dict(line.split("=", 1) for line in run_child(place, ["env"]).out.splitlines())
    assert seen["HOME"] == str(tmp_path / "one" / "home")
    assert seen["PATH"].startswith(str(tmp_path / "tool" / "bin") + ":")
    assert not {"PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV"} & seen.keys()


@pytest.mark.parametrize("words", [["sh", "-c", "echo yes; exit 3"], ["echo", "no"]])
def test_a_child_that_fails_or_says_something_else_is_no_measurement(place, words):
    with pytest.raises(FailedError, match=words[0]):
        run_child(place, words, expect="yes")


def test_files_that_a_person_changes_between_two_commands_are_edited_and_those_that_commands_write_are_not(place):
    person = Person(place)
    person.types("echo a > a; echo b > b; echo c > c; mkdir .holdfast")
    (place.project / ".holdfast" / "state").write_text("a run goes on")
    person.types("echo d > d; rm c")
    assert person.edited == []
    (place.project / "a").write_text("changed")
    (place.project / "b").unlink()
    (place.project / "new").write_text("")
    person.types("true")
    assert person.edited == ["a", "b", "new"]


def test_only_sockets_of_masters_are_kept_connections():
    with tempfile.TemporaryDirectory() as short:  # the path of a socket has 107 bytes at most
        place = make_place(Path(short), "one", Tool("tool", Path(short)))
        folder = place.root / "tmp" / "holdfast-0"
        folder.mkdir()
        (folder / ("a" * 16)).write_text("a file")
        with socket.socket(socket.AF_UNIX) as question, socket.socket(socket.AF_UNIX) as master:
            question.bind(str(folder / "ask-1"))
            assert kept_connections(place) == []
            disconnect(place)  # nothing to end
            master.bind(str(folder / "0123456789abcdef"))
            assert kept_connections(place) == [folder / "0123456789abcdef"]


def test_the_transfer_alone_is_what_a_single_byte_leaves():
    names = (outputs_home._OURS, outputs_home._SCP, outputs_home._OURS_SMALL, outputs_home._SCP_SMALL)
    figures = {name: Figures((value,)) for name, value in zip(names, (0.8, 0.6, 0.4, 0.2), strict=True)}
    assert "400 against 400 ms, 1.00 times" in outputs_home._transfer_alone(figures)
    assert outputs_home._transfer_alone({**figures, names[0]: Figures((), "failed")}) == ""


def test_a_build_reaches_packages_as_pip_of_the_machine_does():
    variables = {"SSL_CERT_FILE": "/here/ca", "PIP_INDEX_URL": 'https://a/"b"$c', "UV_DEFAULT_INDEX": "https://a/"}
    assert variable_lines(variables).splitlines() == [
        r'ENV PIP_INDEX_URL="https://a/\"b\"\$c"',
        f'ENV PIP_CERT="{_CERTIFICATES}"',
    ]
