"""What a machine reports to a client that chooses packages for it: the same as a build there would use."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.environments import place
from holdfast.farside.environments.locks import Lock, lock_path, make_lock, note_path, write_lock
from holdfast.farside.environments.place import Interpreter
from holdfast.farside.operations import environment_report
from holdfast.farside.system.layout import Home
from holdfast.farside.system.refusal import Refused

SPEC, PLATFORM = "a" * 64, "linux-x86_64-glibc2.36"
HERE = [Interpreter("/usr/bin/python3.12", "3.12.1"), Interpreter("/usr/bin/python3.11", "3.11.2")]


@pytest.fixture
def home(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setattr(place, "platform_name", lambda: PLATFORM)
    monkeypatch.setattr(place, "found_here", lambda home, environment: HERE)
    monkeypatch.setattr(environment_report, "find_python", lambda location, work: location or "/usr/bin/python3")
    monkeypatch.setattr(place, "versions_of", lambda paths, environment: dict.fromkeys(paths, "3.10.4"))
    return home


def lock(python: str = "3.11.2", platform: str = PLATFORM, **more: Any) -> Lock:
    return make_lock(SPEC, platform, python, "six==1.16.0\n", **more)


def ask(home: Home, python: str | None = ">=3.10", locks: Any = (), **more: Any) -> dict[str, Any]:
    return environment_report.describe(
        home, {"spec": SPEC, "python": python, "location": None, "locks": list(locks), **more}
    )


def test_the_newest_python_that_fits_is_chosen_or_all_are_told_and_nothing_is_built(home):
    answer = ask(home)
    assert answer["platform"] == PLATFORM
    assert answer["python"] == ["/usr/bin/python3.12", "3.12.1"]
    assert (answer["lock"], answer["built"]) == (None, False)
    answer = ask(home, python="3.7")
    assert (answer["python"], answer["found"]) == (None, "3.12.1, 3.11.2")


def test_the_python_of_a_lock_is_preferred_and_one_that_another_made_here_counts_where_the_project_has_none(home):
    answer = ask(home, locks=[lock(platform="linux-aarch64-musl"), lock()])
    assert (answer["python"], answer["lock"]) == (["/usr/bin/python3.11", "3.11.2"], lock())
    write_lock(lock_path(home, SPEC, "3.11"), lock())
    assert ask(home)["lock"] == lock()
    assert ask(home, anew=True)["lock"] is None, "newer ones are wanted"


def test_without_a_pin_the_targets_own_python_is_the_one(home):
    assert ask(home, python=None)["python"] == ["/usr/bin/python3", "3.10.4"]
    assert ask(home, python=None, location="/opt/python")["python"] == ["/opt/python", "3.10.4"]
    with pytest.raises(Refused, match="lies among the files of a run"):
        ask(home, python=None, location="venv/bin/python")


@pytest.mark.parametrize("pin", [">=3.10", None])
def test_an_environment_that_is_built_is_known(home, pin):
    known = lock(python="3.11.2" if pin else "3.10.4")
    path = note_path(home, known, pin or os.path.realpath("/usr/bin/python3"))
    Path(path).write_text("e1")
    assert not ask(home, python=pin, locks=[known])["built"], "the note is older than the environment"
    folder = Path(home.environment("e1"), "bin")
    folder.mkdir(parents=True)
    (folder / "python").touch()
    (folder.parent / ".complete").touch()
    assert ask(home, python=pin, locks=[known])["built"]


def test_the_environment_of_another_run_is_for_its_own_platform_and_python(home):
    assert ask(home, python=None, locks=[lock()], exact=True)["python"] == ["/usr/bin/python3.11", "3.11.2"]
    assert ask(home, locks=[lock("3.11.9")], exact=True)["python"] is None
    with pytest.raises(Refused, match=f"linux-aarch64-musl.* {PLATFORM}"):
        ask(home, locks=[lock(platform="linux-aarch64-musl")], exact=True)


def test_with_a_container_it_is_the_image_that_is_described(home, monkeypatch):
    from holdfast.farside.containers import images
    from holdfast.farside.containers.images import Image, Python

    own = Python("/usr/local/bin/python3", "3.13.1", "/usr/local/bin/python3.13")
    image = Image("sha256:" + "ab" * 32, "alpine", "x86_64", "linux-x86_64-musl", {}, (own,), "", "")
    monkeypatch.setattr(images, "place_asked", lambda home, container: images.InImage(image, home))
    container = {"program": "docker", "image": "alpine", "gpus": None}

    answer = ask(home, container=container)
    assert (answer["platform"], answer["python"]) == ("linux-x86_64-musl", [own.path, own.version])
    assert ask(home, python=None, container=container)["python"] == [own.path, own.version]
    assert ask(home, python="3.9", container=container)["python"] is None
    with pytest.raises(Refused, match="`alpine` is linux-x86_64-musl"):
        ask(home, locks=[lock()], exact=True, container=container)
