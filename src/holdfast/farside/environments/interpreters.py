"""Which of this machine's Pythons an environment is made with: the one that the spec pins, or the active one."""

import os
import re
from typing import Dict, List, NamedTuple, Optional, Tuple

from holdfast.farside.environments.platforms import build_name
from holdfast.farside.machine import pythons
from holdfast.farside.system.children import CannotStart
from holdfast.farside.system.files import names_in
from holdfast.farside.system.layout import Home
from holdfast.farside.system.programs import Program, collect

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
    """Those that uv downloaded for earlier runs. `build` as `x86_64-musl`: others may be for an image, or for another
    machine that has the same home."""
    folder = home.pythons()
    names = [name for name in names_in(folder) if _is_for(name, build)]
    paths = [os.path.join(folder, name, "bin", "python3") for name in names if not os.path.islink(folder + "/" + name)]
    return [path for path in paths if os.access(path, os.X_OK)]


def _is_for(name: str, build: str) -> bool:
    """By the name of its folder, as `cpython-3.12.4-linux-x86_64-gnu`; one that does not tell is taken."""
    found = _BUILD.search(name)
    return found is None or "%s-%s" % (found.group(1), "musl" if found.group(2) == "musl" else "glibc") == build


def versions_of(paths: List[str], environment: Dict[str, str]) -> Dict[str, Optional[str]]:
    """The full version of each, None of one that does not start. Its place tells where it can; the others are started,
    all at once."""
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


def shown(found: List[Interpreter]) -> str:
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
