"""This interpreter as on Windows or macOS, as far as Holdfast can tell the difference.

The code of Holdfast, and no other, loses the modules and names that Python does not have there: the standard library
and the packages we use have their own ways there. The different behaviour of files on Windows applies to all code: no
file or folder is renamed or removed while something in it is open, nothing replaces a read-only file, `os.rename`
replaces nothing, folders cannot be opened, links need a privilege, some names do not exist, and a descriptor from
`os.open` turns line ends around.

The lists are what Python's documentation and its type stubs (`sys.platform`) say.
"""

from __future__ import annotations

import builtins
import errno
import fcntl
import io
import os
import shutil
import stat
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MODULES: Mapping[str, frozenset[str]] = {
    "win32": _words("crypt curses fcntl grp nis ossaudiodev posix pty pwd readline resource spwd syslog termios tty"),
    "darwin": _words("nis ossaudiodev spwd msvcrt winreg _winapi"),
}

LACKS: Mapping[str, Mapping[str, frozenset[str]]] = {
    "win32": {
        "os": _words(
            """F_LOCK F_TEST F_TLOCK F_ULOCK O_ACCMODE O_ASYNC O_CLOEXEC O_DIRECT O_DIRECTORY O_DSYNC O_LARGEFILE
            O_NDELAY O_NOATIME O_NOCTTY O_NOFOLLOW O_NONBLOCK O_PATH O_RSYNC O_SYNC O_TMPFILE P_ALL P_PGID P_PID P_PIDFD
            RTLD_GLOBAL RTLD_LAZY RTLD_LOCAL RTLD_NOW SEEK_DATA SEEK_HOLE WCONTINUED WCOREDUMP WEXITED WEXITSTATUS
            WIFCONTINUED WIFEXITED WIFSIGNALED WIFSTOPPED WNOHANG WNOWAIT WSTOPPED WSTOPSIG WTERMSIG WUNTRACED chown
            chroot confstr copy_file_range ctermid environb eventfd fchdir fchmod fchown fdatasync fork forkpty
            fpathconf fstatvfs fwalk get_blocking getegid getenvb geteuid getgid getgrouplist getgroups getloadavg
            getpgid getpgrp getpriority getrandom getresgid getresuid getsid getuid getxattr initgroups killpg lchown
            listxattr lockf login_tty major makedev memfd_create minor mkfifo mknod nice openpty pathconf pidfd_open
            pipe2 posix_fadvise posix_fallocate posix_spawn posix_spawnp pread preadv pwrite pwritev readv
            register_at_fork removexattr sched_getaffinity sched_setaffinity sched_yield sendfile set_blocking setegid
            seteuid setgid setgroups setns setpgid setpgrp setpriority setregid setresgid setresuid setreuid setsid
            setuid setxattr splice statvfs sync sysconf sysconf_names tcgetpgrp tcsetpgrp ttyname uname unshare wait
            wait3 wait4 waitid writev"""
        ),
        "signal": _words(
            """ITIMER_PROF ITIMER_REAL ITIMER_VIRTUAL SIGALRM SIGBUS SIGCHLD SIGCLD SIGCONT SIGHUP SIGIO SIGIOT SIGKILL
            SIGPIPE SIGPOLL SIGPROF SIGPWR SIGQUIT SIGRTMAX SIGRTMIN SIGSTKFLT SIGSTOP SIGSYS SIGTRAP SIGTSTP SIGTTIN
            SIGTTOU SIGURG SIGUSR1 SIGUSR2 SIGVTALRM SIGWINCH SIGXCPU SIGXFSZ SIG_BLOCK SIG_SETMASK SIG_UNBLOCK Signals
            alarm getitimer pause pidfd_send_signal pthread_kill pthread_sigmask setitimer siginterrupt sigpending
            sigtimedwait sigwait sigwaitinfo"""
        ),
        "select": _words("EPOLLERR EPOLLIN POLLERR POLLHUP POLLIN POLLOUT PIPE_BUF epoll poll"),
        "socket": _words("AF_UNIX CMSG_LEN MSG_DONTWAIT MSG_NOSIGNAL SCM_RIGHTS SO_PEERCRED recv_fds send_fds"),
        "time": _words("CLOCK_BOOTTIME CLOCK_MONOTONIC CLOCK_REALTIME clock_gettime clock_gettime_ns tzset"),
    },
    "darwin": {
        "os": _words(
            """O_DIRECT O_LARGEFILE O_NOATIME O_PATH O_RSYNC O_TMPFILE P_PIDFD copy_file_range eventfd fdatasync
            getrandom getresgid getresuid getxattr listxattr memfd_create pidfd_open pipe2 posix_fadvise posix_fallocate
            removexattr sched_getaffinity sched_setaffinity setns setresgid setresuid setxattr splice unshare waitid"""
        ),
        "signal": _words(
            "SIGCLD SIGPOLL SIGPWR SIGRTMAX SIGRTMIN SIGSTKFLT Signals pidfd_send_signal sigtimedwait sigwaitinfo"
        ),
        "select": _words("EPOLLERR EPOLLIN POLLRDHUP epoll"),
        "socket": _words("AF_NETLINK AF_PACKET MSG_CMSG_CLOEXEC SCM_CREDENTIALS SOCK_CLOEXEC SO_PEERCRED"),
        "time": _words("CLOCK_BOOTTIME CLOCK_TAI"),
    },
}
"""`signal.Signals` exists, with other numbers: it would give wrong names to a run's signals."""

