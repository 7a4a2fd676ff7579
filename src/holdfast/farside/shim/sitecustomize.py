"""Imported by every Python of a run as it starts: lets `experiment stacks` ask it where it is, and scripts import the
project's packages, then gives way to the `sitecustomize` that it would have found otherwise. Says nothing, and raises
nothing of its own.

What it costs is paid by every Python that a script starts, so nothing is imported that is not at hand. A Python 2 that
a script starts reads this file too: types are comments here.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec  # noqa: F401 - comments use these
    from types import ModuleType  # noqa: F401
    from typing import Any, Iterable, List, Optional, Sequence, Tuple  # noqa: F401

_BELOW_MAXIMUM = 4
"""The signal is SIGRTMAX minus this, and the file is in the run's folder: as in `operations/stacks.py`, which asks."""
_FILE = "stacks"
_HIGH = 1000
_ANY_SHIM = os.path.join("holdfast", "farside", "shim")
_NOT_OFFERED = ("sitecustomize", "usercustomize")
_INSTALLED = ("site-packages", "dist-packages")
_MOST_LOOKED_AT = 100


def _listen():
    # type: () -> None
    """From now on the signal makes Python write the stacks of all threads, by a handler in C: also of a process that
    hangs with the interpreter's lock held. Once Python takes its handlers down the signal is ignored: one that comes
    late does not end the process."""
    folder = os.environ.get("HOLDFAST_RUN_DIRECTORY")
    if not folder or not sys.platform.startswith("linux"):
        return
    import _signal  # type: ignore[import-not-found] # `signal` takes milliseconds: it is made of enumerations
    import faulthandler

    number = _signal.SIGRTMAX - _BELOW_MAXIMUM
    if _signal.getsignal(number) not in (_signal.SIG_DFL, _signal.SIG_IGN):
        return  # the program that embeds this Python uses it
    low = os.open(os.path.join(folder, _FILE), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        high = _moved(low)
    finally:
        os.close(low)
    _signal.signal(number, _signal.SIG_IGN)
    faulthandler.register(number, file=high, all_threads=True, chain=False)


def _moved(descriptor):
    # type: (int) -> int
    """To a high number: a daemon that closes what it has inherited opens its own files under low ones."""
    import fcntl

    limit = os.sysconf("SC_OPEN_MAX")
    place = min(limit - 24, _HIGH) if limit > 0 else _HIGH
    while True:
        try:
            return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, place)
        except OSError:
            place //= 2
            if place <= descriptor:
                raise


def _offer_project():
    # type: () -> None
    """What lies in the project's top or in its `src` can be imported from everywhere, as after `pip install -e .`. It
    comes last: nothing that is installed is hidden by it, except by the package that has the project's own name."""
    top = os.environ.get("HOLDFAST_PROJECT_DIRECTORY")
    external = sys.modules.get("_frozen_importlib_external")
    if not top or external is None:
        return
    finder, src = external.PathFinder, os.path.join(top, "src")
    _leave_original(finder, top)
    is_path = os.path.isdir(src) and not os.path.exists(os.path.join(src, "__init__.py"))
    if is_path and src not in sys.path:
        sys.path.append(src)
    own = os.environ.get("HOLDFAST_PROJECT_PACKAGE")
    if own and finder in sys.meta_path:
        sys.meta_path.insert(sys.meta_path.index(finder), _OwnPackage(finder, [src] * is_path + [top], own))
    sys.meta_path.append(_InProject(finder, top))


class _InProject(object):
    """Finds modules in the project's top that nobody else has found: a folder only if it has code in it, and is not one
    of logs or data."""

    def __init__(self, finder, top):
        # type: (Any, str) -> None
        self._finder, self._top = finder, top

    def find_spec(self, name, path=None, target=None):
        # type: (str, Optional[Sequence[str]], Optional[ModuleType]) -> Optional[ModuleSpec]
        if path is not None or name in _NOT_OFFERED:
            return None
        spec = self._finder.find_spec(name, [self._top])  # type: Optional[ModuleSpec]
        if spec is None or spec.loader is not None or _has_code(os.path.join(self._top, name)):
            return spec
        return None


def _has_code(folder):
    # type: (str) -> bool
    """In it, or in a folder in it."""
    try:
        names = os.listdir(folder)
        if any(name.endswith(".py") for name in names):
            return True
        below = [os.path.join(folder, name) for name in names[:_MOST_LOOKED_AT] if "." not in name]
        return any(name.endswith(".py") for each in below if os.path.isdir(each) for name in os.listdir(each))
    except OSError:
        return False


