"""The commands of uv that builds are made of, and what it tells while it works."""

import os
import re
import time
from typing import Callable, Dict, List

from holdfast.farside.environments import settings
from holdfast.farside.layout import Home

CACHE = "uv"
"""The cache for this machine; those for other platforms are called after them."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_DOWNLOADING = re.compile(r"\s*Downloading (\S+) \(([\d.]+) ?([KMG]i?B)\)")
_DOWNLOADED = re.compile(r"\s*Downloaded (\S+)")
_BUILDING = re.compile(r"\s*Building (\S+)")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def variables(home: Home, environment: Dict[str, str], cache: str) -> Dict[str, str]:
    """One parent folder for cache and environments, so that files are hard links; the host's own settings for indexes,
    proxies and certificates. `cache` is the name of the cache: what it keeps of Pythons and of packages that were
    compiled is for one platform."""
    own = {
        "UV_CACHE_DIR": os.path.join(home.cache(), cache),
        "UV_PYTHON_INSTALL_DIR": home.pythons(),
        "UV_PYTHON_INSTALL_BIN": "0",
        "UV_NO_PROJECT": "1",
        "NO_COLOR": "1",
    }
    if not os.path.isdir(os.path.join(_data_folder(environment), "uv", "credentials")):
        own["UV_CREDENTIALS_DIR"] = os.path.join(home.cache(), "uv-credentials")  # else it makes a folder of its own
    return dict(settings.translated(environment), **own)


def _data_folder(environment: Dict[str, str]) -> str:
    home = environment.get("HOME") or os.path.expanduser("~")
    return environment.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share")


def compile_command(uv: str, source: str, target: str, extra: List[str]) -> List[str]:
    """Resolve `source` to exact versions with hashes; what `target` holds already is preferred."""
    fixed = ["--generate-hashes", "--no-header", "--no-python-downloads"]
    return [uv, "pip", "compile", source, "--output-file", target] + fixed + extra


def venv_command(uv: str, path: str, python: str) -> List[str]:
    return [uv, "venv", "--quiet", "--relocatable", "--no-python-downloads", "--python", python, path]


def sync_command(uv: str, path: str, lock: str, is_conda: bool, extra: List[str]) -> List[str]:
    """Exactly the lock's packages. In a conda environment only what is missing: the others are conda's."""
    python = os.path.join(path, "bin", "python")
    if is_conda:
        return [uv, "pip", "install", "--no-deps", "--python", python, "-r", lock] + extra
    return [uv, "pip", "sync", "--allow-empty-requirements", "--python", python, lock] + extra


def for_sync(arguments: List[str]) -> List[str]:
    """Those of the spec's arguments that installing knows: which versions may be taken is decided by then."""
    found: List[str] = []
    for place in range(0, len(arguments) - 1, 2):
        if arguments[place] == "--allow-insecure-host":
            found += arguments[place : place + 2]
    return found


def is_cache(name: str) -> bool:
    """Of a folder among the caches of this host's installers."""
    return name == CACHE or name.startswith(CACHE + "-linux-")


def bring_command(uv: str, pin: str) -> List[str]:
    return [uv, "python", "install", pin]


class Progress:
    """Turns the installer's lines into phases for people, at most a few a second: how many packages, how many bytes,
    since when."""

    EVERY = 0.5

    def __init__(self, phase: Callable[[str], None], what: str, count: int = 0) -> None:
        self._phase, self._what, self._count = phase, what, count
        self._sizes: Dict[str, float] = {}
        self._done: Dict[str, float] = {}
        self._building = ""
        self._began = self._told = time.monotonic()
        phase(self.text())

    def hear(self, line: str) -> None:
        line = _COLOUR.sub("", line)
        begun, done, building = _DOWNLOADING.match(line), _DOWNLOADED.match(line), _BUILDING.match(line)
        if begun:
            self._sizes[begun.group(1)] = float(begun.group(2)) * _UNITS[begun.group(3)[0]]
        elif done:
            self._done[done.group(1)] = self._sizes.get(done.group(1), 0.0)
        elif building:
            self._building = building.group(1)
        else:
            return
        if time.monotonic() - self._told >= self.EVERY:
            self._told = time.monotonic()
            self._phase(self.text())

    def text(self) -> str:
        parts = [self._what]
        if self._count:
            parts.append("%d package%s" % (self._count, "" if self._count == 1 else "s"))
        if self._sizes:
            got, whole = sum(self._done.values()), sum(self._sizes.values())
            large = "downloaded %d of %d large files, %s of %s"
            parts.append(large % (len(self._done), len(self._sizes), _shown(got), _shown(whole)))
        elif self._building:
            parts.append("building %s from its source" % self._building)
        elapsed = time.monotonic() - self._began
        if elapsed >= 1:
            parts.append("%d s" % elapsed)
        return ", ".join(parts)


def _shown(size: float) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB")):
        if size >= unit:
            return "%.1f %s" % (size / unit, name)
    return "%d KiB" % (size / 1024)


def plain(output: str) -> str:
    return _COLOUR.sub("", output)
