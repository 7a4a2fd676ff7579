"""What a lock of another machine may say: which versions it has. Its text is parsed, strictly, and nothing of it
reaches an installer but names with versions. Whether two locks are the same environment is told from the parts, too."""

import re
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_PIN = re.compile(r"(%s)==([0-9](?:[0-9A-Za-z.!+_-]*[0-9A-Za-z])?)" % _NAME, re.ASCII)
_HASH = re.compile(r"--hash=[a-z0-9]+:[0-9a-fA-F]+", re.ASCII)
_HASH_LINE = re.compile(r" *(--hash=[a-z0-9]+:[0-9a-fA-F]+) ?(\\?)", re.ASCII)
_COMMENT = re.compile(r"(?:^|\s)#.*", re.ASCII)
_SPACES = {ord(each): " " for each in "\n\t"}
"""Without a carriage return, which is the end of a line for some readers only, as for uv."""
_CONDA_NAME = re.compile(r"[a-z0-9_][a-z0-9._-]*", re.ASCII)
_CONDA_WORD = re.compile(r"[0-9A-Za-z_][0-9A-Za-z._!+-]*", re.ASCII)
_MOST_NAMED = 3
_MOST_SHOWN = 100

Lock = Dict[str, Any]


class LockedPackage(NamedTuple):
    """One package of a requirements file: `text` as `six==1.16.0` or `x @ https://…`, and its hashes."""

    text: str
    hashes: Tuple[str, ...]


def entries(requirements: str) -> List[LockedPackage]:
    """Raises ValueError for a text that says anything but packages with hashes and comments: an option, a continued
    comment, a character that cannot be seen. A comment may follow a package (`six==1.16.0  # via x`)."""
    if not requirements.translate(_SPACES).isprintable():
        raise ValueError("a character that cannot be seen")
    found: List[LockedPackage] = []
    words: List[str] = []
    for line in requirements.split("\n"):
        only_hash = _HASH_LINE.fullmatch(line)  # most lines
        if only_hash:
            words.append(only_hash.group(1))
            goes_on = only_hash.group(2) != ""
        else:
            content = _COMMENT.sub("", line).strip()
            if content and content != line.strip() and line.rstrip().endswith("\\"):
                raise ValueError("a comment that goes on: `%s`" % line.strip())
            words += content.rstrip("\\").split()
            goes_on = content.endswith("\\")
        if words and not goes_on:
            found.append(_entry(words))
            words = []
    if words:
        found.append(_entry(words))
    return found


def _entry(words: List[str]) -> LockedPackage:
    place = next((number for number, word in enumerate(words) if word.startswith("-")), len(words))
    hashes = words[place:]
    if place == 0 or not all(map(_HASH.fullmatch, hashes)):
        raise ValueError("not a package: `%s`" % " ".join(words))
    return LockedPackage(" ".join(words[:place]), tuple(each[len("--hash=") :] for each in hashes))


def pins(requirements: str) -> Dict[str, str]:
    """Version by name of each package that has nothing but both; of others, and of a text that does not parse, none."""
    try:
        known = [_PIN.fullmatch(each.text) for each in entries(requirements)]
    except ValueError:
        return {}
    return {_normal(found.group(1)): found.group(2) for found in known if found}


class CondaPin(NamedTuple):
    """What tells one package of a channel from its others."""

    name: str
    version: str
    build: str
    subdir: str


def conda_pins(packages: Sequence[Dict[str, Any]]) -> List[CondaPin]:
    """Of each package of a lock; without those that have anything else than words there."""
    rows = [CondaPin(*(str(package.get(key, "")) for key in CondaPin._fields)) for package in packages]
    return [row for row in rows if _CONDA_NAME.fullmatch(row.name) and all(map(_CONDA_WORD.fullmatch, row[1:]))]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


class _Locked(NamedTuple):
    version: str
    hashes: Tuple[str, ...]


def _contents(lock: Lock) -> Dict[str, _Locked]:
    """What a lock has by name, or by its whole text where that is an address."""
    found = {}
    for each in entries(lock["requirements"]):
        pin = _PIN.fullmatch(each.text)
        name, version = (_normal(pin.group(1)), pin.group(2)) if pin else (each.text, "")
        found[name] = _Locked(version, each.hashes)
    for package in lock["conda"]:
        version = "%s %s" % (package.get("version"), package.get("build"))
        found["%s of conda" % package.get("name")] = _Locked(version, (str(package["sha256"]),))
    return found


def differences(made: Lock, wanted: Lock) -> List[str]:
    """What keeps `made` from being the same environment as `wanted`: packages, versions, or that no file is the same.
    For people, one phrase each."""
    ours, theirs = _contents(made), _contents(wanted)
    found = []
    for name in sorted(set(ours) | set(theirs)):
        shown = "`%s`" % _shown(name)
        if name not in ours:
            found.append("%s is not among the packages that are asked for" % shown)
        elif name not in theirs:
            found.append("%s is new" % shown)
        elif ours[name].version != theirs[name].version:
            found.append("%s is %s instead of %s" % (shown, _shown(ours[name].version), _shown(theirs[name].version)))
        elif theirs[name].hashes and not set(ours[name].hashes) & set(theirs[name].hashes):
            found.append("%s has other files" % shown)
    return found


def _shown(text: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in text[:_MOST_SHOWN])


def summary_of(found: List[str]) -> str:
    """The first of the differences in a few words."""
    more = len(found) - _MOST_NAMED
    return "; ".join(found[:_MOST_NAMED]) + ("; and %d more" % more if more > 0 else "")


def narrowed(made: Lock, wanted: Lock) -> Lock:
    """`made` with those hashes only that `wanted` has too, so that the same files are installed."""
    theirs = {each.text: each.hashes for each in entries(wanted["requirements"])}
    lines = []
    for each in entries(made["requirements"]):
        known = theirs.get(each.text, ())
        kept = [one for one in each.hashes if one in known] if known else list(each.hashes)
        lines.append(" \\\n    ".join([each.text] + ["--hash=%s" % one for one in kept]))
    return dict(made, requirements="".join(line + "\n" for line in lines))
