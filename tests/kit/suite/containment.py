"""Everything that a session starts ends with it: by Ctrl-C, by `kill -9`, or because a worker crashed.

pytest goes on in a grandchild. As root that has a process namespace and mounts of its own: when its first process ends,
the kernel kills every process below it and its mounts are gone, whatever those processes did to detach themselves.

    outer      the process that was started: passes signals on, removes users, bridges and folders at the end
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
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

import pytest

from kit import processes

MARK = "KIT_SESSION"
"""Set in a session, so that a pytest inside a test does not begin another."""
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
    """Go on as a process whose whole offspring ends with it. Returns in that process only."""
    os.environ[MARK] = str(os.getpid())
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED_FOR)
    own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    has_namespaces = os.getuid() == 0 and _libc().unshare(_CLONE_NEWPID) == 0
    if has_namespaces:
        first = os.fork()
        if first:
            code = _attend(first)
            _libc().setns(own, _CLONE_NEWPID)  # nothing can be started in one whose first process has ended
            sweep()
            os._exit(code)
        _end_with_parent()
        _mount_own()
    else:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    suite = os.fork()
    if suite:
        _be_first(suite, has_namespaces)
    _end_with_parent()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def sweep() -> None:
    """Remove what this session, and earlier ones that were killed, left in the machine."""
    from kit import accounts
    from kit.docker import holding

    for remove in (holding.sweep, accounts.sweep):
        with contextlib.suppress(Exception):  # nothing is left, or another session is at it
            remove()


def _be_first(suite: int, has_namespaces: bool) -> NoReturn:
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
    if libc.unshare(_CLONE_NEWNS):
        sys.exit(f"error: no mount namespace: {os.strerror(ctypes.get_errno())}")
    for words in (
        (b"none", b"/", None, _MS_REC | _MS_PRIVATE, None),
        (b"proc", b"/proc", b"proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC, None),
    ):
        if libc.mount(*words):
            sys.exit(f"error: mounting {words[1].decode()} failed: {os.strerror(ctypes.get_errno())}")


def _end_with_parent() -> None:
    parent = os.getppid()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before that
        os._exit(1)


def _prctl(option: int, value: int) -> None:
    _libc().prctl(option, value, 0, 0, 0)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
