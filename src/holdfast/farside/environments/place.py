"""Where an environment will be used, which is this machine or the inside of an image: what its makers ask about that.

Loaded for every run: what only builds need is imported where it is used."""

import os
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from holdfast.farside.environments.platforms import build_name, platform_name
from holdfast.farside.system.layout import Home

if TYPE_CHECKING:
    from holdfast.farside.environments.interpreters import Interpreter

CONDA = "conda"
"""In place of a Python: one out of the channels, which an environment has inside."""


class BuildPlace:
    """This machine. What is the inside of an image overrides all of it.

    `platform` as in a lock; `tag` stands in the names of what is of use at this place only, and is empty here; `words`
    is what messages call it; `cache` is the name of the package cache for such a platform."""

    tag = ""
    words = "this machine"
    cache = "uv"

    def __init__(self, home: Home) -> None:
        self.home = home
        self.platform = platform_name()

    def pythons(self) -> "List[Interpreter]":
        """All that can be started there."""
        from holdfast.farside.environments.interpreters import found_here
        from holdfast.farside.system.children import inherited_environment

        return found_here(self.home, inherited_environment())

    def choose(self, pin: str, found: "List[Interpreter]") -> "Optional[Interpreter]":
        """The one of `pythons` that the pin means."""
        from holdfast.farside.environments.interpreters import choose

        return choose(pin, found)

    def brought(self) -> "List[Interpreter]":
        """Those that uv brought for earlier runs, which are no part of the place."""
        from holdfast.farside.environments.interpreters import Interpreter, brought, versions_of
        from holdfast.farside.system.children import inherited_environment

        known = versions_of(brought(self.home, build_name()), inherited_environment())
        return [Interpreter(path, version) for path, version in known.items() if version]

    def own(self, path: str) -> "Optional[Interpreter]":
        """The Python of that place for a spec that pins none, where it is known without a question; `path` is what
        the plan says."""
        return None

    def has_none(self, path: str) -> bool:
        """Whether the plan leaves the Python to a place that has none."""
        return False

    def active(self, path: str) -> "List[Interpreter]":
        """The plan's Python as one more to choose from, if it starts."""
        from holdfast.farside.environments.interpreters import Interpreter, versions_of
        from holdfast.farside.system.children import inherited_environment

        version = versions_of([path], inherited_environment()).get(path)
        return [Interpreter(path, version)] if version else []

    def identity(self, path: str) -> str:
        """What tells one Python from all others, wherever the environment is looked for."""
        return os.path.realpath(path)

    def noted_as(self, pin: str, path: str) -> str:
        """What was asked for, as it stands in the notes about what was built."""
        return pin or os.path.realpath(path)

    def about(self, interpreter: str) -> Dict[str, str]:
        """For the mark of an environment that is made with this Python."""
        return {}

    def can_use(self, mark: Dict[str, Any]) -> bool:
        """Whether an environment with this mark works there."""
        return is_of(mark, self.tag) and not mark.get("image")


def is_of(mark: Dict[str, Any], tag: str) -> bool:
    """False where something in it was compiled at another place, with what that place has."""
    return not mark.get("compiled") or str(mark.get("place", "")) == tag
