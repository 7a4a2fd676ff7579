"""Reads what the launcher says. The script can write there too, so only known events with the right fields count."""

from typing import Any, Callable, Dict, List, NamedTuple, Optional

from holdfast.farside.containers.launcher import STATUS
from holdfast.farside.system import foreign
from holdfast.farside.system.nofollow import read_below

MOST_LINE = 1 << 20
MOST_LATE = 32 << 10
"""Bytes of the one line that is passed on after the script has started: what the pipe to the supervisor holds."""
_MOST_STATUS = 1 << 20
_LONGEST_WORD = 200

Event = Dict[str, Any]


class LastWords(NamedTuple):
    """How the script ended. `swept` are pid, name and signal of what it left, `total` counts them all."""

    code: Optional[int]
    signal: Optional[int]
    is_owned: bool
    outside: Optional[int]
    swept: List[List[Any]]
    total: int
    memory_kills: Optional[int]
    memory_limit: Optional[int]


def parse_event(line: bytes) -> Optional[Event]:
    """A line as the launcher and the keeper write it."""
    found = foreign.parsed(line)
    if not isinstance(found, dict) or not isinstance(found.get("e"), str) or found["e"] not in _EVENTS:
        return None
    return found if all(is_good(found.get(name)) for name, is_good in _EVENTS[found["e"]].items()) else None


def is_from_inside(event: Event) -> bool:
    """Whether the launcher may say it; the rest is the keeper's."""
    return event["e"] in _FROM_INSIDE


def read_last_words(inside: str) -> Optional[LastWords]:
    """What it wrote to its folder, as far as there is a whole file."""
    try:
        return parse_last_words(foreign.parsed(read_below(inside, STATUS, _MOST_STATUS)))
    except OSError:
        return None


def parse_last_words(found: Any) -> Optional[LastWords]:
    if not isinstance(found, dict):
        return None
    code, number = _number(found.get("code"), 0, 255), _number(found.get("signal"), 1, 64)
    if code is None and number is None:
        return None
    ended = [_ended(each) for each in foreign.listing(found.get("swept"))[:100]]
    return LastWords(
        code,
        number if code is None else None,
        found.get("owned") is True,
        _number(found.get("outside"), 1, 64),
        [each for each in ended if each],
        _number(found.get("count"), 0) or 0,
        _number(found.get("memory_kills"), 0),
        _number(found.get("memory_limit"), 0),
    )


def _number(found: Any, least: int, most: int = 1 << 60) -> Optional[int]:
    return found if isinstance(found, int) and not isinstance(found, bool) and least <= found <= most else None


def _ended(found: Any) -> List[Any]:
    if not isinstance(found, list) or len(found) != 3 or _number(found[0], 1) is None:
        return []
    return [found[0]] + [str(each)[:_LONGEST_WORD] for each in found[1:]]


def _is_text(found: Any) -> bool:
    return isinstance(found, str)


def _are_texts(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(each, str) for each in found)


def _are_findings(found: Any) -> bool:
    return isinstance(found, list) and all(_are_texts(each) for each in found)


_Fields = Dict[str, Callable[[Any], bool]]
_FROM_INSIDE: Dict[str, _Fields] = {
    "python": {"version": _is_text, "packages": _are_texts},
    "frameworks": {"names": _are_texts, "findings": _are_findings},
    "note": {"text": _is_text},
    "unfit": {"message": _is_text, "hint": _is_text},
    "cannot-start": {"text": _is_text},
    "started": {},
    "status": {"status": lambda found: isinstance(found, dict)},
}
_EVENTS: Dict[str, _Fields] = dict(
    _FROM_INSIDE,
    trying={"way": _is_text},
    refused={"kind": _is_text, "message": _is_text, "hint": _is_text},
    failed={"text": _is_text},
)
