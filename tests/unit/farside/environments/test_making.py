"""The Python of the conda tool, if there is none and none can be installed."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.farside.environments.build import DEFAULT, Maker
from holdfast.farside.environments.built_environment import Known
from holdfast.farside.environments.place import BuildPlace, Interpreter
from holdfast.farside.system.refusal import Refused


class Empty(BuildPlace):
    """An image without Python."""

    words = "the image `plain`"

    def pythons(self) -> list[Interpreter]:
        return []


class Shop:
    """Every command fails, as without a network."""

    def __init__(self) -> None:
        self.ran: list[list[str]] = []

    def run(self, argv: list[str], *_: Any) -> Any:
        self.ran.append(argv)
        return SimpleNamespace(code=2, output="error: No download found for request\n", signal=None)

    def phase(self, text: str) -> None:
        pass


def test_that_the_conda_tool_finds_no_python_is_not_blamed_on_the_pin(home):
    os.makedirs(home.pythons())
    plan = {"python": "3.11", "interpreter": "", "uv": "uv", "files": "", "conda": [["scipy", "x:1"]], "channels": []}
    shop = Shop()
    maker = Maker(Known(home, plan, {}, Empty(home)), shop)  # type: ignore[arg-type]  # no process is needed here
    with pytest.raises(Refused) as caught:
        maker._tool_python()
    assert shop.ran == [["uv", "python", "install", DEFAULT]]
    assert caught.value.message.startswith(
        "py-rattler, which installs conda packages, needs a Python >=3.10 of its own"
    )
    assert "The image `plain` has no Python" in caught.value.message
    assert "pin another" not in caught.value.message
