"""Which Python an environment is made with."""

import os
import sys
from pathlib import Path

import pytest

from holdfast.farside.environments import place
from holdfast.farside.environments.place import Interpreter, choose, satisfies
from holdfast.farside.environments.platforms import build_name
from unit.farside.programs import program

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
def test_a_pin_is_understood_as_conda_and_pip_mean_it(version, pin, expected):
    assert satisfies(version, pin) is expected


def test_the_newest_python_that_satisfies_the_pin_is_chosen_and_where_none_does_all_can_be_named():
    chosen = {pin: choose(pin, FOUND) for pin in ("3.11", ">=3.6,<3.13", "3.6", "3.8")}
    assert chosen == {"3.11": FOUND[1], ">=3.6,<3.13": FOUND[1], "3.6": FOUND[2], "3.8": None}
    assert place.version_list([*FOUND, FOUND[0]]) == "3.13.0, 3.11.9, 3.11.2, 3.6.15"
    assert place.version_list([]) == "none"


def test_pythons_that_were_brought_for_earlier_runs_are_found(home):
    brought = program(Path(home.pythons()) / "cpython-3.9.18-linux" / "bin" / "python3")
    (Path(home.pythons()) / "cpython-3.9-linux").symlink_to("cpython-3.9.18-linux")

    assert place.brought(home, build_name()) == [str(brought)]
    assert Interpreter(str(brought), "3.9.18") in place.found_here(home, {"PATH": "", "HOME": home.path})


def test_an_environment_of_a_user_comes_after_a_python_of_the_machine(home, tmp_path):
    mine, plain = (program(tmp_path / folder / "bin" / "python3") for folder in ("mine", "plain"))
    (tmp_path / "mine" / "pyvenv.cfg").write_text("version = 3.9.18\n")
    record = tmp_path / "plain" / "conda-meta" / "python-3.9.18-0.json"
    record.parent.mkdir()
    record.write_text("{}")

    found = place.found_here(home, {"PATH": f"{mine.parent}:{plain.parent}", "HOME": str(tmp_path)})

    assert [each.path for each in found if each.path.startswith(str(tmp_path))] == [str(plain), str(mine)]


def test_a_program_that_is_no_python_has_no_version(tmp_path):
    other, absent = str(program(tmp_path / "python3", "echo hello")), str(tmp_path / "nowhere")
    own = "%d.%d.%d" % sys.version_info[:3]

    found = place.versions_of([other, absent, sys.executable], dict(os.environ))
    assert found == {other: None, absent: None, sys.executable: own}


def test_one_that_was_brought_for_an_image_is_not_for_the_machine(home):
    machine, libc = build_name().rsplit("-", 1)
    for name in ("gnu", "musl"):
        program(Path(home.pythons()) / f"cpython-3.9.18-linux-{machine}-{name}" / "bin" / "python3")

    (found,) = place.brought(home, f"{machine}-musl")
    (here,) = place.brought(home, build_name())

    assert "-musl/" in found
    assert (f"-{'musl' if libc == 'musl' else 'gnu'}/") in here
