"""What is found in a spec before anything is built: a value for each line that will not do, and what to write.

With it what several rules need: packages that are built for certain versions of Python, against the one that the spec
names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from holdfast.environments.version_ranges import allows
from holdfast.frozen import dataclass
from holdfast.project.environment_spec import EnvironmentSpec, Requirement
from holdfast.project.problems import Severity
from holdfast.project.requirement_lines import RequiredPackage, parse_wheel_name

Kind = Literal[
    "gone",  # the name or address is there no more, or installs nothing but an error
    "not-needed",  # belongs to the old product
    "other-name",  # the index has it under another name
    "missing-index",  # a build that the default index has not
    "other-system",  # a wheel for another system
    "other-python",  # built for another Python than the pinned one
    "shadowed",  # two packages that write the same module
    "cpu-build",  # a build without CUDA, where a GPU is wanted
]
KINDS: tuple[str, ...] = get_args(Kind)


@dataclass(frozen=True)
class SpecFinding:
    """`sentence` and `remedy` are for people; `file` is relative to the project.

    `replacement` is what `--fix` writes instead of `original`, which stands in `line`: empty to remove it, None where a
    person has to choose. Where `original` is empty, the replacement is a new line: Python's among the conda packages,
    any other in front of `line`.
    """

    kind: Kind
    package: str
    sentence: str
    remedy: str
    severity: Severity = "error"
    file: str = ""
    line: int = 0
    replacement: str | None = None
    original: str = ""


def _minor_version(python: str) -> int | None:
    """Of `3.11` and `3.11.4`, 11; None for anything that does not name one minor version of Python 3."""
    found = re.fullmatch(r"3\.(\d+)(?:\.\d+)*", python)
    return int(found[1]) if found else None


_OLDEST, _NEWEST = 6, 15
"""Minor versions of Python 3 that environments can be built for; the newest is only so far ahead as to be open."""

CNTK = ("cntk", "cntk-gpu")
CNTK_VERSIONS = ("2.5", "2.5.1", "2.6", "2.7", "2.7.post1", "2.7.post2")
"""All that the package index has, of either."""
_CNTK_PYTHONS = (5, 6)


@dataclass(frozen=True)
class Need:
    """A line whose package is, of Python 3, built for `minors` only; `is_wheel` where the line itself names it."""

    line: Requirement
    package: str
    minors: tuple[int, ...]
    is_wheel: bool = False


def find_other_pythons(spec: EnvironmentSpec, needs: Sequence[Need]) -> list[SpecFinding]:
    """Nothing where every Python that the spec allows suits all; a warning where only some do.

    The fix is the newest Python that suits all needs as the pin. A person has to choose where there is none, and where
    a pin excludes a wheel: another wheel may be meant.
    """
    suiting = set(range(_OLDEST, _NEWEST + 1)).intersection(*(need.minors for need in needs))
    wanted = allowed_minors(spec)
    found = [_unsuited(spec, need, wanted, suiting) for need in needs if not wanted <= set(need.minors)]
    if _is_too_old(spec) and not found:
        found.append(_too_old(spec, min(suiting, default=_OLDEST)))
    return found


def needs_of_wheels(lines: Sequence[tuple[Requirement, RequiredPackage]]) -> list[Need]:
    """Of CNTK, and of wheels that a line names."""
    found: list[Need] = []
    for line, package in lines:
        wheel = parse_wheel_name(package.file_name)
        if package.name in CNTK or is_old_cntk(package.location):
            found.append(Need(line, package.name or "cntk", _CNTK_PYTHONS))
        elif wheel and "python" not in package.marker and (minors := _minors(wheel.pythons, wheel.abis)):
            found.append(Need(line, wheel.name, minors, is_wheel=True))
    return found


def _unsuited(spec: EnvironmentSpec, need: Need, wanted: set[int], suiting: set[int]) -> SpecFinding:
    says = f"the spec says {spec.python}" if spec.python else "the spec names no Python"
    only = " only" if need.is_wheel else ""  # of the others there are wheels for Python 2.7 too
    sentence = f"`{need.package}` is built for Python {_listed(need.minors)}{only}; {says}."
    severity: Severity = "warning" if wanted & set(need.minors) else "error"
    found = SpecFinding("other-python", need.package, sentence, "", severity)
    place = (need.line.file, need.line.line, None, need.line.text)
    if need.is_wheel and severity == "error":
        remedy = f"Name the wheel for Python {spec.python}, or pin Python 3.{max(need.minors)}."
    elif not suiting:
        remedy = "No Python suits all packages of which this is said: keep those that one Python suits."
    else:
        return _pinned(spec, need.line, found, f"3.{max(suiting & wanted or suiting)}")
    return SpecFinding(found.kind, found.package, sentence, remedy, severity, *place)


def allowed_minors(spec: EnvironmentSpec) -> set[int]:
    """Of all that could be: those that the spec allows."""
    every = range(_OLDEST, _NEWEST + 1)
    if spec.python is None:
        return set(every)
    one = _minor_version(spec.python)
    if one is not None:
        return {one}
    if re.fullmatch(r"\d+(\.\d+)*", spec.python):
        return set(every) if spec.python == "3" else set()
    return {each for each in every if allows(spec.python, f"3.{each}")}


def is_old_cntk(text: str) -> bool:
    """Whether it names a wheel at the address that CNTK's had."""
    return bool(re.search(r"//(?:www\.)?cntk\.ai/", text, re.IGNORECASE))


