"""The files of a lock: which wheel of each package, where it is, and what it must hash to. Read from the `pylock.toml`
that uv writes, in which every wheel fits the machine that was asked for."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urljoin, urlsplit

from holdfast.errors import PreparationError
from holdfast.frozen import dataclass
from holdfast.project.pyproject import parse_toml

_HASH = re.compile(r"--hash[= ]sha256:([0-9a-f]{64})")
_WHEEL = re.compile(r"[^-]+-[^-]+(?:-(?P<build>\d[^-]*))?-(?P<python>[^-]+)-(?P<abi>[^-]+)-(?P<platform>[^-]+)\.whl")


@dataclass(frozen=True)
class WheelFile:
    """`name` is the file's; `url` may lead to a file of this machine. `size` None: the index does not say it."""

    package: str
    name: str
    url: str
    sha256: str
    size: int | None = None


def read_wheel_files(pylock: str, requirements: str, folder: Path, project: Path) -> tuple[WheelFile, ...]:
    """One for each package of the lock `requirements`, without those that lie in the project: they travel with it.

    `pylock` was written into `folder`. Raises PreparationError for a package that is no wheel, or not the
    lock's.
    """
    hashes = set(_HASH.findall(requirements))
    found = (_file_of(package, folder, hashes) for package in parse_toml(pylock).get("packages", []))
    local = _of_project(requirements, project)
    return tuple(each for each in found if each.url not in local)


def _of_project(requirements: str, project: Path) -> set[str]:
    """The wheels that the lock names by their path in the project."""
    inside = project.resolve().as_uri() + "/"
    named = re.findall(r"^(?:\S+ @ )?\$\{HOLDFAST_FILES\}/(\S+)", requirements, re.MULTILINE)
    return {urljoin(inside, quote(each.partition("[")[0])) for each in named}


def _file_of(package: Mapping[str, Any], folder: Path, hashes: Collection[str]) -> WheelFile:
    name = f"{package['name']} {package.get('version', '')}".strip()
    candidates = [each for each in _candidates(package, folder) if each.name.endswith(".whl")]
    if not candidates:
        raise PreparationError(
            f"The package `{name}` is no wheel, and only wheels can be sent.",
            f"Build one (uv build --wheel, or pip wheel {package['name']}), put it into the project and name its "
            "path in the environment's file.",
        )
    known = [each for each in candidates if each.sha256 in hashes]
    if not known:
        raise PreparationError(
            f"The index has other files of `{name}` than the lock names.", "To choose packages anew: --upgrade"
        )
    return max(known, key=lambda each: _rank(each.name))


def _candidates(package: Mapping[str, Any], folder: Path) -> Iterator[WheelFile]:
    rows = list(package.get("wheels", []))
    if "archive" in package:
        rows.append(package["archive"])
    for row in rows:
        url = row["url"] if "url" in row else (folder / row["path"]).resolve().as_uri()
        name = row.get("name") or unquote(urlsplit(url).path.rpartition("/")[2])
        yield WheelFile(package["name"], name, url, str(row.get("hashes", {}).get("sha256", "")), row.get("size"))


def _rank(name: str) -> tuple[Any, ...]:
    """As installers choose: compiled for this Python before compiled for several, both before pure Python; the newest
    system, the highest build number."""
    parts = _WHEEL.fullmatch(name)
    if parts is None:
        return (False, False, False, 0, (0, 0), 0)
    abi, platform = parts["abi"], parts["platform"]
    versions = [int(each) for each in re.findall(r"(?:py|cp)\d(\d*)", parts["python"]) if each]
    systems = [(int(major), int(minor)) for major, minor in re.findall(r"linux_(\d+)_(\d+)_", platform)]
    build = re.match(r"\d+", parts["build"] or "")
    return (
        platform != "any",
        abi not in ("none", "abi3"),
        abi == "abi3",
        max(versions, default=0),
        max(systems, default=(0, 0)),
        int(build[0]) if build else 0,
    )