class _OwnPackage(object):
    """Finds the package that has the project's own name before one that is installed: that is another version of it."""

    def __init__(self, finder, folders, own):
        # type: (Any, List[str], str) -> None
        self._finder, self._folders, self._own = finder, folders, own

    def find_spec(self, name, path=None, target=None):
        # type: (str, Optional[Sequence[str]], Optional[ModuleType]) -> Optional[ModuleSpec]
        if path is not None or name.lower() != self._own:
            return None
        texts = [entry for entry in sys.path if isinstance(entry, str)]
        before = [entry for entry in texts if os.path.basename(entry.rstrip(os.sep)) not in _INSTALLED]
        for folders in (before, self._folders):
            spec = self._finder.find_spec(name, folders)  # type: Optional[ModuleSpec]
            if spec is not None and spec.loader is not None:
                return spec
        return None


def _leave_original(finder, top):
    # type: (Any, str) -> None
    """Where the project is installed in editable mode from its own folder on this machine, or that one is on the path:
    the run has its copy in that place. Only what no snapshot has, as compiled parts, comes from there."""
    original = os.environ.get("HOLDFAST_PROJECT_ORIGINAL")
    if not original:
        return
    places = [original, os.path.realpath(original)]
    changed = []  # type: List[Tuple[str, str]]
    for place, old in enumerate(sys.path):
        sys.path[place] = _copy_of(old, places, top)
        changed.append((sys.path[place], old))
    for name, module in list(sys.modules.items()):
        mapping = getattr(module, "MAPPING", None) if name.startswith("__editable__") else None  # of setuptools
        if isinstance(mapping, dict):
            for package, old in list(mapping.items()):
                mapping[package] = _copy_of(old, places, top)
                changed.append((mapping[package], old))
    changed = [each for each in changed if each[0] != each[1]]
    if changed:
        sys.meta_path.append(_LeftThere(finder, changed))


def _copy_of(path, places, top):
    # type: (str, List[str], str) -> str
    """The path itself, if the run has none of it, or it is of a Python that lies in the project."""
    if not os.path.isabs(path) or path.startswith((sys.prefix + os.sep, sys.base_prefix + os.sep)):
        return path
    for each in (path, os.path.realpath(path)):
        for place in places:
            copy = top + each[len(place) :]
            if (each + os.sep).startswith(place + os.sep) and (os.path.exists(copy) or os.path.isfile(copy + ".py")):
                return copy
    return path


class _LeftThere(object):
    """Finds parts of packages that the copy does not have. `changed`: folders of the copy, and those they stand for."""

    def __init__(self, finder, changed):
        # type: (Any, List[Tuple[str, str]]) -> None
        self._finder, self._changed = finder, changed

    def find_spec(self, name, path=None, target=None):
        # type: (str, Optional[Iterable[str]], Optional[ModuleType]) -> Optional[ModuleSpec]
        folders = [
            old + each[len(new) :]
            for each in path or ()
            for new, old in self._changed
            if (each + os.sep).startswith(new + os.sep)
        ]
        spec = None  # type: Optional[ModuleSpec]
        if folders:
            spec = self._finder.find_spec(name, folders)
        return spec


def _give_way():
    # type: () -> None
    """Import the next one on the path in the place of this module, with the path as it is. What goes wrong in it is
    told by `site`, as ever."""
    if sys.version_info < (3,):
        return
    spec = _find([entry for entry in sys.path if not _is_shim(entry)])
    if spec is not None:
        del sys.modules[__name__]
        sys.meta_path.insert(0, _Found(spec))
        __import__(__name__)


def _is_shim(entry):
    # type: (str) -> bool
    """Also of another version: a run inside a run has both."""
    return entry.rstrip(os.sep).endswith(_ANY_SHIM) or entry == os.path.dirname(__file__)


def _find(path):
    # type: (List[str]) -> Optional[ModuleSpec]
    for finder in sys.meta_path:
        spec = finder.find_spec(__name__, path) if hasattr(finder, "find_spec") else None
        if spec is not None and spec.origin != __file__:
            return spec
    return None


class _Found(object):
    """Tells the import system once what was found."""

    def __init__(self, spec):
        # type: (ModuleSpec) -> None
        self._spec = spec

    def find_spec(self, name, path=None, target=None):
        # type: (str, Optional[Sequence[str]], Optional[ModuleType]) -> Optional[ModuleSpec]
        if name != self._spec.name:
            return None
        sys.meta_path.remove(self)
        return self._spec


try:
    _listen()
except Exception:  # noqa: BLE001 - the script matters more than being asked about it
    pass
try:
    _offer_project()
except Exception:  # noqa: BLE001 - a script that needs none of it must run
    pass
_give_way()
