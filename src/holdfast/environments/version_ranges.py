"""Which versions a specifier allows: `>=2.0,<2.12`, `==1.15.*`, `~=3.8`."""

from __future__ import annotations

import re

_Release = tuple[int, ...]


def allows(specifier: str, version: str) -> bool:
    """A clause that is not understood allows everything: a finding needs proof."""
    return all(_holds(clause.strip(), version) for clause in specifier.split(",") if clause.strip())


def release(version: str) -> _Release:
    """The numbers in front, without zeros at the end: `2.0.0rc1` → (2,)."""
    found = re.match(r"v?(\d+(?:\.\d+)*)", version.strip())
    numbers = [int(part) for part in found[1].split(".")] if found else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def _holds(clause: str, version: str) -> bool:
    found = re.fullmatch(r"(===|==|!=|<=|>=|~=|<|>)\s*([\w.+!*-]+)", clause)
    if not found:
        return True
    operator, written = found[1], found[2]
    is_within = _is_within(version, written)
    mine, theirs = release(version), release(written)
    match operator:
        case "===" | "==":
            return is_within
        case "!=":
            return not is_within
        case "<=":
            return mine <= theirs
        case ">=":
            return mine >= theirs
        case "<":
            return mine < theirs
        case ">":
            return mine > theirs
    parts = re.split(r"\.", written)[:-1]  # ~=3.8 is >=3.8, ==3.*
    return mine >= theirs and _is_within(version, ".".join((*parts, "*")))


def _is_within(version: str, written: str) -> bool:
    if not written.endswith(".*"):
        return release(version) == release(written) and _suffix(version) == _suffix(written)
    wanted = [int(part) for part in re.findall(r"\d+", written.removesuffix(".*"))]
    numbers = [int(part) for part in re.findall(r"\d+", re.match(r"[\d.]*", version)[0])]  # type: ignore[index]  # may be empty
    return (numbers + [0] * len(wanted))[: len(wanted)] == wanted


def _suffix(version: str) -> str:
    """What makes `0.0.post1` another version than `0.0`; a local part (`+cu118`) does not."""
    return re.sub(r"^v?[\d.]*", "", version.partition("+")[0]).strip(".")
