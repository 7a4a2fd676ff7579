"""Everything that a session starts ends with it: by Ctrl-C, by `kill -9`, or because a worker crashed.

pytest goes on in a grandchild. As root that has a process namespace and mounts of its own: when its first process ends,
the kernel kills every process below it and its mounts are gone, whatever those processes did to detach themselves.

    outer      the process that was started: passes signals on, removes users, bridges and folders at the end
               (the session's folder for temporary files among them)
      first    the first process of the namespace: waits for pytest and for orphans, ends when pytest has ended
        pytest

Elsewhere (not root, no namespaces) `first` adopts orphans instead and kills what is below it at the end. A session that
was itself killed there leaves what the next one removes (`sweep`).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, NoReturn

import pytest

from kit import processes

MARK = "KIT_SESSION"
"""Set in a session, so that a pytest inside a test does not start another session."""
_CLONE_NEWNS, _CLONE_NEWPID = 0x00020000, 0x20000000
_MS_REC, _MS_PRIVATE = 0x4000, 0x40000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 2, 4, 8
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_SI_USER = 0
_LONG = 60.0
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_WAITED_FOR = (*_PASSED_ON, signal.SIGCHLD)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if sys.platform == "linux" and not hasattr(config, "workerinput") and MARK not in os.environ:
        contain()


def contain() -> None:
    """Continue as a process whose descendants all end with it. Returns in that process only."""
    os.environ[MARK] = str(os.getpid())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # the parent of pytest may ignore it, and children would be lost
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED_FOR)
    temporary = _temporary_folder()
    has_namespaces = _may_have_namespaces()
    if has_namespaces:
        own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        _must(_libc().unshare(_CLONE_NEWPID))
        first, life = _fork()
        if first:
            code = _attend(first)
            _libc().setns(own, _CLONE_NEWPID)  # nothing can be started in one whose first process has ended
            temporary.close()
            sweep()
            os._exit(code)
        _end_with_parent(life)
        _mount_own()
    else:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    suite, life = _fork()
    if suite:
        _be_first(suite, has_namespaces, temporary)
    _end_with_parent(life)
    temporary.close()  # the lock stays with the processes above
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def sweep() -> None:
    """Remove what this session, and earlier ones that were killed, left in the machine."""
    from kit import accounts
    from kit.docker import holding

    for remove in (holding.sweep, accounts.sweep):
        try:
            remove()
        except Exception as error:  # noqa: BLE001 - the exit code is that of the tests
            os.write(2, f"warning: something is left, the next session tries again: {error!r}\n".encode())


def _temporary_folder() -> IO[str]:
    """Give the session a folder for temporary files. It is removed once the returned lock is closed."""
    from kit import accounts

    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())  # those of failed tests are kept
    folder, lock = accounts.locked_folder(accounts.PREFIX, accounts.LOCK)
    folder.chmod(0o1777)
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    return lock


def _may_have_namespaces() -> bool:
    """Tries whether this process may make its own process and mount namespaces; a container's root often may not."""
    if os.getuid():
        return False
    trial = os.fork()
    if trial:
        return os.waitpid(trial, 0)[1] == 0
    code = 1
    with contextlib.suppress(BaseException):
        _must(_libc().unshare(_CLONE_NEWPID))
        first = os.fork()
        if first:
            code = int(os.waitpid(first, 0)[1] != 0)
        else:
            _mount_own()
            code = 0
    os._exit(code)


def _be_first(suite: int, has_namespaces: bool, temporary: IO[str]) -> NoReturn:
    began = time.monotonic()
    code = _attend(suite)
    if has_namespaces and time.monotonic() - began > _LONG:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        count = Path("/proc/loadavg").read_text().split()[-1]  # the last pid; all begin at 1 in here
        cost = f"{time.monotonic() - began:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of processor time"
        os.write(2, f"The session took {cost}, {count} processes and threads.\n".encode())
    if not has_namespaces:
        for _ in range(100):  # each look finds what was forked since the last
            left = processes.below(os.getpid())
            processes.send(left, signal.SIGKILL)
            if not left:
                break
        temporary.close()
        sweep()
    os._exit(code)


def _attend(child: int) -> int:
    """Wait for `child`, pass on signals, collect orphans; returns the exit code, as shells give it."""
    while True:
        came = signal.sigwaitinfo(_WAITED_FOR)
        if came.si_signo != signal.SIGCHLD:
            if came.si_code <= _SI_USER:  # Ctrl-C in a terminal reaches pytest by itself
                os.kill(child, came.si_signo)
            continue
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == child:
                    code = os.waitstatus_to_exitcode(status)
                    return code if code >= 0 else 128 - code
                if pid == 0:
                    break


def _mount_own() -> None:
    """No mount of the session is seen outside, and `/proc` shows the session's processes."""
    libc = _libc()
    _must(libc.unshare(_CLONE_NEWNS))
    _must(libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None))
    _must(libc.mount(b"proc", b"/proc", b"proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, None))


def _must(result: int) -> None:
    if result:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _fork() -> tuple[int, int]:
    """The child's id (0 in the child) and, for the child, a pipe that is readable when its parent has ended."""
    reading, writing = os.pipe()
    child = os.fork()
    os.close(reading if child else writing)
    return child, reading


def _end_with_parent(life: int) -> None:
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if select.select([life], [], [], 0)[0]:  # it ended before that
        os._exit(1)
    os.close(life)


def _prctl(option: int, value: int) -> None:
    _libc().prctl(option, value, 0, 0, 0)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
