"""A program that was sent becomes one of the host's tools: complete, and without a copy."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from holdfast.farside.environments import uv
from holdfast.farside.system.layout import Home, object_path
from holdfast.farside.system.refusal import Refused

DIGEST = "ab" * 32
MESSAGE = {"name": "uv-0.13.7", "digest": DIGEST}


@pytest.fixture
def sent(home: Home) -> Path:
    path = Path(object_path(home.objects(), DIGEST))
    path.parent.mkdir(parents=True)
    path.write_bytes(b"#!/bin/sh\necho works\n")
    path.chmod(0o444)
    return path


def _is_placed(home: Home) -> bool:
    """Only the tool, and no partial file beside it."""
    placed = Path(uv.path_of(home, "uv-0.13.7"))
    alone = list(placed.parent.iterdir()) == [placed]
    return alone and os.access(placed, os.X_OK) and placed.read_bytes() == b"#!/bin/sh\necho works\n"


def test_it_takes_no_room_of_its_own_and_a_repeat_changes_nothing(home, sent):
    for _ in range(2):
        assert uv.place(home, MESSAGE) == {"path": uv.path_of(home, "uv-0.13.7")}
        assert _is_placed(home)
        assert sent.samefile(uv.path_of(home, "uv-0.13.7"))


def test_what_is_built_may_lie_on_another_disk(home, sent, monkeypatch):
    def no_link(old: str, new: str) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", no_link)
    uv.place(home, MESSAGE)
    assert _is_placed(home)


def test_one_that_has_not_arrived_is_refused(home):
    with pytest.raises(Refused, match=r"uv-0\.13\.7"):
        uv.place(home, MESSAGE)
    with pytest.raises(Refused, match="not here yet"):
        uv.require_tools(home, ["uv-0.13.7"])
