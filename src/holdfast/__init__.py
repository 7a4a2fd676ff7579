"""What a script says to its run: `log`, `upload`, `current_run`. Also the root of the package.

    import holdfast
    holdfast.log("loss", 0.3, step=7)
    holdfast.log({"loss": 0.3, "accuracy": 0.9}, step=7)
    holdfast.upload("report/summary.txt", "All is well.")

Outside a run nothing happens. Inside one, nothing that goes wrong with a value or a disk may end a training:
it is said once on stderr, and the training goes on. What `log` has returned from survives `kill -9`.

Scripts import this file on hosts, under any Python from 3.6 on, and every start of the command line imports
it too. So it needs the standard library only, imports next to nothing, and the rest when it is first used.
"""

import errno
import os
import sys
from time import time as _now

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would take longer than all the rest
    from typing import Any, List, Optional, Tuple, Union

__version__ = "0.1.0"
__all__ = ["CurrentRun", "current_run", "log", "upload"]


def log(name: "Any", value: "Any" = None, step: "Any" = None) -> None:
    """Record a metric of this run: a number, a text, or a list of numbers, which may be nested.

    Scalars, arrays and tensors of numpy, torch, tensorflow and their kin are taken as what they hold. With a
    dict as `name`, each of its items is recorded, at the same time and step; the second argument is the step.
    """
    pid, descriptor = _file.opened
    is_open = pid == os.getpid()
    if is_open and type(value) is float and type(step) is int and type(name) is str and not _file.torn:
        # The common case, quick enough for an inner loop. `value - value` is 0 for finite values only.
        key = _keys.get(name)
        if key is not None and value - value == 0.0 and -_STEP_LIMIT < step < _STEP_LIMIT:
            _file.append(b'{"t": %.6f, "n": %b, "v": %r, "s": %d}\n' % (_now(), key, value, step), descriptor)
            return
    if not is_open and current_run() is None:
        return
    if isinstance(name, dict):
        data = _lines(name.items(), value if step is None else step)
    else:
        data = _lines([(name, value)], step)
    if data:
        _file.append(data, descriptor if is_open else _CLOSED)


def upload(path: "Union[str, os.PathLike[str]]", content: "Union[str, bytes]") -> None:
    """Give the run a file, `uploads/<path>` of its record. A second one of that path replaces the first.

    Raises ValueError for a path that cannot be used, and TypeError for content that is not text or bytes.
    """
    if current_run() is None:
        return
    parts = _upload_parts(path)
    if isinstance(content, str):
        content = content.encode("utf-8", "backslashreplace")
    elif not isinstance(content, (bytes, bytearray, memoryview)):
        raise TypeError("holdfast.upload: the content is a {}; give text or bytes".format(type(content).__name__))
    try:
        _replace(_folder("uploads"), parts, content)
    except (OSError, UnicodeError) as error:
        _warn("upload", "`{}` could not be uploaded: {}".format("/".join(parts), error))


def current_run() -> "Optional[CurrentRun]":
    """The run that this process belongs to, or None outside a run."""
    run_id, directory = os.environ.get("HOLDFAST_RUN_ID"), os.environ.get("HOLDFAST_RUN_DIRECTORY")
    return CurrentRun(run_id, directory) if run_id and directory else None


class CurrentRun:
    """A run as its own script sees it. `outputs` is the folder whose files come home by themselves."""

    __slots__ = ("directory", "id", "outputs", "project", "run_configuration", "target")

    def __init__(self, run_id: str, directory: str) -> None:
        self.id = run_id
        self.directory = directory
        top = os.environ.get("HOLDFAST_PROJECT_DIRECTORY") or os.path.join(directory, "work")
        self.outputs = os.path.join(top, "outputs")
        self.project = os.environ.get("HOLDFAST_PROJECT", "")
        self.target = os.environ.get("HOLDFAST_TARGET", "")
        self.run_configuration = os.environ.get("HOLDFAST_RUN_CONFIGURATION", "")

    def __repr__(self) -> str:
        return "<holdfast run {}>".format(self.id)


