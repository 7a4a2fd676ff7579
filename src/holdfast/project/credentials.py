"""Names, passwords and tokens inside addresses: taken out while a file is read, so that nothing that is kept, shown or
sent as text has them. In their place stands a variable, `${HOLDFAST_INDEX_3F29A1C4}`.

It is named by the address that it belongs to, so that the same name means the same place in every spec: what one host
is told is never sent to another."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

VARIABLE = r"\$\{([A-Z0-9_]+)\}"
"""As pip and uv know them; nothing else is a variable in a requirements file."""

_PREFIX = "HOLDFAST_INDEX_"


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
    """Takes credentials out of the texts of one spec."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def conceal(self, text: str) -> str:
        if "://" not in text:
            return text
        return re.sub(_ADDRESS, self._conceal_address, text)

    def taken(self) -> Credentials:
        return Credentials(self._values)

    def _conceal_address(self, found: re.Match[str]) -> str:
        address = _plain(found[0])
        text = re.sub(_LOGIN, lambda each: self._conceal_login(each, address), found[0], count=1)
        if not text.lower().startswith("file:"):
            text = re.sub(_TOKEN, lambda each: each[1] + self._conceal_value(each[2], f"{address} token"), text)
        return re.sub(_PARAMETER, lambda each: each[1] + self._conceal_value(each[3], f"{address} {each[2]}"), text)

    def _conceal_login(self, found: re.Match[str], address: str) -> str:
        scheme, login = found["scheme"], found["login"] or found["odd"]
        is_account = scheme.lower().endswith("ssh://") and ":" not in login
        if is_account or re.fullmatch(rf"(?:[^:]*:)?(?:{VARIABLE})+:?", login):  # the password is not in the file
            return found[0]
        return f"{scheme}{self._conceal_value(login, f'{address} login')}@"

    def _conceal_value(self, secret: str, place: str) -> str:
        """What stands between variables, each for itself: the installer fills in no variable of a variable."""
        parts = re.split(rf"({_WHOLE_VARIABLE}:?|:(?={_WHOLE_VARIABLE}))", secret)
        return "".join(
            self._named(part, f"{place} {number}") if number % 2 == 0 else part
            for number, part in enumerate(parts)
            if part
        )

    def _named(self, secret: str, place: str) -> str:
        import hashlib

        name = same = f"{_PREFIX}{hashlib.sha256(place.encode('utf-8', 'surrogatepass')).hexdigest()[:8].upper()}"
        number = 1
        while self._values.setdefault(name, secret) != secret:  # one place, asked in two ways
            number += 1
            name = f"{same}_{number}"
        return f"${{{name}}}"


def without_credentials(text: str) -> str:
    """For comparing: the same whether credentials still stand in the text or have been taken out."""
    return re.sub(rf"\$\{{{_PREFIX}[0-9A-F]{{8}}(?:_\d+)?\}}", "***", Concealer().conceal(text))


_WHOLE_VARIABLE = r"\$\{[A-Z0-9_]+\}"

# Not compiled before they are needed: most files have no address.
_ADDRESS = r"\b[A-Za-z][A-Za-z0-9+.-]*://\S+"

# A user in front of a host, as far as the last `@` before the path. A password with a slash in it is no valid address,
# but is a password: what stands behind the colon is no port, and a host follows.
_LOGIN = (
    r"^(?P<scheme>[^:]+://)(?:(?P<login>[^/\s]+)"
    rf"|(?P<odd>[^/\s:@\[]+:(?!\d*/|{_WHOLE_VARIABLE}/)[^/\s@]*/\S*?(?=@[A-Za-z0-9.-]+(?::\d+)?(?:[/?#\s'\"]|$))))@"
)

# A token of conda's, in the path. farside/environments/conda_worker.py has the same rule.
_TOKEN = r"(/t/)((?:(?!::)[^/\s\"'`)?#])+)"  # noqa: S105 - a pattern

# A signature, token or the like among the parameters; `::` ends the address of a conda channel.
_PARAMETER = (
    r"([?&](?=([^=&#\s]+))(?i:[^=&#\s]*(?:sig|sas|token|key|secret|auth|credential|pass|pwd)[^=&#\s]*)=)"
    r"((?:(?!::|['\"](?:\s|$))[^&#\s])+)"
)


def _plain(address: str) -> str:
    """Where an address leads, without all that may be secret in it."""
    text = re.sub(_LOGIN, lambda each: each["scheme"], address, count=1)
    host = re.match(r"[^:]+://(?:\[[^\]]*\]|[^/?#\s])*", text)
    end = host.end() if host else 0
    path = re.split(r"[?#]|::", text[end:], maxsplit=1)[0]
    return text[:end] + re.sub(_TOKEN, r"\1", path).rstrip("/'\"")


_SECRET_WORD = r"(API|ACCESS|AUTH|PRIVATE|SECRET)?KEYS?|\w*(TOKEN|SECRET|PASSWORD|PASSWD)S?"  # noqa: S105 - a pattern
_PLACE_WORDS = frozenset(("FILE", "PATH", "DIR", "DIRECTORY", "NAME"))


def looks_secret(name: str) -> bool:
    """Whether a variable of this name is likely to hold what only its owner may see."""
    words = name.upper().split("_")
    return words[-1] not in _PLACE_WORDS and any(re.fullmatch(_SECRET_WORD, word) for word in words)
