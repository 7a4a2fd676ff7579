"""Names, passwords and tokens inside addresses: taken out while a file is read, so that nothing that is kept, shown or
sent as text has them. In their place stands a variable, `${HOLDFAST_INDEX_3F29A1C4}`.

It is named by the address that it belongs to, so that the same name means the same place in every spec: what one host
is told is never sent to another."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import _Hash as _Address

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
        self._names: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}

    def conceal(self, text: str) -> str:
        if "://" not in text:
            return text
        return re.sub(_ADDRESS, self._conceal_address, text)

    def taken(self) -> Credentials:
        return Credentials(self._values)

    def _conceal_address(self, found: re.Match[str]) -> str:
        import hashlib

        written = found["address"]
        address = hashlib.sha256(_plain(written).encode("utf-8", "surrogatepass"))
        text = re.sub(_LOGIN, lambda each: self._conceal_login(each, address), written, count=1)
        if not text.lower().startswith("file:"):
            text = re.sub(_TOKEN, lambda each: each[1] + self._conceal_value(each[2], address, "token"), text)
        return found["before"] + self._conceal_parameters(text, address)

    def _conceal_parameters(self, text: str, address: _Address) -> str:
        """A parameter that is not secret is passed as a whole: its value may hold the next `?`."""
        pieces: list[str] = []
        kept = at = 0
        while name := re.compile(_PARAMETER).search(text, at):
            at = name.end()
            value = re.compile(_VALUE).match(text, at) if re.search(_SECRET_PARAMETER, name[1]) else None
            if value:
                pieces += [text[kept : value.start(1)], self._conceal_value(value[1], address, name[1])]
                kept = at = value.end()
        return "".join([*pieces, text[kept:]])

    def _conceal_login(self, found: re.Match[str], address: _Address) -> str:
        scheme, login = found["scheme"], found["login"] or found["odd"]
        is_account = scheme.lower().endswith("ssh://") and ":" not in login
        if is_account or re.fullmatch(rf"(?:[^:]*:)?(?:{VARIABLE})+:?", login):  # the password is not in the file
            return found[0]
        return f"{scheme}{self._conceal_value(login, address, 'login')}@"

    def _conceal_value(self, secret: str, address: _Address, place: str) -> str:
        """What stands between variables, each for itself: the installer fills in no variable of a variable."""
        parts = re.split(rf"({_WHOLE_VARIABLE}:?|:(?={_WHOLE_VARIABLE}))", secret)
        return "".join(
            self._named(part, address, f" {place} {number}") if number % 2 == 0 else part
            for number, part in enumerate(parts)
            if part
        )

    def _named(self, secret: str, address: _Address, place: str) -> str:
        digest = address.copy()
        digest.update(place.encode("utf-8", "surrogatepass"))
        same = f"{_PREFIX}{digest.hexdigest()[:8].upper()}"
        name = self._names.get((same, secret))
        if name is None:  # one place may be asked in several ways
            count = self._counts[same] = self._counts.get(same, 0) + 1
            name = self._names[same, secret] = same if count == 1 else f"{same}_{count}"
            self._values[name] = secret
        return f"${{{name}}}"


def without_credentials(text: str) -> str:
    """For comparing: the same whether credentials still stand in the text or have been taken out."""
    return re.sub(rf"\$\{{{_PREFIX}[0-9A-F]{{8}}(?:_\d+)?\}}", "***", Concealer().conceal(text))


_WHOLE_VARIABLE = r"\$\{[A-Z0-9_]+\}"

# Not compiled before they are needed: most files have no address.
# From the beginning of a run of its characters, once for each run, and only if the run ends as a scheme does.
_IN_SCHEME = "[A-Za-z0-9+.-]"
_ADDRESS = (
    rf"(?<!{_IN_SCHEME})(?={_IN_SCHEME}*://\S)(?P<before>{_IN_SCHEME}*?)"
    rf"(?P<address>\b[A-Za-z]{_IN_SCHEME}*://\S+)"
)

# A user in front of a host, as far as the last `@` before the path. A password with a slash in it is no valid address,
# but is a password: what stands behind the colon is no port, and a host follows.
_LOGIN = (
    r"^(?P<scheme>[^:]+://)(?:(?P<login>[^/\s]+)"
    rf"|(?P<odd>[^/\s:@\[]+:(?!\d*/|{_WHOLE_VARIABLE}/)[^/\s@]*/\S*?(?=@[A-Za-z0-9.-]+(?::\d+)?(?:[/?#\s'\"]|$))))@"
)

# A token of conda's, in the path. farside/environments/conda_worker.py has the same rule.
_TOKEN = r"(/t/)((?:(?!::)[^/\s\"'`)?#])+)"  # noqa: S105 - a pattern

# A signature, token or the like among the parameters; `::` ends the address of a conda channel.
_PARAMETER = r"[?&]([^=&#\s]+)"
_SECRET_PARAMETER = r"(?i:sig|sas|token|key|secret|auth|credential|pass|pwd)"  # noqa: S105 - a pattern
_VALUE = r"=((?:(?!::|['\"](?:\s|$))[^&#\s])+)"


def _plain(address: str) -> str:
    """Where an address leads, without all that may be secret in it."""
    text = re.sub(_LOGIN, lambda each: each["scheme"], address, count=1)
    host = re.match(r"[^:]+://(?:\[[^\]\[]*\]|[^/?#\s])*", text)
    end = host.end() if host else 0
    path = re.split(r"[?#]|::", text[end:], maxsplit=1)[0]
    return text[:end] + re.sub(_TOKEN, r"\1", path).rstrip("/'\"")


_SECRET_WORD = r"(API|ACCESS|AUTH|PRIVATE|SECRET)?KEYS?|\w*(TOKEN|SECRET|PASSWORD|PASSWD)S?"  # noqa: S105 - a pattern
_PLACE_WORDS = frozenset(("FILE", "PATH", "DIR", "DIRECTORY", "NAME"))


def looks_secret(name: str) -> bool:
    """Whether a variable of this name is likely to hold what only its owner may see."""
    words = name.upper().split("_")
    return words[-1] not in _PLACE_WORDS and any(re.fullmatch(_SECRET_WORD, word) for word in words)