def _is_too_old(spec: EnvironmentSpec) -> bool:
    minor = _minor_version(spec.python or "")
    return bool(spec.pip) and ((minor is not None and minor < _OLDEST) or (spec.python or "").startswith("2"))


def _too_old(spec: EnvironmentSpec, minor: int) -> SpecFinding:
    """`minor` is the oldest that suits all packages."""
    sentence = f"Python {spec.python} is too old: packages can be installed for Python 3.{_OLDEST} and newer."
    line = spec.python_from or Requirement("", 0, spec.file)
    if (spec.python or "").startswith("2"):  # the script has to change too: a person decides that
        remedy = f"Write `python=3.{minor}` or newer, and see that the script runs with it."
        return SpecFinding("other-python", "python", sentence, remedy, "error", line.file, line.line, None, line.text)
    return _pinned(spec, line, SpecFinding("other-python", "python", sentence, ""), f"3.{minor}")


def _pinned(spec: EnvironmentSpec, line: Requirement, found: SpecFinding, pin: str) -> SpecFinding:
    """The finding at the place where the pin is to be written, with the text for that kind of file."""
    stands = spec.python_from
    if stands is None and spec.file.endswith((".yml", ".yaml")):
        text, remedy = f"python={pin}", f"Write `- python={pin}` below `dependencies:`."
        place: tuple[str, int, str | None, str] = (spec.file, line.line if line.file == spec.file else 0, text, "")
    elif stands is None:
        remedy = f"Write `{pin}` into a file `.python-version` beside {spec.file}."
        place = (line.file, line.line, None, line.text)
    elif stands.file.endswith((".yml", ".yaml")):
        remedy = f"Write `python={pin}`."
        place = (stands.file, stands.line, f"python={pin}", stands.text)
    elif stands.file.endswith(".python-version"):
        remedy = f"Write `{pin}`."
        place = (stands.file, stands.line, pin, stands.text)
    else:
        remedy = f"Write `{pin}` into a file `.python-version` beside {stands.file}."
        place = (stands.file, stands.line, None, stands.text)
    return SpecFinding(found.kind, found.package, found.sentence, remedy, found.severity, *place)


def _minors(pythons: Iterable[str], abis: Sequence[str]) -> tuple[int, ...]:
    """Of a wheel's tags; none where any Python 3 will do."""
    minors: set[int] = set()
    for tag in pythons:
        found = re.fullmatch(r"cp3(\d+)", tag)
        if not found:
            return ()
        minors |= set(range(int(found[1]), _NEWEST + 1)) if "abi3" in abis else {int(found[1])}
    return tuple(sorted(minors))


def _listed(minors: Sequence[int]) -> str:
    first, last = min(minors), max(minors)
    if last >= _NEWEST:
        return f"3.{first} and newer"
    return f"3.{first}" if first == last else f"3.{first} to 3.{last}"
