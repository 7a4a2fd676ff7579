"""The machine as a place for environments: what is read from it, and which environments work there."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from holdfast.farside.environments import place as places
from holdfast.farside.environments.built_environment import Known
from holdfast.farside.environments.locks import Lock, keep_own, lock_digest, make_lock
from holdfast.farside.environments.place import BuildPlace
from holdfast.farside.environments.platforms import platform_name
from holdfast.farside.system.layout import Home
from holdfast.farside.system.refusal import Refused


class Elsewhere(BuildPlace):
    """The same machine under another tag, as an image is."""

    tag, words = "elsewhere", "the image `x`"

    def noted_as(self, pin: str, path: str) -> str:
        return f"{self.tag} {pin}"


def lock(**more: str) -> Lock:
    return make_lock("s", **{"platform": platform_name(), "python": "3.11.2", "requirements": "", **more})


def plan(**more: object) -> dict[str, object]:
    return {
        "python": "3.11", "interpreter": "", "locks": [lock()], "exact": False, "spec": "s", "locked": "",
        "requirements": [], "constraints": [], **more,
    }  # fmt: skip


def make(home: Home, name: str, mark: str) -> None:
    folder = Path(home.environment(name))
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    (folder / ".complete").write_text(mark)
    (folder / "environment.json").write_text(json.dumps(lock()))


def found(home: Home, place: type[BuildPlace], **more: object) -> str | None:
    """The environment that is known there for the plan."""
    answer = Known(home, plan(**more), {}, place(home)).find()
    return answer and answer.environment.id


def test_a_python_is_one_by_whatever_name_it_is_found(home, tmp_path):
    (tmp_path / "python").symlink_to(sys.executable)
    here = BuildPlace(home)
    assert here.identity(str(tmp_path / "python")) == os.path.realpath(sys.executable)
    assert here.noted_as("3.11", "/usr/bin/python3") == "3.11"
    assert here.noted_as("", str(tmp_path / "python")) == os.path.realpath(sys.executable)


def test_the_active_python_says_its_version_itself(home):
    (active,) = BuildPlace(home).active(sys.executable)
    assert active.version == "%d.%d.%d" % sys.version_info[:3]
    assert BuildPlace(home).active("/nowhere/python") == []


@pytest.mark.parametrize(
    ("mark", "here", "there"),
    [
        ({"compiled": [], "place": ""}, True, True),
        ({"compiled": ["x"], "place": ""}, True, False),
        ({"compiled": ["x"], "place": "elsewhere"}, False, True),
    ],
)
def test_what_was_compiled_at_a_place_is_for_that_place(mark, here, there):
    assert (places.is_of(mark, ""), places.is_of(mark, "elsewhere")) == (here, there)


def test_what_is_noted_for_one_place_or_another_run_had_there_is_not_found_for_another(home):
    make(home, "e1", '{"compiled": [], "place": ""}')
    Path(Known(home, plan(), {}).note(lock())).write_text("e1")

    assert (found(home, BuildPlace), found(home, Elsewhere)) == ("e1", None)
    made = f'{{"lock": "{lock_digest(lock())}", "python": "3.11.2", "compiled": ["x"], "place": "elsewhere"}}'
    make(home, "e2", made)
    assert found(home, Elsewhere, exact=True) is None, "another machine made the lock"
    keep_own(home.locks(), lock())
    assert (found(home, BuildPlace, exact=True), found(home, Elsewhere, exact=True)) == (None, "e2")


def test_a_lock_for_another_platform_names_the_place(home):

    with pytest.raises(Refused, match="made for linux-aarch64-musl, and the image `x` is linux"):
        found(home, Elsewhere, exact=True, locks=[lock(platform="linux-aarch64-musl")])
