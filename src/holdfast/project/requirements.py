"""`requirements.txt`, and the lines below `pip:` of a conda file, which are the same language.

Files that a line names are put in its place (`-r`), kept apart (`-c`) or noted (wheels). All must be inside the
project: it is the project that goes to the machine.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Sequence
from pathlib import Path

from holdfast.farside.system.real_paths import real_path
from holdfast.frozen import dataclass, replace
from holdfast.project.credentials import Concealer
from holdfast.project.documents import BYTE_ORDER_MARK, MAXIMUM_BYTES, read_text
from holdfast.project.environment_spec import FILES, EnvironmentSpec, LocalProject, Requirement, parse_python
from holdfast.project.problems import Mistake, Problem, Severity, errors_in
from holdfast.project.requirement_lines import (
    Option,
    RequiredPackage,
    in_one_spelling,
    logical_lines,
    parse_options,
    parse_package,
)
from holdfast.regular_files import read_regular

MAXIMUM_DEPTH = 20
"""Files that name files that name files."""
_OF_BUILDS = ("setup.py", "setup.cfg", "pyproject.toml")
"""With lists of requirements, what most builds read to say what a project depends on."""


def read_requirements(root: Path, relative: str) -> tuple[EnvironmentSpec | None, list[Problem]]:
    """What the file and the files that it names ask for; None when one of them has an error."""
    lines = RequirementLines(root)
    lines.take_file(relative)
    python, problems = read_python_version(root, posixpath.dirname(relative))
    lines.check_hashes()
    ordered = lines.problems + problems
    if errors_in(ordered):
        return None, ordered
    spec = lines.spec(relative, parse_python(python.text) if python else None, python)
    locked = "".join(f"{each.text}\n" for each in lines.pip) if lines.are_locked else ""
    return replace(spec, locked=locked), ordered


def read_python_version(root: Path, folder: str) -> tuple[Requirement | None, list[Problem]]:
    """The pin in `.python-version` in `folder` of the project, or in the nearest one above it."""
    while True:
        file = posixpath.join(folder, ".python-version")
        if os.path.lexists(root / file):
            return _pinned(root, file)
        if not folder:
            return None, []
        folder = posixpath.dirname(folder)


@dataclass(frozen=True)
class RequirementSource:
    """Where a line stands; `key` is `pip` in a conda file; `chain` are the files that led there, `file` the last."""

    file: str
    line: int = 0
    key: str = ""
    chain: tuple[str, ...] = ()
    constrains: bool = False


class RequirementLines:
    """Lines while they are being read. Lives inside a reader; never crosses a seam."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.problems: list[Problem] = []
        self.pip: list[Requirement] = []
        self.constraints: list[Requirement] = []
        self.files: dict[str, None] = {}
        self.projects: list[LocalProject] = []
        self.arguments: list[str] = []
        self.concealer = Concealer()
        self.are_locked = False
        self._packages: list[tuple[RequiredPackage, RequirementSource]] = []
        self._hashes_required: RequirementSource | None = None
        self._index: tuple[str, RequirementSource] | None = None
        self._read: set[tuple[str, bool]] = set()

    def take_file(self, relative: str, constrains: bool = False, chain: tuple[str, ...] = ()) -> None:
        if (relative, constrains) in self._read:
            return
        self._read.add((relative, constrains))
        text, problems = _read(self.root, relative)
        self.problems += problems
        for number, line in logical_lines(text or ""):
            self.take(line, RequirementSource(relative, number, "", (*chain, relative), constrains))

    def take(self, written: str, place: RequirementSource) -> None:
        """One line. Nothing below this sees a password: it is out of the text from here on."""
        line = in_one_spelling(self.concealer.conceal(written))
        if not line:
            return
        if line.startswith("-"):
            options = parse_options(line)
            if isinstance(options, Mistake):
                self.problem(place, options.message, options.remedy)
                return
            for option in options:
                self._take_option(option, place)
            return
        package = parse_package(line)
        if isinstance(package, Mistake):
            self.problem(place, package.message, package.remedy)
        elif wrong := next((each for each in package.hashes if not re.fullmatch(r"\w+:[0-9a-fA-F]+", each)), None):
            self.problem(place, f"`{wrong}` is not a hash", "Write it like `--hash=sha256:…`.")
        else:
            self._take_package(package, line, place)

    def check_hashes(self) -> None:
        """To be called after the last line."""
        bare = [
            (package, place)
            for package, place in self._packages
            if not package.hashes or not (package.location or re.fullmatch(r"===?[^*,]+", package.specifier))
        ]
        self.are_locked = bool(self._packages) and not bare
        if self._hashes_required:
            for package, place in bare:
                message = f"`{package.name or package.location}` has no exact version with hashes"
                self.problem(place, message, "Write `--hash=sha256:…` behind it, or remove `--require-hashes`.")

    def spec(self, file: str, python: str | None, python_from: Requirement | None) -> EnvironmentSpec:
        """What the lines ask for, with the Python that is written elsewhere."""
        return EnvironmentSpec(
            file=file,
            python=python,
            pip=tuple(self.pip),
            constraints=tuple(self.constraints),
            files=tuple(self.files),
            arguments=tuple(self.arguments),
            credentials=self.concealer.taken(),
            python_from=python_from,
            projects=tuple(self.projects),
        )

    def problem(self, place: RequirementSource, message: str, remedy: str, severity: Severity = "error") -> None:
        self.problems.append(Problem(place.file, place.line, place.key, message, remedy, severity))

    def _take_option(self, option: Option, place: RequirementSource) -> None:
        match option.name:
            case "--requirement" | "--constraint":
                self._include(option, place)
            case "--editable":
                self._take_editable(option, place)
            case "--index-url" | "--extra-index-url":
                self._take_index(option, place)
            case "--find-links":
                self._take_links(option, place)
            case "--pre":
                if "--prerelease" not in self.arguments:
                    self.arguments += ["--prerelease", "allow"]
            case "--trusted-host":
                self.arguments += ["--allow-insecure-host", option.value]
            case "--require-hashes":
                self._hashes_required = place
            case "--prefer-binary" | "--use-feature":
                remedy = "Remove the line; to never build a package: `--only-binary :all:`."
                self.problem(place, f"`{option.name}` is not used: the installer has no such choice", remedy, "warning")
            case _:
                self._add(option.text, place)

    def _take_index(self, option: Option, place: RequirementSource) -> None:
        if not re.match(r"https?://|file:///|\$\{", option.value, re.IGNORECASE):
            message = f"`{option.value}` is not the address of an index"
            self.problem(place, message, f"Write `{option.name} https://…`; for a folder with wheels `--find-links`.")
            return
        if option.name == "--index-url":
            if self._index and self._index[0] != option.value:
                first = self._index[1]
                message = f"`--index-url` is named twice, first in {first.file}:{first.line}"
                self.problem(place, message, "Keep one, and make the other `--extra-index-url`.")
                return
            self._index = (option.value, place)
        self._add(option.text, place)

    def _take_links(self, option: Option, place: RequirementSource) -> None:
        # An address, or a folder of the machine that builds.
        if re.match(r"https?://|file:///|/|\$\{", option.value, re.IGNORECASE):
            self._add(option.text, place)
            return
        found = self._locate(option.value, place)
        if found is not None:
            self._note(found)
            self._add(f"--find-links {FILES}/{found}".removesuffix("/."), place)

    def _include(self, option: Option, place: RequirementSource) -> None:
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", option.value):
            self.problem(place, f"`{option.text}` names a file elsewhere", "Save it in the project, and name that.")
            return
        found = self._locate(option.value, place)
        if found is None:
            return
        if found in place.chain or len(place.chain) > MAXIMUM_DEPTH:
            shown = " → ".join((*place.chain, found)[-4:])
            self.problem(place, f"the files name each other in a circle: {shown}", "Remove this line.")
            return
        chain = place.chain or (place.file,)
        self.take_file(found, place.constrains or option.name == "--constraint", chain)

    def _take_editable(self, option: Option, place: RequirementSource) -> None:
        """`-e .` is the folder itself. What comes from elsewhere is installed as any package is: environments are
        shared."""
        address, _, egg = option.value.partition("#egg=")
        if "://" not in option.value or option.value.startswith("file:"):
            folder, has_extras, extras = option.value.removesuffix("]").partition("[")
            self._take_folder(RequiredPackage("", extras.replace(" ", "") if has_extras else "", "", folder), place)
        elif egg:
            name, _, subfolder = egg.partition("&subdirectory=")
            self.take(f"{name} @ {address}" + (f"#subdirectory={subfolder}" if subfolder else ""), place)
        else:
            self.take(option.value, place)

    def _take_folder(self, package: RequiredPackage, place: RequirementSource) -> None:
        found = self._locate(package.location, place, package.name)
        if found is not None:
            parts = tuple(each for each in package.extras.split(",") if each)
            self.projects.append(LocalProject("" if found == "." else found, parts, place.line, place.file))

    def take_built(self, folder: str, parts: Sequence[str], place: RequirementSource) -> None:
        """A project whose build alone says what it depends on: that runs where the environment is made."""
        for name in sorted(os.listdir(self.root / folder or ".")):
            if name in _OF_BUILDS or name.endswith((".txt", ".in")):
                self._note(posixpath.join(folder, name))
        extras = f"[{','.join(parts)}]" if parts else ""
        self._add(f"{FILES}/{folder}".rstrip("/") + extras, place)

    def _take_package(self, package: RequiredPackage, line: str, place: RequirementSource) -> None:
        if not package.location or package.location.startswith("${"):
            text: str | None = line
        elif package.is_remote:
            text = line if self._is_reachable(package, place) else None
        else:
            text = self._local(package, place)
        if text is None:
            return
        if place.constrains:
            self.constraints.append(Requirement(text, place.line, place.file))
            return
        self._packages.append((package, place))
        self._add(text, place)

    def _is_reachable(self, package: RequiredPackage, place: RequirementSource) -> bool:
        scheme = package.location.partition("://")[0].lower()
        if scheme in ("http", "https", "git+https", "git+http", "git+ssh", "git+git", "git+file"):
            return True
        remedy = "Write an address that begins with `https://`, or `git+https://` for a repository of Git's."
        self.problem(place, f"the installer knows no addresses that begin with `{scheme}:`", remedy)
        return False

    def _local(self, package: RequiredPackage, place: RequirementSource) -> str | None:
        if not package.is_archive:
            is_elsewhere = re.match(r"[A-Za-z][A-Za-z0-9+.-]+:|\w+\+", package.location)
            take = self._refuse_location if is_elsewhere or place.constrains else self._take_folder
            take(package, place)
            return None
        found = self._locate(package.location, place, package.name)
        if found is None:
            return None
        self._note(found)
        extras = f"[{package.extras}]" if package.extras else ""
        text = f"{FILES}/{found}{extras}"
        if package.name and not found.endswith(".whl"):
            text = f"{package.name}{extras} @ {FILES}/{found}"
        text += f" ; {package.marker}" if package.marker else ""
        return text + "".join(f" --hash={each}" for each in package.hashes)

    def _refuse_location(self, package: RequiredPackage, place: RequirementSource) -> None:
        location = package.location
        scheme = re.match(r"git\+[^/\s]+@([^:/\s@]+):(.+)", location)
        if scheme:
            remedy = f"Write `git+ssh://git@{scheme[1]}/{scheme[2]}`."
            self.problem(place, f"`{location}` is not an address", remedy)
        elif location.startswith("file:"):
            name = package.name or "NAME"
            self.problem(place, f"`{location}` is on another machine's disk", f"Write `{name}` and its version.")
        else:
            remedy = "Build a wheel of it (uv build --wheel FOLDER) and name that, or import the folder as it is."
            self.problem(place, f"`{location}` is a folder, not a wheel", remedy)

    def _locate(self, written: str, place: RequirementSource, name: str = "") -> str | None:
        """The path in the project of a file that is there: beside the file that names it, else from the top."""
        path = re.sub(r"^file:(?://(?:localhost)?(?=/))?", "", written).replace("\\", "/")
        path = path.removeprefix("./") or "."
        if path.startswith("/"):
            path = os.path.relpath(path, self.root).replace(os.sep, "/")
            beside = top = posixpath.normpath(path)
        else:
            beside = posixpath.normpath(posixpath.join(posixpath.dirname(place.file), path))
            top = posixpath.normpath(path)
        candidates = [each for each in dict.fromkeys((beside, top)) if not re.match(r"\.\.(?:/|$)|~", each)]
        for candidate in candidates:
            if os.path.exists(self.root / candidate):
                if self._is_inside(candidate):
                    return candidate
                candidates = []
                break
        if candidates:
            looked = " nor ".join(f"`{each}`" for each in candidates)
            self.problem(place, f"there is no {looked} in the project", "Correct the path, or copy the file there.")
        else:
            other = f", or write `{name}` and its version" if name else ""
            self.problem(place, f"`{written}` is outside the project", f"Copy it into the project{other}.")
        return None

    def _is_inside(self, relative: str) -> bool:
        """Links that lead out of the project would lead nowhere on the machine."""
        top = real_path(self.root).rstrip(os.sep)
        return (real_path(self.root / relative) + os.sep).startswith(top + os.sep)

    def _note(self, relative: str) -> None:
        self.files[relative] = None

    def _add(self, text: str, place: RequirementSource) -> None:
        self.pip.append(Requirement(text, place.line, place.file))