_real_import = builtins.__import__
_real_open = builtins.open


def become(system: str) -> None:
    """Call it before Holdfast is imported, and after everything that it uses."""
    assert not [name for name in sys.modules if name.startswith("holdfast.")]
    _hide_proc()
    shapes = {name: _without(__import__(name), names) for name, names in LACKS[system].items()}
    if system == "win32":
        _Files().apply(shapes["os"])
        sys.modules["msvcrt"] = _msvcrt()
    _give_to_holdfast(shapes, MODULES[system])
    sys.platform = system


def is_holdfast(module: str) -> bool:
    return module == "holdfast" or module.startswith("holdfast.")


def _give_to_holdfast(shapes: Mapping[str, types.ModuleType], absent: frozenset[str]) -> None:
    def importing(name: str, around: Any = None, *arguments: Any, **options: Any) -> Any:
        if is_holdfast((around or {}).get("__name__") or ""):
            if name.partition(".")[0] in absent:
                raise ModuleNotFoundError(f"No module named {name!r} on {sys.platform}", name=name)
            if name in shapes:
                return shapes[name]
        return _real_import(name, around, *arguments, **options)

    vars(builtins)["__import__"] = importing


def _without(module: types.ModuleType, names: frozenset[str]) -> types.ModuleType:
    copy = types.ModuleType(module.__name__)
    for name in dir(module):
        if name not in names:
            setattr(copy, name, getattr(module, name))
    return copy


def _hide_proc() -> None:
    """Neither system has it."""

    def opening(file: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(file, (str, os.PathLike)) and os.fspath(file).startswith("/proc/"):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(file))
        return _real_open(file, *arguments, **options)

    builtins.open = opening
    vars(io)["open"] = opening


