"""Where an environment will be used, this machine or the inside of an image, and which Python it is made with there:
the one that the spec pins, or the active one."""

import os
import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from holdfast.farside.environments.platforms import build_name, platform_name
from holdfast.farside.machine import pythons
from holdfast.farside.system.children import CannotStart, inherited_environment
from holdfast.farside.system.files import names_in
from holdfast.farside.system.layout import Home
from holdfast.farside.system.programs import Program, collect
from holdfast.farside.system.real_paths import real_path

_BUILD = re.compile(r"-linux-(x86_64|aarch64|ppc64le|s390x|riscv64)-(gnu|musl)\Z")
PATIENCE = 5.0
"""Seconds for a Python to say its version."""


class Interpreter(NamedTuple):
    """`path` as it was found, `version` in full (`3.11.2`)."""

    path: str
    version: str


def found_here(home: Home, environment: Dict[str, str]) -> List[Interpreter]:
    """All that can be started, those of an environment last: they may be gone tomorrow."""
    known = versions_of(brought(home, build_name()) + pythons.candidates(environment), environment)
    found = [Interpreter(path, version) for path, version in known.items() if version]
    return sorted(found, key=lambda each: _is_environment(each.path))


def brought(home: Home, build: str) -> List[str]:
    """The Pythons that uv downloaded for earlier runs, for `build` such as `x86_64-musl`. Others in the folder are
    for an image, or for another machine that shares the home."""
    folder = home.pythons()
    names = [name for name in names_in(folder) if _is_for(name, build)]
    paths = [os.path.join(folder, name, "bin", "python3") for name in names if not os.path.islink(folder + "/" + name)]
    return [path for path in paths if os.access(path, os.X_OK)]


def _is_for(name: str, build: str) -> bool:
    """By the name of its folder, as `cpython-3.12.4-linux-x86_64-gnu`; one that does not tell is taken."""
    found = _BUILD.search(name)
    return found is None or "%s-%s" % (found.group(1), "musl" if found.group(2) == "musl" else "glibc") == build


def versions_of(paths: List[str], environment: Dict[str, str]) -> Dict[str, Optional[str]]:
    """The full version of each, or None if it does not start. Read from the path where that has it; the others are
    started, all at once."""
    known = {path: pythons.version_by_place(path) for path in paths}
    started: Dict[str, Program] = {}
    for path in [path for path in paths if known[path] is None][: pythons.MOST_STARTED]:
        try:
            started[path] = Program([path, "-I", "-S", "-c", pythons.QUESTION], environment)
        except CannotStart:
            pass
    collect(list(started.values()), PATIENCE)
    known.update({path: pythons.version_said(program.text()) for path, program in started.items()})
    return known


def choose(pin: str, found: List[Interpreter]) -> Optional[Interpreter]:
    """The newest that satisfies the pin; of equals the first."""
    best: Optional[Interpreter] = None
    for each in found:
        if satisfies(each.version, pin) and (best is None or numbers(each.version) > numbers(best.version)):
            best = each
    return best


def version_list(found: List[Interpreter]) -> str:
    """For an error: which versions there are, the newest first."""
    return ", ".join(sorted({each.version for each in found}, key=numbers, reverse=True)) or "none"


def _is_environment(path: str) -> bool:
    prefix = os.path.dirname(os.path.dirname(path))
    return os.path.exists(os.path.join(prefix, "pyvenv.cfg")) or os.path.basename(os.path.dirname(prefix)) == "envs"


_CLAUSE = re.compile(r"(==|!=|<=|>=|~=|<|>)\s*(\d+(?:\.\d+)*)(\.\*)?\Z")


def satisfies(version: str, pin: str) -> bool:
    """`pin` is a version (`3.11` is every 3.11.x) or clauses such as `>=3.10,<3.13`."""
    if re.match(r"\d", pin):
        wanted = numbers(pin)
        return numbers(version)[: len(wanted)] == wanted
    return all(_satisfies_clause(version, clause.strip()) for clause in pin.split(","))


def numbers(version: str) -> Tuple[int, ...]:
    """`(3, 14, 0)` of `3.14.0rc2`."""
    return tuple(int(part) for part in re.findall(r"(?:^|\.)(\d+)", version))


def _satisfies_clause(version: str, clause: str) -> bool:
    parsed = _CLAUSE.match(clause)
    if parsed is None:
        return False
    operator, text, is_prefix = parsed.groups()
    have, wanted = numbers(version), numbers(text)
    starts = have[: len(wanted)] == wanted
    padded = wanted + (0,) * (len(have) - len(wanted))
    if operator in ("==", "!="):
        equal = starts if is_prefix else have == padded
        return equal == (operator == "==")
    if operator == "~=":
        return have >= padded and have[: len(wanted) - 1] == wanted[:-1]
    return {"<": have < padded, "<=": have <= padded, ">": have > padded and not starts, ">=": have >= padded}[operator]


CONDA = "conda"
"""Stands for a Python from the conda channels, which is installed inside the environment."""


class BuildPlace:
    """Where an environment is built and used: this machine. `InImage` overrides all of it for the inside of an image.

    `platform` is written as in a lock. `tag` marks things that work at this place only, and is empty for the machine.
    `words` is what messages call the place. `cache` is the folder of uv's cache for this platform."""

    tag = ""
    words = "this machine"
    cache = "uv"

    def __init__(self, home: Home) -> None:
        self.home = home
        self.platform = platform_name()

    def pythons(self) -> List[Interpreter]:
        """All Pythons that can be started there."""
        return found_here(self.home, inherited_environment())

    def choose(self, pin: str, found: List[Interpreter]) -> Optional[Interpreter]:
        """The one of `pythons` that the pin means."""
        return choose(pin, found)

    def brought(self) -> List[Interpreter]:
        """Those that uv brought for earlier runs, which are no part of the place."""
        known = versions_of(brought(self.home, build_name()), inherited_environment())
        return [Interpreter(path, version) for path, version in known.items() if version]

    def own(self, path: str) -> Optional[Interpreter]:
        """The Python for a spec that pins none, if it is known without asking; else None. `path` is the plan's."""
        return None

    def has_none(self, path: str) -> bool:
        """Whether the plan leaves the Python to a place that has none."""
        return False

    def active(self, path: str) -> List[Interpreter]:
        """The plan's Python as one more to choose from, if it starts."""
        version = versions_of([path], inherited_environment()).get(path)
        return [Interpreter(path, version)] if version else []

    def identity(self, path: str) -> str:
        """A text that differs for every two Pythons; it becomes part of the environment's name."""
        return real_path(path)

    def noted_as(self, pin: str, path: str) -> str:
        """The key for the note of which environment a lock became: the pin, or else the Python's real path."""
        return pin or real_path(path)

    def about(self, interpreter: str) -> Dict[str, str]:
        """Fields to add to the mark of an environment that is made with this Python."""
        return {}

    def can_use(self, mark: Dict[str, Any]) -> bool:
        """Whether an environment with this mark works there."""
        return is_of(mark, self.tag) and not mark.get("image")


def is_of(mark: Dict[str, Any], tag: str) -> bool:
    """False if a package in it was compiled at another place."""
    return not mark.get("compiled") or str(mark.get("place", "")) == tag