class _MetricsFile:
    """The metrics file of this process, opened when it is first needed, and anew in a forked child.

    `opened` is a pid and a descriptor, replaced as one value: threads need no lock, a signal handler may log.
    """

    def __init__(self) -> None:
        self.opened = (0, _CLOSED)
        self.torn = False

    def append(self, data: bytes, descriptor: int) -> None:
        """Add whole lines with one write. A failure is said once on stderr; later calls try again."""
        try:
            if descriptor == _CLOSED:
                descriptor = self._open()
            if self.torn:
                data = b"\n" + data
            written = os.write(descriptor, data)
            if written != len(data) or self.torn:
                self._finish(descriptor, memoryview(data)[written:])
        except OSError as error:
            if error.errno == errno.EBADF and descriptor != _CLOSED:
                self.append(data, _CLOSED)  # the script has closed descriptors that are not its own
            else:
                _warn("metrics", "metrics cannot be written, and are lost until they can: {}".format(error))

    def _finish(self, descriptor: int, rest: memoryview) -> None:
        """Write what the file system did not take at once.

        From here on a line of another thread can come in between, and a kill leaves a torn line; readers drop
        both. A regular file takes a part only when the disk is full, or of more than 2 GB. A line that cannot
        be finished gets its newline before the next one, so that it is the only one lost.
        """
        self.torn = len(rest) > 0
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        self.torn = False

    def _open(self) -> int:
        folder = _folder("metrics")
        path = os.path.join(folder, "{}-{}.jsonl".format(os.getpid(), os.urandom(6).hex()))
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = _out_of_reach(os.open(path, flags, 0o666))
        self.torn = False
        self.opened = (os.getpid(), descriptor)
        return descriptor


_CLOSED = -1
_STEP_LIMIT = 1 << 63
_MOST_NAMES = 10000
_MOST_WARNINGS = 200
_UNFINISHED = ".unfinished-"

_file = _MetricsFile()
_keys = {}  # type: dict[str, bytes]
_warned = set()  # type: set[str]


def _folder(name: str) -> str:
    """A folder of the run, made if it is missing; the run's own is not, for then the run has been removed."""
    run = current_run()
    if run is None:
        raise FileNotFoundError(errno.ENOENT, "not in the environment any more", "HOLDFAST_RUN_DIRECTORY")
    folder = os.path.join(run.directory, name)
    if not os.path.isdir(folder):
        try:
            os.mkdir(folder)
        except FileExistsError:
            return folder  # another process was quicker; or it is a file, and using it will say so
    return folder


def _out_of_reach(descriptor: int) -> int:
    """The same file under a high number.

    When a script closes descriptors in bulk, its own next file gets a number that was in use. Low numbers are
    given out first, so a metric never lands in that file.
    """
    import fcntl

    try:
        high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 600)
    except OSError:  # the limit on open files is lower than that
        return descriptor
    os.close(descriptor)
    return high


def _lines(items: "Any", step: "Any") -> bytes:
    time, step_text = _now(), _step_text(step)
    return b"".join([_line(name, value, time, step_text) for name, value in items])


def _line(name: "Any", value: "Any", time: float, step_text: bytes) -> bytes:
    """The line of one metric, or nothing, and a warning, if it cannot be recorded."""
    try:
        key = (isinstance(name, str) and _keys.get(name)) or _new_key(name)
        text, mark = _value_text(value)
        return b'{"t": %.6f, "n": %b, "v": %b, "s": %b%b}\n' % (time, key, text, step_text, mark)
    except Exception as error:  # noqa: BLE001 - a foreign type may raise anything, and a training must go on
        known = isinstance(error, _RefusedError)
        reason = str(error) if known else "{}: {}".format(type(error).__name__, error)
        _warn("value of " + _shown(name), "{} was not logged: {}".format(_shown(name), reason))
        return b""


def _step_text(step: "Any") -> bytes:
    if step is None:
        return b"null"
    try:
        number = int(step) if isinstance(step, float) and step.is_integer() else step.__index__()
        if -_STEP_LIMIT < number < _STEP_LIMIT:
            return b"%d" % number
        reason = "it is too large"
    except Exception as error:  # noqa: BLE001 - as above
        reason = "a {} is not an integer ({})".format(type(step).__name__, error)
    _warn("step", "metrics are logged without their step: {}".format(reason))
    return b"null"


def _shown(name: "Any") -> str:
    return repr(name[:100]) if isinstance(name, str) else "a metric"


class _RefusedError(Exception):
    """A name or a value that cannot be recorded, and why."""


def _new_key(name: "Any") -> bytes:
    import json

    if not isinstance(name, str):
        raise _RefusedError("a metric's name is a text, not a {}".format(type(name).__name__))
    if not name or len(name) > 250 or "\n" in name or "\r" in name:
        raise _RefusedError("a metric's name is one line of 1 to 250 characters")
    if len(_keys) >= _MOST_NAMES:
        _keys.clear()
    key = json.dumps(_clean(name)).encode()
    _keys[str(name)] = key
    return key


