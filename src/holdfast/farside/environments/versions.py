"""Versions of Python and what a spec asks of them."""

import re
from typing import Tuple

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
