"""Taking typed values out of a document while collecting every problem with file, line, key and remedy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.errors import nearest
from holdfast.project.documents import Document
from holdfast.project.nodes import ListNode, MapNode, MappingEntry, Node, Scalar
from holdfast.project.problems import Problem, Severity

TRUE = frozenset(("true", "yes", "on"))
FALSE = frozenset(("false", "no", "off"))


class Fields:
    """One document while it is being read. Lives inside a reader; never crosses a seam."""

    def __init__(self, document: Document, problems: list[Problem] | None = None) -> None:
        self.document = document
        self.problems = [] if problems is None else problems
        self._meant: set[str] = set()

    def check_keys(
        self, known: Iterable[str], remedies: Mapping[str, str] | None = None, accepted: Iterable[str] = ()
    ) -> None:
        """An unknown key is an error that names the nearest known one.

        `remedies` are for keys that people really wrote; `accepted` are known too, but not to be recommended.
        """
        valid, silent = list(known), set(accepted)
        for entry in self.document.root.entries:
            if entry.name in valid or entry.name in silent:
                continue
            remedy = (remedies or {}).get(entry.name)
            if remedy is None:
                guess = nearest(entry.name, valid)
                self._meant.add(guess or "")
                remedy = f"Write `{guess}`." if guess else f"Known keys: {', '.join(valid)}."
            self.error(entry.name, "unknown key", remedy)

    def has(self, key: str) -> bool:
        """Whether the key is written with a value other than null or empty text."""
        value = self.value(key)
        return value is not None and not (isinstance(value, Scalar) and not value.text)

    def lacks(self, key: str) -> bool:
        """Whether the key is missing, and not only misspelt, which has been said."""
        return not self.has(key) and key not in self._meant

    def text(self, key: str) -> str | None:
        """The value as written; None when it is missing, null, empty or wrong."""
        value = self._scalar(key, f"Write `{key}: value`.")
        if value is None or not value.text:
            return None
        if not value.text.isprintable():
            self.error(key, "holds a line break or control character", "Write one line of plain text.")
            return None
        return value.text

    def boolean(self, key: str, default: bool, others: Iterable[str] = ()) -> bool:
        """`others` are values that the caller has read before, for the remedy."""
        *first, last = (f"`{key}: {each}`" for each in ("true", "false", *others))
        remedy = f"Write {', '.join(first)} or {last}."
        value = self._scalar(key, remedy)
        if value is None:
            return default
        word = value.text.strip().lower()
        if word not in TRUE | FALSE:
            self.error(key, f"`{value.text}` is not true or false", remedy)
            return default
        return word in TRUE

    def choice(self, key: str, choices: Iterable[str]) -> str | None:
        """One of `choices`, in any case; None when it is missing or wrong."""
        written = self.text(key)
        if written is None:
            return None
        valid = {each.lower(): each for each in choices}
        if written.lower() in valid:
            return valid[written.lower()]
        guess = nearest(written, valid.values())
        rest = ", ".join(f"`{each}`" for each in valid.values())
        remedy = f"Write `{key}: {guess}` (valid: {rest})." if guess else f"Valid: {rest}."
        self.error(key, f"`{written}` is not a valid value", remedy)
        return None

    def texts(self, key: str, example: str) -> tuple[Scalar, ...] | None:
        """The items of a list of plain values; None when it is missing or null."""
        value = self.value(key)
        if value is None:
            return None
        return tuple(self.texts_in(key, value, example))

    def texts_in(self, key: str, value: Node, example: str) -> list[Scalar]:
        if not isinstance(value, ListNode):
            self.error(key, "must be a list", f"Write `- {example}` on a line of its own below `{key}:`.", value)
            return []
        found = []
        for item in value.items:
            if not isinstance(item, Scalar):
                self.error(key, "an item must be a single value", f"Write it like `- {example}`.", item)
            elif item.is_null:
                self.error(key, "an item is empty", "Remove the line, or write a value.", item)
            else:
                found.append(item)
        return found

    def pairs(self, key: str) -> tuple[MappingEntry, ...]:
        """The entries of a mapping; empty when it is missing or null."""
        value = self.value(key)
        if value is None:
            return ()
        if not isinstance(value, MapNode):
            self.error(key, "must be a mapping", f"Write `NAME: value` lines, indented, below `{key}:`.", value)
            return ()
        return value.entries

    def value(self, key: str) -> Node | None:
        """Whatever is written, None when it is missing or null."""
        entry = self.document.entry(key)
        if entry is None or (isinstance(entry.value, Scalar) and entry.value.is_null):
            return None
        return entry.value

    def error(self, key: str, message: str, remedy: str, at: Node | None = None) -> None:
        self._add(key, message, remedy, at, "error")

    def warn(self, key: str, message: str, remedy: str, at: Node | None = None) -> None:
        self._add(key, message, remedy, at, "warning")

    def in_order(self) -> list[Problem]:
        """Problems by line, as a person reads the file."""
        return sorted(self.problems, key=lambda each: each.line)

    def _add(self, key: str, message: str, remedy: str, at: Node | None, severity: Severity) -> None:
        entry = self.document.entry(key)
        line = at.place.line if at is not None else entry.line if entry else 1
        self.problems.append(Problem(self.document.file, line, key, message, remedy, severity))

    def _scalar(self, key: str, remedy: str) -> Scalar | None:
        value = self.value(key)
        if value is None or isinstance(value, Scalar):
            return value
        kind = "list" if isinstance(value, ListNode) else "mapping"
        self.error(key, f"must be a single value, not a {kind}", remedy)
        return None