def _clean(text: str) -> str:
    """Without the halves of surrogate pairs, which no terminal and no database can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _value_text(value: "Any") -> "Tuple[bytes, bytes]":
    """The value as JSON, and the mark that says that some of its texts stand for NaN and infinities."""
    import json

    not_finite = []  # type: list[str]
    plain = _plain(value, 0, not_finite)
    return json.dumps(plain).encode(), b', "f": 1' if not_finite else b""


def _plain(value: "Any", depth: int, not_finite: "List[str]") -> "Any":
    """The value as Python's own number, text or list. `depth` counts the lists around it."""
    if isinstance(value, bool):
        return value
    if isinstance(value, float):
        return _plain_float(float(value), not_finite)
    if isinstance(value, int):
        if value.bit_length() > 1023:
            raise _RefusedError("the integer is too large")
        return int(value)
    if isinstance(value, str):
        if depth:
            raise _RefusedError("a list can hold numbers only, and this one holds text")
        return _clean(value)
    if isinstance(value, (list, tuple)):
        return _plain_list(value, depth, not_finite)
    if value is None or isinstance(value, (bytes, bytearray, dict, set, frozenset)):
        raise _RefusedError("{} is not a number, a text or a list of numbers".format(_kind(value)))
    return _plain(_converted(value), depth, not_finite)


def _kind(value: "Any") -> str:
    return "None" if value is None else "a value of type {}".format(type(value).__name__)


def _plain_float(value: float, not_finite: "List[str]") -> "Union[float, str]":
    if value - value == 0.0:
        return value
    text = "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    not_finite.append(text)
    return text


def _plain_list(values: "Any", depth: int, not_finite: "List[str]") -> "Any":
    if depth >= 64:
        raise _RefusedError("lists are nested more than 64 deep")
    if set(map(type, values)) == {float}:
        total = sum(values)
        if total - total == 0.0:  # all are finite: a list of millions is taken without looking at each
            return values
    return [_plain(each, depth + 1, not_finite) for each in values]


def _converted(value: "Any") -> "Any":
    """What a scalar, array or tensor of some library holds, by the methods that such libraries share."""
    for method in ("tolist", "numpy", "asnumpy", "item"):
        convert = getattr(value, method, None)
        if convert is not None:
            result = convert()
            if type(result) is not type(value):  # numpy's long double gives itself
                known = isinstance(result, (bool, int, float, str, list, tuple))
                return result if known else _converted(result)
    if hasattr(type(value), "__float__"):
        return float(value)
    if hasattr(type(value), "__index__"):
        return value.__index__()
    raise _RefusedError("{} is not a number, a text or a list of numbers".format(_kind(value)))


def _upload_parts(path: "Any") -> "List[str]":
    text = os.fspath(path)
    if isinstance(text, bytes):
        text = os.fsdecode(text)
    problem = ""
    if not text or text.endswith("/"):
        problem = "it names no file"
    elif text.startswith("/"):
        problem = "it must be relative"
    elif "\0" in text or "\\" in text:
        problem = "it has a backslash or a NUL in it; folders are separated by /"
    elif ".." in text.split("/"):
        problem = "it must not have .. in it"
    elif text.startswith(_UNFINISHED):
        problem = "names that start with {} are kept for files that are being written".format(_UNFINISHED)
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if problem or not parts:
        raise ValueError(
            "holdfast.upload: the path {!r} cannot be used: {}".format(text, problem or "it names no file")
        )
    return parts


def _replace(folder: str, parts: "List[str]", content: "Union[bytes, bytearray, memoryview]") -> None:
    """Write the file beside its place and move it there, so that a half of it is never seen."""
    target = os.path.join(folder, *parts)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    unfinished = os.path.join(folder, "{}{}-{}".format(_UNFINISHED, os.getpid(), os.urandom(6).hex()))
    try:
        with open(unfinished, "xb") as file:
            file.write(content)
        os.replace(unfinished, target)
    except BaseException:
        if os.path.lexists(unfinished):
            os.unlink(unfinished)
        raise


def _warn(key: str, text: str) -> None:
    """Say it once on stderr. Not by `warnings`: a filter could turn it into an exception."""
    if key in _warned or len(_warned) >= _MOST_WARNINGS:
        return
    _warned.add(key)
    try:
        sys.stderr.write("holdfast: {} (said once)\n".format(text))
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):  # there is no stderr, or it is closed
        return


def _join_installed_client() -> None:
    """Let `import holdfast.workbench` find an installed client that the shipped copy of this file hides."""
    for entry in sys.path:
        if entry and isinstance(entry, str):
            folder = os.path.join(entry, "holdfast")
            if folder not in __path__ and os.path.isfile(os.path.join(folder, "__init__.py")):
                __path__.append(folder)


if "HOLDFAST_RUN_ID" in os.environ:
    _join_installed_client()
