"""A terminal for one command, which `--tty` starts: `python pseudo_terminal.py COMMAND …`.

The command's stdin, stdout and stderr are a terminal of 80 by 24. What it writes there is this process's output. Nobody
types: every read finds the end of the input. How the command ends is how this process ends, by the same signal too.

It runs in containers too, by the run's Python, so it needs nothing but the standard library.
"""

import errno
import fcntl
import os
import resource
import select
import signal
import struct
import sys
import termios
from typing import List, Tuple

ROWS, COLUMNS = 24, 80
_CONTROL_D = b"\x04"
_LOOK = 1.0
"""Seconds between looks at the terminal's mode."""
_MOST_LEFT = 1 << 20
"""Bytes; a terminal holds less."""
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def main(command: List[str]) -> int:
    try:
        leader, follower = make_terminal()
    except OSError as error:
        sys.stderr.write("No terminal can be made here: %s. Leave out --tty.\n" % error.strerror)
        return 126
    signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    pid = _start(command, leader, follower)
    for number in _FORWARDED:
        signal.signal(number, lambda received, _: _hand_on(pid, received))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
    _relay(pid, leader, follower)
    return _end_as(os.waitpid(pid, 0)[1])


def make_terminal() -> Tuple[int, int]:
    """Both ends. A read of its input ends at once, and a newline in its output stays one."""
    leader, follower = os.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    mode = termios.tcgetattr(follower)
    mode[1] &= ~termios.ONLCR
    mode[3] &= ~(termios.ICANON | termios.ECHO)
    mode[6][termios.VMIN] = mode[6][termios.VTIME] = 0
    termios.tcsetattr(follower, termios.TCSANOW, mode)
    return leader, follower


def _start(command: List[str], leader: int, follower: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 126
    try:
        os.setsid()
        fcntl.ioctl(follower, termios.TIOCSCTTY, 0)
        for number in (0, 1, 2):
            os.dup2(follower, number)
        os.close(leader)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and so would the command
        os.execvp(command[0], command)  # noqa: S606 - there is no shell on purpose
    except OSError as error:
        os.write(2, ("`%s` cannot be started: %s\n" % (command[0], error.strerror)).encode("utf-8", "replace"))
        code = 127 if error.errno == errno.ENOENT else 126
    finally:
        os._exit(code)
    return 0


def _hand_on(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)  # not reaped before the end, so the pid is its own
    except ProcessLookupError:
        pass


def _relay(pid: int, leader: int, follower: int) -> None:
    """Until the command has ended, and everything that it wrote is through."""
    woken, tell = os.pipe()
    for end in (woken, tell):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(tell)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    os.write(tell, b"x")  # it may have ended before this
    is_typed_for = True
    while True:
        ready = select.select([leader, woken], [], [], _LOOK if is_typed_for else None)[0]
        if leader in ready:
            _pass_on(leader)
        elif woken in ready:
            _read(woken)
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                signal.set_wakeup_fd(-1)
                return _drain(leader)
        else:
            _type_end(leader, follower)


def _drain(leader: int) -> None:
    """What the command left there. Others that still have the terminal open are not waited for."""
    left = _MOST_LEFT
    while left > 0 and select.select([leader], [], [], 0)[0]:
        size = _pass_on(leader)
        left -= size or left


def _pass_on(leader: int) -> int:
    """Returns how many bytes there were."""
    data = _read(leader)
    rest = data
    while rest:
        rest = rest[os.write(1, rest) :]
    return len(data)


def _read(source: int) -> bytes:
    try:
        return os.read(source, 1 << 16)
    except OSError as error:
        if error.errno not in (errno.EIO, errno.EAGAIN):  # EIO: nobody has the terminal open
            raise
        return b""


def _type_end(leader: int, follower: int) -> None:
    """A program that sets the terminal's mode itself (a debugger, a prompt) waits for keys: it gets Ctrl-D."""
    mode = termios.tcgetattr(follower)
    is_canonical, echoes = mode[3] & termios.ICANON, mode[3] & termios.ECHO
    takes_keys = is_canonical or (mode[6][termios.VMIN] not in (0, b"\x00") and not echoes)
    if takes_keys and not select.select([follower], [], [], 0)[0]:
        os.write(leader, _CONTROL_D)


def _end_as(status: int) -> int:
    if not os.WIFSIGNALED(status):
        return os.WEXITSTATUS(status)
    number = os.WTERMSIG(status)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the command's own is enough
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
