"""A home in which environments can be made, and a prefix with room for packages."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.farside.system.layout import Home


@pytest.fixture
def home(home: Home) -> Home:
    os.mkdir(home.locks())
    return home


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The folder of the packages of a prefix, which is `tmp_path`."""
    folder = tmp_path / "lib" / "python3.11" / "site-packages"
    folder.mkdir(parents=True)
    return folder
