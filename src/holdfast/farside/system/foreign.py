"""JSON that another program, another version or a script wrote: read so that nothing in it can break its reader.

What is not of the kind that is asked for counts as empty."""

import json
from typing import Any, Dict, List, Union

DEEPEST = 100
"""Levels of lists and objects in each other: Python recurses into them where they are written again."""
_LARGEST = 1 << 63


def parsed(data: Union[str, bytes]) -> Any:
    """None for what is no JSON in UTF-8, or is nested too deep."""
    try:
        text = data if isinstance(data, str) else data.decode("utf-8")
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    is_flat = text.count("[") + text.count("{") <= DEEPEST
    return found if is_flat or _is_shallow(found) else None


def mapping(value: Any) -> Dict[str, Any]:
    return value if isinstance(value, dict) else {}


def listing(value: Any) -> List[Any]:
    return value if isinstance(value, list) else []


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def number(value: Any) -> float:
    """Of 64 bits; 0 for others, NaN and infinities."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and -_LARGEST < value < _LARGEST else 0.0


def _is_shallow(value: Any) -> bool:
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(DEEPEST):
        level = [
            each
            for outer in level
            for each in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(each, (dict, list))
        ]
        if not level:
            return True
    return False
