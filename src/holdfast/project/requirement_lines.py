"""One line of a requirements file as text: a package and its parts, or options and their values. Nothing is looked up:
whether a file that a line names is there is asked by who reads the line (`requirements.py`)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.frozen import dataclass
from holdfast.project.problems import Mistake

VALUED = {
    "-r": "--requirement",
    "-c": "--constraint",
    "-e": "--editable",
    "-i": "--index-url",
    "-f": "--find-links",
    "--requirement": "--requirement",
    "--constraint": "--constraint",
    "--editable": "--editable",
    "--index-url": "--index-url",
    "--pypi-url": "--index-url",
    "--extra-index-url": "--extra-index-url",
    "--find-links": "--find-links",
    "--trusted-host": "--trusted-host",
    "--no-binary": "--no-binary",
    "--only-binary": "--only-binary",
    "--use-feature": "--use-feature",
}
"""Options with a value, as they may be written, and the long name."""

FLAGS = ("--no-index", "--pre", "--prefer-binary", "--require-hashes")

ARCHIVES = (".whl", ".tar.gz", ".zip", ".tar.bz2", ".tgz", ".tar.xz")
"""How the files end that an installer takes."""


@dataclass(frozen=True)
class RequiredPackage:
    """`name` is normalised, empty where only an address says what it is; `location` is an address or a path."""

    name: str
    extras: str = ""
    specifier: str = ""
    location: str = ""
    marker: str = ""
    hashes: tuple[str, ...] = ()

    @property
    def is_remote(self) -> bool:
        return bool(re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", self.location)) and not self.location.startswith("file:")

    @property
    def is_archive(self) -> bool:
        return self.file_name.endswith(ARCHIVES)

    @property
    def file_name(self) -> str:
        """The last part of the address or path."""
        return re.split(r"[?#]", self.location)[0].replace("\\", "/").rstrip("/").rpartition("/")[2]


@dataclass(frozen=True)
class Option:
    """`name` is the long one; `value` is empty for a flag."""

    name: str
    value: str = ""

    @property
    def text(self) -> str:
        return f"{self.name} {self.value}" if self.value else self.name


@dataclass(frozen=True)
class WheelName:
    """The parts of a wheel's file name; tags may be several, as `cp310.cp311`."""

    name: str
    version: str
    pythons: tuple[str, ...]
    abis: tuple[str, ...]
    platforms: tuple[str, ...]


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their number, continuations joined, without comments and empty ones."""
    number, collected = 0, ""
    for at, physical in enumerate(text.splitlines(), 1):
        is_comment = physical.lstrip().startswith("#")
        if not collected:
            number = at
        if physical.endswith("\\") and not is_comment:
            collected += physical[:-1] + " "
            continue
        # As pip has it: a comment line inside a continued line ends it.
        line = _strip_comment(collected + ("" if is_comment and collected else physical))
        collected = ""
        if line:
            yield number, line
    if _strip_comment(collected):
        yield number, _strip_comment(collected)


def _strip_comment(line: str) -> str:
    """A comment ends with the last line; what a text in a TOML file has before that stays."""
    found = re.compile(r"(?:^|\s)#").search(line, max(line.rfind("\n", 0, max(len(line) - 1, 0)), 0))
    return (line[: found.start()] if found else line).strip()


def in_one_spelling(line: str) -> str:
    """Without a comment, with single spaces and hashes as `--hash=`: so lines are kept, and compared."""
    return re.sub(r"\s+", " ", _strip_comment(line)).replace(" --hash ", " --hash=")


def parse_options(line: str) -> tuple[Option, ...] | Mistake:
    """The options of a line that begins with `-`."""
    words = _words(line)
    if words is None:
        return Mistake("a quotation mark is not closed", "Close it, or remove it.")
    found: list[Option] = []
    words.reverse()  # the next one is the last, which is quick to take
    while words:
        taken = _next_option(words)
        if isinstance(taken, Mistake):
            return taken
        found.append(taken)
    return tuple(found)


def _words(line: str) -> list[str] | None:
    """As a shell divides them, but a backslash is one: paths of Windows have it. None where a quotation mark is not
    closed. The standard library's shlex takes the square of a word's length."""
    words: list[str] = []
    word: list[str] = []
    for piece in re.findall(r"[ \t\r\n]+|'[^']*'|\"[^\"]*\"|[^ \t\r\n'\"]+|['\"]", f"{line} "):
        if piece in ("'", '"'):
            return None
        if piece[0] in "'\"":
            word.append(piece[1:-1])
        elif piece[0] not in " \t\r\n":
            word.append(piece)
        elif word:
            words.append("".join(word))
            word = []
    return words


def parse_package(line: str) -> RequiredPackage | Mistake:
    """A line that does not begin with `-`."""
    body, *hashes = re.split(r"\s--hash(?:=|\s+)", line)
    stray = re.search(r"\s(--?[A-Za-z][\w-]*)", " ".join((body, *hashes)))
    if stray and not re.search(r"[/\\]", body[: stray.start()]):
        return Mistake(f"`{stray[1]}` cannot stand behind a package", "Write the option on a line of its own.")
    body, marker = _split_marker(body.strip())
    package = _parse_body(body)
    if isinstance(package, Mistake):
        return package
    return RequiredPackage(
        package.name,
        package.extras,
        package.specifier,
        package.location,
        marker,
        tuple(each.strip() for each in hashes),
    )


def parse_wheel_name(file_name: str) -> WheelName | None:
    """None for what is no wheel, or not named as one."""
    parts = file_name.removesuffix(".whl").split("-")
    if not file_name.endswith(".whl") or len(parts) not in (5, 6):
        return None
    pythons, abis, platforms = (tuple(part.split(".")) for part in parts[-3:])
    return WheelName(normalised(parts[0]), parts[1], pythons, abis, platforms)


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _next_option(words: list[str]) -> Option | Mistake:
    """`words` are in reverse."""
    word = words.pop()
    name, equals, value = word.partition("=")
    if word.startswith("--") and equals:
        if name in VALUED:
            return Option(VALUED[name], value) if value else _without_value(name)
        return _unknown(name)
    if not word.startswith("--") and len(word) > 2 and word[:2] in VALUED:
        return Option(VALUED[word[:2]], word[2:].lstrip("="))
    if word in FLAGS:
        return Option(word)
    if word in VALUED:
        # A path may hold spaces without quotes: all words up to the next option are its.
        parts: list[str] = []
        while words and not words[-1].startswith("-"):
            parts.append(words.pop())
        return Option(VALUED[word], " ".join(parts)) if parts else _without_value(word)
    return _unknown(word)


def _without_value(name: str) -> Mistake:
    return Mistake(f"`{name}` needs a value", f"Write it like `{name} VALUE`, or remove it.")


def _unknown(word: str) -> Mistake:
    from holdfast.errors import nearest

    if not word.startswith("-"):
        return Mistake(f"`{word}` cannot stand behind an option", "Write the package on a line of its own.")
    if word == "--no-deps":
        return Mistake("`--no-deps` is for pip's command line, not for a file", _ABOUT_NO_DEPS)
    known = [each for each in (*VALUED, *FLAGS) if each.startswith("--")]
    guess = nearest(word, known)
    return Mistake(
        f"`{word}` is not an option that can stand here",
        f"Write `{guess}`." if guess else "Remove it. To set it for the installer: a variable of the machine, UV_….",
    )


_ABOUT_NO_DEPS = "Remove it; to have exact packages and no others, list every one with `==` and `--hash`."


def _split_marker(body: str) -> tuple[str, str]:
    """In an address `;` is a marker only after a space."""
    found = re.search(r"\s;" if "://" in body else r";", body)
    return (body[: found.start()].rstrip(), body[found.end() :].strip()) if found else (body, "")


def _parse_body(body: str) -> RequiredPackage | Mistake:
    named = re.match(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:(\[[^\]]*\])\s*)?@\s*(\S.*)$", body)
    if named:
        return RequiredPackage(normalised(named[1]), _extras(named[2]), "", named[3])
    if _is_location(body):
        split = re.fullmatch(r"(.*?)(\[[\w\s,.-]*\])?", body, re.DOTALL)
        location, extras = (split[1], _extras(split[2])) if split else (body, "")
        package = RequiredPackage("", extras, "", location)
        wheel = parse_wheel_name(package.file_name)
        return RequiredPackage(wheel.name if wheel else _egg(location), extras, "", location)
    found = re.match(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:(\[[^\]]*\])\s*)?", body)
    if not found or "\n" in body[found.end() :]:
        return Mistake(f"`{body}` is not a package", "Write it like `numpy` or `numpy==2.1.0`.")
    specifier = body[found.end() :].strip()
    wrong = _wrong_specifier(found[1], found[2] or "", specifier)
    return wrong or RequiredPackage(normalised(found[1]), _extras(found[2]), specifier.strip("()").strip())


def _extras(written: str | None) -> str:
    return re.sub(r"\s+", "", written or "").strip("[]")


def _egg(location: str) -> str:
    found = re.search(r"[#&]egg=([A-Za-z0-9._-]+)", location)
    return normalised(found[1]) if found else ""


def _is_location(body: str) -> bool:
    if re.match(r"\.{0,2}[/\\]|~|\.\.?$|[A-Za-z]:[/\\]|[A-Za-z][A-Za-z0-9+.-]*:(?!:)|\$\{", body):
        return True
    head = re.split(r"[\[<>=!~;\s]", body, maxsplit=1)[0]
    return "/" in head or "\\" in head or _without_extras(body).endswith(ARCHIVES)


def _without_extras(body: str) -> str:
    """Without the last pair of brackets, if it ends the text."""
    start = body.find("[", body.rfind("]", 0, -1) + 1) if body.endswith("]") else -1
    return body if start < 0 else body[:start]


def _wrong_specifier(name: str, extras: str, specifier: str) -> Mistake | None:
    if not specifier:
        return None
    inner = specifier[1:-1] if specifier.startswith("(") and specifier.endswith(")") else specifier
    if re.fullmatch(rf"\s*{_CLAUSE}(?:\s*,\s*{_CLAUSE})*\s*(?:,\s*)?", inner):
        return None
    one = re.fullmatch(r"={0,1}\s*(\d[\w.+!*-]*)", specifier.partition("=py")[0])
    written = f"{name}{extras}"
    if one and specifier.startswith("="):
        return Mistake(f"`{written}{specifier}` is conda's spelling", f"Write `{written}=={one[1]}`.")
    if one:
        return Mistake(f"`{written} {specifier}` is not a package", f"Write `{written}=={one[1]}`.")
    if re.match(r"=\d[\w.]*=\w+", specifier):
        version = specifier.split("=")[1]
        return Mistake(f"`{written}{specifier}` is conda's spelling", f"Write `{written}=={version}`.")
    return Mistake(f"`{written}{specifier}` is not a package", f"Write it like `{written}` or `{written}==1.0`.")


# The operators of versions; only `==` and `!=` take a star.
_CLAUSE = r"(?:(?:[=!]=)\s*[\w.+!-]+(?:\.\*)?|===\s*[^\s,;)]+|(?:~=|[<>]=?)\s*[\w.+!-]+)"
