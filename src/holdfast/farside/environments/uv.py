"""uv, which builds environments: its commands, what it tells while it works, whether its cache is in use, and the
programs that were sent."""

import contextlib
import fcntl
import os
import re
import shutil
import time
from typing import Any, Callable, Dict, Iterator, List

from holdfast.farside.environments import settings
from holdfast.farside.environments.installer_errors import plain
from holdfast.farside.environments.platforms import build_name
from holdfast.farside.system import kernel
from holdfast.farside.system.files import names_in
from holdfast.farside.system.layout import BUILD_BYTE, Home, checked, object_path
from holdfast.farside.system.lost_locks import LostLocks
from holdfast.farside.system.ownership import OTHERS_WRITE, make_private, may_be_believed
from holdfast.farside.system.refusal import Refused

CACHE = "uv"
"""The cache for this machine; those for other platforms are called after them."""
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


def bring_command(uv: str, pin: str) -> List[str]:
    return [uv, "python", "install", pin]


class UvProgress:
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
        line = plain(line)
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


def require_tools(home: Home, names: List[str]) -> None:
    """Refuse, so that they get sent, where one is not here."""
    missing = [name for name in names if not _is_here(path_of(home, name))]
    if missing:
        raise Refused("tools", "These programs are not here yet: %s." % ", ".join(missing))


def _is_here(path: str) -> bool:
    """One that another account put there, or may change, is sent anew."""
    try:
        status = os.stat(path)
    except OSError:
        return False
    return may_be_believed(status) and not status.st_mode & OTHERS_WRITE


def path_of(home: Home, name: str) -> str:
    """`uv-0.13.7` → its program `uv`, for this machine: several may share the folder."""
    program = checked(name).rsplit("-", 1)[0]
    return os.path.join(home.tools(), "%s-%s" % (name, build_name()), program)


def place(home: Home, message: Dict[str, Any]) -> Dict[str, Any]:
    """Make a program of an object that has arrived, whole or not at all. A repeat changes nothing."""
    path = path_of(home, message["name"])
    source = object_path(home.objects(), message["digest"])
    if not os.path.exists(source):
        raise Refused("incomplete", "The program `%s` has not arrived." % message["name"])
    make_private(os.path.dirname(path))
    new = "%s.new-%s" % (path, os.urandom(8).hex())
    try:
        os.link(source, new)
    except OSError:  # no links here, or what is built is kept on another disk than what was sent
        shutil.copyfile(source, new)
    os.chmod(new, 0o500)
    os.rename(new, path)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(new)  # still there if it was a second name of what is there already
    return {"path": path}


def platform(home: Home, message: Dict[str, Any]) -> Dict[str, Any]:
    """What they have to be for."""
    architecture, _, libc = build_name().rpartition("-")
    return {"architecture": architecture, "libc": libc}


@contextlib.contextmanager
def alone(home: Home) -> Iterator[bool]:
    """Whether no process installs from the cache; as long as this lasts none does: uv waits for the lock that it takes
    itself."""
    if _is_building(home):
        yield False
        return
    held: List[int] = []
    try:
        yield all(_locked(os.path.join(home.cache(), name, ".lock"), held) for name in caches(home))
    finally:
        for descriptor in held:
            os.close(descriptor)


def caches(home: Home) -> List[str]:
    """Names of uv's: one for each platform."""
    return [name for name in names_in(home.cache()) if name == CACHE or name.startswith(CACHE + "-linux-")]


def _locked(path: str, held: List[int]) -> bool:
    try:
        held.append(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except OSError:
        return True
    try:
        fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_building(home: Home) -> bool:
    """Or resolving."""
    folders = (home.environments(), home.locks())
    locks = [os.path.join(folder, name) for folder in folders for name in names_in(folder) if name.endswith(".lock")]
    if any(kernel.lock_holder(lock, BUILD_BYTE) is not None for lock in locks):
        return True
    lost = LostLocks()
    return any(lost.holders_below(folder, ".lock", BUILD_BYTE) for folder in folders)