class _Files:
    """What Windows does with files."""

    O_BINARY = 1 << 30

    def __init__(self) -> None:
        self._in_text_mode: set[int] = set()
        self._open, self._write, self._read, self._close = os.open, os.write, os.read, os.close

    def apply(self, shape: types.ModuleType) -> None:
        for name in ("rename", "replace"):
            self._change(shape, name, _moving(getattr(os, name), may_replace=name == "replace"))
        for name in ("unlink", "remove", "rmdir"):
            self._change(shape, name, _removing(getattr(os, name)))
        self._change(shape, "mkdir", _naming(os.mkdir))
        self._change(shape, "symlink", _refused_link)
        self._change(shape, "open", self.opening)
        self._change(shape, "close", self.closing)
        shape.O_BINARY = self.O_BINARY  # type: ignore[attr-defined]
        shape.O_NOINHERIT = 0  # type: ignore[attr-defined]
        shape.write, shape.read = self.writing, self.reading  # type: ignore[attr-defined]
        shape.fstat = lambda descriptor: _without_modes(os.fstat(descriptor), "")  # type: ignore[attr-defined]
        shape.lstat = lambda path: _without_modes(os.lstat(path), path)  # type: ignore[attr-defined]
        shape.name, shape.pathsep = "nt", ";"  # type: ignore[attr-defined]
        vars(shutil)["_use_fd_functions"] = False
        accessor = getattr(__import__("pathlib"), "_NormalAccessor", None)  # Python 3.10 has taken them already
        for name in ("rename", "replace", "unlink", "rmdir", "mkdir", "symlink") if accessor else ():
            setattr(accessor, name, staticmethod(getattr(os, name)))
        opening = builtins.open

        def open_file(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            if isinstance(file, int):
                self._in_text_mode.discard(file)  # Python's own files take bytes as they are
            elif set(mode) & set("wax"):
                _require_name(file)
            return opening(file, mode, *arguments, **options)

        builtins.open = open_file
        vars(io)["open"] = open_file
        if accessor:
            accessor.open = staticmethod(open_file)

    def opening(self, path: Any, flags: int, mode: int = 0o777, **options: Any) -> int:
        if os.path.isdir(path):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        if flags & os.O_CREAT:
            _require_name(path)
        descriptor = self._open(path, flags & ~self.O_BINARY, mode, **options)
        if not flags & self.O_BINARY:
            self._in_text_mode.add(descriptor)
        return descriptor

    def closing(self, descriptor: int) -> None:
        self._in_text_mode.discard(descriptor)
        self._close(descriptor)

    def writing(self, descriptor: int, data: Any) -> int:
        if descriptor in self._in_text_mode:
            self._write(descriptor, bytes(data).replace(b"\n", b"\r\n"))
            return len(data)
        return self._write(descriptor, data)

    def reading(self, descriptor: int, length: int) -> bytes:
        data = self._read(descriptor, length)
        return data.partition(b"\x1a")[0].replace(b"\r\n", b"\n") if descriptor in self._in_text_mode else data

    @staticmethod
    def _change(shape: types.ModuleType, name: str, function: Callable[..., Any]) -> None:
        setattr(os, name, function)
        setattr(shape, name, function)


def _moving(real: Callable[..., None], may_replace: bool) -> Callable[..., None]:
    def move(source: Any, target: Any, **options: Any) -> None:
        _require_unused(source)
        _require_name(target)
        if os.path.lexists(target):
            if not may_replace or os.path.isdir(target):
                raise FileExistsError(errno.EEXIST, "Cannot create a file when that file already exists", target)
            _require_unused(target)
            _require_writable(target)
        real(source, target, **options)

    return move


def _removing(real: Callable[..., None]) -> Callable[..., None]:
    def remove(path: Any, **options: Any) -> None:
        if os.path.lexists(path):
            _require_unused(path)
            _require_writable(path)
        real(path, **options)

    return remove


def _naming(real: Callable[..., None]) -> Callable[..., None]:
    def make(path: Any, *arguments: Any, **options: Any) -> None:
        _require_name(path)
        real(path, *arguments, **options)

    return make


def _refused_link(source: Any, target: Any, *_: Any, **__: Any) -> None:
    raise OSError(errno.EINVAL, "A required privilege is not held by the client", source, 1314, target)


def _require_unused(path: Any) -> None:
    """Of this process alone, which is enough: one that is open elsewhere is no different."""
    whole = os.path.realpath(os.fsdecode(path))
    for number in os.listdir("/proc/self/fd"):
        try:
            used = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            continue
        if used == whole or used.startswith(whole + "/"):
            raise PermissionError(errno.EACCES, "It is being used by another process", os.fsdecode(path))


def _require_writable(path: Any) -> None:
    found = os.lstat(path)
    if stat.S_ISREG(found.st_mode) and not found.st_mode & stat.S_IWUSR:
        raise PermissionError(errno.EACCES, "Access is denied", os.fsdecode(path))


def _require_name(path: Any) -> None:
    name = os.path.basename(os.fsdecode(path))
    if (
        set(name) & set('<>:"|?*\\')
        or name.endswith((" ", "."))
        or name.partition(".")[0].lower() in ("aux", "con", "nul")
    ):
        raise OSError(errno.EINVAL, "The filename, directory name, or volume label syntax is incorrect", name)


def _without_modes(found: os.stat_result, path: Any) -> os.stat_result:
    """Only what a name ends with makes it executable."""
    bits = 0o111 if os.fsdecode(path).endswith((".exe", ".bat", ".cmd", ".com")) else 0
    times = {name: getattr(found, name) for name in ("st_atime_ns", "st_mtime_ns", "st_ctime_ns")}
    return os.stat_result(((found.st_mode & ~0o111) | bits, *tuple(found)[1:]), times)


def _msvcrt() -> types.ModuleType:
    module = types.ModuleType("msvcrt")

    def locking(descriptor: int, mode: int, length: int) -> None:
        assert length > 0
        if os.lseek(descriptor, 0, os.SEEK_CUR) < os.fstat(descriptor).st_size:
            raise AssertionError("a byte that another process may read is locked")
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_EX | fcntl.LOCK_NB) if mode else fcntl.LOCK_UN)
        except BlockingIOError:
            raise PermissionError(errno.EACCES, "Permission denied") from None

    module.locking = locking  # type: ignore[attr-defined]
    module.LK_UNLCK, module.LK_LOCK, module.LK_NBLCK = 0, 1, 2  # type: ignore[attr-defined]
    return module
