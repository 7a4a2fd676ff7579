"""Which Python an environment is made with."""

from __future__ import annotations

import os
import sys

import pytest

from holdfast.farside.environments import interpreters
from holdfast.farside.environments.interpreters import Interpreter, choose
from holdfast.farside.environments.platforms import build_name
from holdfast.farside.environments.versions import satisfies
from holdfast.farside.layout import Home

FOUND = [
    Interpreter("/usr/bin/python3", "3.11.2"),
    Interpreter("/opt/py/3.11.9/bin/python3", "3.11.9"),
    Interpreter("/opt/py/3.6.15/bin/python3", "3.6.15"),
    Interpreter("/opt/py/3.13.0/bin/python3", "3.13.0"),
]


@pytest.mark.parametrize(
    ("version", "pin", "expected"),
    [
        ("3.11.2", "3.11", True),
        ("3.11.2", "3", True),
        ("3.11.2", "3.1", False),
        ("3.11.2", "3.11.2", True),
        ("3.11.2", "3.11.20", False),
        ("3.11.2", ">=3.10,<3.12", True),
        ("3.12.0", ">=3.10,<3.12", False),
        ("3.11.2", ">3.11", False),
        ("3.12.0", ">3.11", True),
        ("3.11.2", "<=3.11", False),
        ("3.11.0", "<=3.11", True),
        ("3.11.2", "==3.11.*", True),
        ("3.11.2", "==3.11", False),
        ("3.11.2", "!=3.11.*", False),
        ("3.12.1", "!=3.11.*", True),
        ("3.11.2", "~=3.10", True),
        ("3.11.2", "~=3.10.1", False),
        ("3.11.2", "nonsense", False),
        ("3.14.0rc2", "3.14", True),
    ],
)
def test_a_pin_is_understood_as_conda_and_pip_mean_it(version: str, pin: str, expected: bool) -> None:
    assert satisfies(version, pin) is expected


def test_the_newest_python_that_satisfies_the_pin_is_chosen() -> None:
    assert choose("3.11", FOUND) == FOUND[1]
    assert choose(">=3.6,<3.13", FOUND) == FOUND[1]
    assert choose("3.6", FOUND) == FOUND[2]


def test_where_no_python_satisfies_the_pin_none_is_chosen_and_all_can_be_named() -> None:
    assert choose("3.8", FOUND) is None
    assert interpreters.shown([*FOUND, FOUND[0]]) == "3.13.0, 3.11.9, 3.11.2, 3.6.15"
    assert interpreters.shown([]) == "none"


def test_pythons_that_were_brought_for_earlier_runs_are_found(tmp_path) -> None:
    program = tmp_path / "pythons" / "cpython-3.9.18-linux" / "bin" / "python3"
    program.parent.mkdir(parents=True)
    program.write_bytes(b"\x7fELF")
    program.chmod(0o755)
    (tmp_path / "pythons" / "cpython-3.9-linux").symlink_to("cpython-3.9.18-linux")

    home = Home(str(tmp_path))

    assert interpreters.brought(home, build_name()) == [str(program)]
    assert Interpreter(str(program), "3.9.18") in interpreters.found_here(home, {"PATH": "", "HOME": str(tmp_path)})


def test_somebodys_environment_comes_after_a_python_of_the_machine(tmp_path) -> None:
    for folder, is_environment in (("mine", True), ("plain", False)):
        program = tmp_path / folder / "bin" / "python3"
        program.parent.mkdir(parents=True)
        program.write_bytes(b"\x7fELF")
        program.chmod(0o755)
        if is_environment:
            (tmp_path / folder / "pyvenv.cfg").write_text("version = 3.9.18\n")
        else:
            record = tmp_path / folder / "conda-meta" / "python-3.9.18-0.json"
            record.parent.mkdir()
            record.write_text("{}")
    path = f"{tmp_path}/mine/bin:{tmp_path}/plain/bin"

    found = interpreters.found_here(Home(str(tmp_path / "home")), {"PATH": path, "HOME": str(tmp_path)})

    ours = [each.path for each in found if each.path.startswith(str(tmp_path))]
    assert ours == [f"{tmp_path}/plain/bin/python3", f"{tmp_path}/mine/bin/python3"]


def test_a_program_that_is_no_python_has_no_version(tmp_path) -> None:
    program = tmp_path / "bin" / "python3"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho hello\n")
    program.chmod(0o755)
    absent = str(tmp_path / "nowhere")

    assert interpreters.versions_of([str(program), absent, sys.executable], dict(os.environ)) == {
        str(program): None,
        absent: None,
        sys.executable: "%d.%d.%d" % sys.version_info[:3],
    }


def test_one_that_was_brought_for_an_image_is_not_for_the_machine(tmp_path) -> None:
    machine, libc = build_name().rsplit("-", 1)
    for name in ("gnu", "musl"):
        program = tmp_path / "pythons" / f"cpython-3.9.18-linux-{machine}-{name}" / "bin" / "python3"
        program.parent.mkdir(parents=True)
        program.write_bytes(b"\x7fELF")
        program.chmod(0o755)

    (found,) = interpreters.brought(Home(str(tmp_path)), f"{machine}-musl")
    (here,) = interpreters.brought(Home(str(tmp_path)), build_name())

    assert "-musl/" in found
    assert (f"-{'musl' if libc == 'musl' else 'gnu'}/") in here
