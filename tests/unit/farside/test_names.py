"""Names from the wire: nothing leaves the host's folder."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as some

from holdfast.farside.system.layout import Home, object_path, relative_parts
from holdfast.farside.system.refusal import Refused

HOSTILE = ["", ".", "..", "../x", "a/b", "/etc", "a\0b", "-r", ".hidden", "x" * 200, "a\n", "ä", None, 7]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_refused(name):
    for make in (
        lambda: Home("/h").run(name, "r"),
        lambda: Home("/h").run("p", name),
        lambda: Home("/h").environment(name),
    ):
        with pytest.raises(Refused):
            make()


@given(some.text(max_size=30))
def test_any_name_stays_inside_or_is_refused(name):
    try:
        path = Home("/h/x").run("project", name)
    except Refused:
        return
    assert os.path.dirname(os.path.normpath(path)) == "/h/x/runs/project"


@given(some.text(alphabet="./a\0\\", max_size=12))
def test_any_path_stays_below_its_root_or_is_refused(path):
    try:
        parts = relative_parts(path)
    except Refused:
        return
    assert os.path.normpath(os.path.join("/below", *parts)).startswith("/below/")


@pytest.mark.parametrize("digest", ["", "ab", "../" + "a" * 61, "A" * 64, "g" * 64, "a" * 64 + "\n", None])
def test_a_hostile_digest_is_refused(digest):
    with pytest.raises(Refused):
        object_path("/store", digest)
