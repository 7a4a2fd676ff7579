"""What a file of the project asks for: Python, conda packages, Python packages, and where these come from.

Texts are ready for the installer: files of the project are written `${HOLDFAST_FILES}/path/in/the/project`, and what is
secret in an address is a variable (`credentials.py`). `configuration.py` reads a file to such a value.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from holdfast.errors import ProjectError
from holdfast.frozen import dataclass
from holdfast.project.credentials import VARIABLE, Credentials
from holdfast.project.requirement_lines import ARCHIVES
from holdfast.regular_files import open_regular

FILES = "${HOLDFAST_FILES}"
"""The project's folder wherever the environment is built; the installer puts it in."""

_FORMAT = 1


@dataclass(frozen=True)
class Requirement:
    """One line for the installer and where it was asked for; `file` is relative to the project, with `/`.

    A line that begins with `-` is an option (`--extra-index-url URL`), all others are packages.
    """

    text: str
    line: int
    file: str = ""


@dataclass(frozen=True)
class LocalProject:
    """A folder of the project that a line asks for (`-e .`, `./lib[extra]`): its dependencies are wanted, and it is
    imported from where it lies. `folder` is relative to the project, empty for its top."""

    folder: str
    parts: tuple[str, ...] = ()
    line: int = 0
    file: str = ""


@dataclass(frozen=True)
class EnvironmentSpec:
    """`python` is a version (`3.11`) or a specifier (`>=3.10`), None when nothing says it; `python_from` is where it
    stands, as written there.

    `conda` has neither Python nor pip: the one is `python`, the other is how `pip` gets installed. `files` are wheels,
    and folders of wheels, of the project. `arguments` are for the installer's command line: what it takes from no file.
    `locked` is a requirements file in which every package has a version and hashes: then nothing is left to
    resolve. `lock_file` names a `uv.lock` whose text is not in `locked` yet: `environments.uv_export` asks uv for it,
    with the options `lock_parts`. `projects` are folders whose packages are to be importable.
    """

    file: str = ""
    python: str | None = None
    channels: tuple[str, ...] = ()
    conda: tuple[Requirement, ...] = ()
    pip: tuple[Requirement, ...] = ()
    constraints: tuple[Requirement, ...] = ()
    files: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    locked: str = ""
    lock_file: str = ""
    lock_parts: tuple[str, ...] = ()
    projects: tuple[LocalProject, ...] = ()
    credentials: Credentials = Credentials()
    python_from: Requirement | None = None


def spec_digest(spec: EnvironmentSpec, root: Path, content: Callable[[Path], str] | None = None) -> str:
    """The sha256 of all that decides which packages are wanted: the contents of local wheels too, but neither comments
    nor the name of the file nor the order of packages. The order of indexes and channels counts.

    `content` gives the sha256 of a file, where that is known already.
    """
    import hashlib
    import json

    if spec.lock_file:
        raise ValueError("the lock has to be exported first")
    options = [each.text for each in spec.pip if is_option(each)]
    content = content or _sha256
    parts = [
        _FORMAT,
        spec.python,
        list(spec.channels),
        _plain(spec.conda),
        options,
        _plain(each for each in spec.pip if not is_option(each)),
        _plain(spec.constraints),
        list(spec.arguments),
        [[file, content(root / file)] for each in sorted(set(spec.files)) for file in _inside(root, each)],
        spec.locked,
    ]
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode("ascii")).hexdigest()


def variables_in(spec: EnvironmentSpec) -> tuple[str, ...]:
    """Names of the variables that the user wrote as `${NAME}` into addresses, sorted: the installer puts their values
    in, so they have to be there where it runs."""
    texts = [each.text for group in (spec.conda, spec.pip, spec.constraints) for each in group]
    found = {name for text in (*texts, *spec.channels, spec.locked) for name in re.findall(VARIABLE, text)}
    return tuple(sorted(each for each in found if not each.startswith("HOLDFAST_")))


def parse_python(written: str) -> str | None:
    """A version (`=3.11`, `3.11.*` → `3.11`) or a specifier (`>=3.8, <3.12`); None for anything else."""
    exact = re.fullmatch(r"={0,2}\s*(\d+(?:\.\d+)*)(?:\.?\*)?(?:[=\s]\S+)?", written, re.ASCII)
    if exact:
        return exact[1]
    one = r"(?:[<>]=?|[!~=]=)\s*\d+(?:\.\d+)*(?:\.\*)?"
    is_specifier = re.fullmatch(rf"{one}(?:\s*,\s*{one})*", written, re.ASCII)
    return re.sub(r"\s+", "", written) if is_specifier else None


def is_option(requirement: Requirement) -> bool:
    return requirement.text.startswith("-")


def _plain(requirements: Iterable[Requirement]) -> list[str]:
    return sorted({re.sub(r"\s+", " ", each.text) for each in requirements})


def _inside(root: Path, relative: str) -> list[str]:
    """The file itself; of a folder the packages in it, which is where the installer looks."""
    if not os.path.isdir(root / relative):
        return [relative]
    names = sorted(each.name for each in (root / relative).iterdir() if each.name.endswith(ARCHIVES))
    return [f"{relative}/{name}" for name in names]


def _sha256(path: Path) -> str:
    import hashlib

    digest = hashlib.sha256()
    try:
        with open(open_regular(path), "rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    except OSError as error:
        message = f"`{path}`, which the environment is made from, cannot be read: {error.strerror}."
        raise ProjectError(message, "Put the package there, or remove the line that names it.") from error
    return digest.hexdigest()