def _read(root: Path, relative: str) -> tuple[str | None, list[Problem]]:
    text, problems = read_text(root, relative, "Write one, with a package on each line.")
    if text is not None and "\0" in text:
        return None, [Problem(relative, 1, "", "is not text", "Save it again with the encoding UTF-8.")]
    is_binary = text is None and problems[0].message == "is not UTF-8 text"
    if is_binary and read_regular(root / relative, MAXIMUM_BYTES)[:2] in (b"\xff\xfe", b"\xfe\xff"):
        remedy = "Save it again with the encoding UTF-8; in PowerShell: pip freeze | Out-File -Encoding utf8 FILE"
        problems = [Problem(relative, 1, "", "is UTF-16 text", remedy)]
    return (text.removeprefix(BYTE_ORDER_MARK) if text is not None else None), problems


def _pinned(root: Path, file: str) -> tuple[Requirement | None, list[Problem]]:
    text, problems = read_text(root, file)
    for number, line in logical_lines((text or "").removeprefix(BYTE_ORDER_MARK)):
        # Of `cpython-3.11.4-linux-x86_64-gnu` and `python3.11`, which uv and others write, only the version counts.
        found = re.fullmatch(r"(?:c?python[@-]?)?(\d+(?:\.\d+)*)(?:-[\w-]+)?", line)
        version = found[1] if found else line
        if parse_python(version) is None:
            message = f"`{line}` is not a version of Python, and is not used"
            return None, [Problem(file, number, "", message, "Write it like `3.11`.", "warning")]
        return Requirement(version, number, file), []
    return None, problems
