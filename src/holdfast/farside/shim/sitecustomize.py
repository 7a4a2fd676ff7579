"""Imported by every Python of a run as it starts: lets `experiment stacks` ask it where it is, then gives way to the
`sitecustomize` that it would have found otherwise. Says nothing, and raises nothing of its own.

What it costs is paid by every Python that a script starts, so nothing is imported that is not at hand. A Python 2 that
a script starts reads this file too: types are comments here.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec  # noqa: F401 - comments use these
    from types import ModuleType  # noqa: F401
    from typing import List, Optional, Sequence  # noqa: F401

_BELOW_MAXIMUM = 4
"""The signal is SIGRTMAX minus this, and the file is in the run's folder: as in `operations/stacks.py`, which asks."""
_FILE = "stacks"
_HIGH = 1000
_ANY_SHIM = os.path.join("holdfast", "farside", "shim")


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
_give_way()
