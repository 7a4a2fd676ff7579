"""Boxes behind real SSH servers. `box()` makes one, `box("gpu2")` another; each has its own account."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.remote.benches import far_bench  # noqa: F401 - a fixture
from kit.accounts import premises
from kit.boxes import Box, Boxes
from kit.homes import furnish_account
from kit.sshd import Client, Options
from kit.suite.missing_parts import require

PROGRAMS = ("sshd", "ssh", "ssh-keygen", "useradd")


@pytest.fixture(scope="session")
def kit_folder() -> Iterator[Path]:
    """The folder of this session's homes and servers; every user can enter it."""
    require(*PROGRAMS, root=True)
    with premises() as folder:
        yield folder


_NUMBERS = itertools.count()


@pytest.fixture
def boxes(kit_folder: Path) -> Iterator[Boxes]:
    """For tests that combine accounts, servers and clients themselves."""
    folder = kit_folder / f"test{next(_NUMBERS)}"
    folder.mkdir(mode=0o755)
    with contextlib.closing(Boxes(folder)) as made:
        yield made


@pytest.fixture
def client(boxes: Boxes) -> Client:
    """The laptop of this test."""
    return boxes.client()


@pytest.fixture
def box(boxes: Boxes, client: Client) -> Callable[..., Box]:
    """A function that makes a box with its own account and server.

    `password` gives the account one; `key=False` leaves the client without a key; `options` are those of its sshd.
    """
    numbers = itertools.count(1)

    def make(
        name: str = "",
        *,
        options: Options = Options(),  # noqa: B008 - it is frozen
        shell: str = "/bin/bash",
        password: str = "",
        key: bool = True,
    ) -> Box:
        number = next(numbers)
        account = boxes.account(shell, password)
        return boxes.box(name or f"gpu{number}", client, account, boxes.server(options), key)

    return make


@pytest.fixture
def known_box(box: Callable[..., Box]) -> Callable[..., Box]:
    """`known_box()` is a `box()` whose account has used Holdfast: the first contact is not what the test is about."""

    def make(*arguments: Any, **options: Any) -> Box:
        made = box(*arguments, **options)
        furnish_account(made.account)
        return made

    return make
