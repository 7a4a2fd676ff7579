"""Which variables are likely to hold something that nobody else may see, by their names."""

from __future__ import annotations

import re

_SECRET_WORD = r"(API|ACCESS|AUTH|PRIVATE|SECRET)?KEYS?|\w*(TOKEN|SECRET|PASSWORD|PASSWD)S?"  # noqa: S105 - a pattern
_PLACE_WORDS = frozenset(("FILE", "PATH", "DIR", "DIRECTORY", "NAME"))


def looks_secret(name: str) -> bool:
    words = name.upper().split("_")
    return words[-1] not in _PLACE_WORDS and any(re.fullmatch(_SECRET_WORD, word) for word in words)
