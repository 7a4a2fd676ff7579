"""A home, and living runs: a separate process holds their lock, as a guardian does."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.farside.system.layout import Home
from unit.farside.programs import lock_held


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Holdfast's folder of an account, with its mark."""
    made = Home(str(tmp_path / "home"))
    made.make()
    return made


@pytest.fixture
def make_living() -> Iterator[Callable[[Path], Path]]:
    """Makes the folder of a run, and a process that holds its lock until the test ends."""
    with contextlib.ExitStack() as holders:

        def make(run: Path) -> Path:
            holders.enter_context(lock_held(run / "lock"))
            return run

        yield make
