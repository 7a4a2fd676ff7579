"""Names, passwords and tokens inside addresses: taken out while a file is read, so that nothing that is kept, shown or
sent as text has them. In their place stands a variable, `${HOLDFAST_INDEX_1}`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

VARIABLE = r"\$\{([A-Z0-9_]+)\}"
"""As pip and uv know them; nothing else is a variable in a requirements file."""

PREFIX = "HOLDFAST_INDEX_"


class Credentials(Mapping[str, str]):
    """By the variable's name; for an address with a user, the value is `user:password`. Shows names, never values."""

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values = dict(values or {})

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._values)))

    def __repr__(self) -> str:
        return f"Credentials({', '.join(f'{name}=***' for name in self._values)})"


class Concealer:
    """Takes credentials out of the texts of one spec; equal ones get the same variable."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def conceal(self, text: str) -> str:
        if "://" not in text:
            return text
        return re.sub(_HIDDEN, self._replace, text)

    def taken(self) -> Credentials:
        return Credentials({name: value for value, name in self._names.items()})

    def _replace(self, found: re.Match[str]) -> str:
        before, secret = (found["before"], found["user"]) if found["user"] else (found["key"], found["value"])
        is_login = before.lower().endswith("ssh://") and ":" not in secret
        if is_login or re.fullmatch(rf"(?:[^:]*:)?(?:{VARIABLE})+:?", secret):  # the password is not in the file
            return found[0]
        # What stands between variables, each for itself: the installer fills in no variable of a variable.
        parts = re.split(rf"({_WHOLE_VARIABLE}:?|:(?={_WHOLE_VARIABLE}))", secret)
        shown = "".join(self._named(part) if number % 2 == 0 else part for number, part in enumerate(parts) if part)
        return f"{before}{shown}{'@' if found['user'] else ''}"

    def _named(self, secret: str) -> str:
        name = self._names.setdefault(secret, f"{PREFIX}{len(self._names) + 1}")
        return f"${{{name}}}"


_WHOLE_VARIABLE = r"\$\{[A-Z0-9_]+\}"

# A user in front of a host, as far as the last `@` before the path; a conda token in the path; a signature or token
# among the parameters.
_HIDDEN = (
    r"(?P<before>\b[A-Za-z][A-Za-z0-9+.-]*://)(?P<user>[^/\s]+)@"
    r"|(?P<key>/t/(?=[^/\s]{12,}/)|(?i:[?&](?:sig|sas|token|access_token|private_token|api_?key|password)=))"
    r"(?P<value>[^/&#\s]+)"
)


def without_credentials(text: str) -> str:
    """For comparing: the same whether credentials still stand in the text or have been taken out."""
    return re.sub(rf"\$\{{{PREFIX}\d+\}}", "***", Concealer().conceal(text))
