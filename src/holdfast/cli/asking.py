"""Putting ssh's questions to the person at the terminal: passwords and codes without echo, host keys by fingerprint."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from holdfast.cli import terminal

if TYPE_CHECKING:
    from holdfast.hosts.asking import Ask, Question


def asker() -> Ask | None:
    """None where nobody is there to answer: input or messages go to a file or a pipe."""
    return ask if terminal.is_terminal(sys.stdin) and terminal.is_terminal(sys.stderr) else None


def ask(question: Question) -> str | None:
    """The answer as it was typed; None for none (Ctrl-D)."""
    sys.stderr.write("\r\x1b[K")  # a line about progress may stand there
    try:
        match question.kind:
            case "notice":
                terminal.notice(terminal.one_line(question.text))
                return None
            case "host-key":
                return _confirm(question)
            case _:
                with _echo_kept():
                    return hidden(f"{terminal.one_line(question.text.rstrip())} ")
    except EOFError:
        terminal.notice("")
        return None


def hidden(prompt: str) -> str:
    """One line, not shown while it is typed."""
    import getpass

    return getpass.getpass(prompt, stream=sys.stderr)


def _confirm(question: Question) -> str:
    """`yes`, the fingerprint itself, or `no`. ssh compares a fingerprint with the key."""
    if question.fingerprint:
        terminal.notice(f"The host key of {question.host or 'the machine'} is not known here. Its fingerprint:")
        terminal.notice(f"  {question.fingerprint}")
        terminal.hint("Compare it with what the machine's owner says, or type that one here.")
    sys.stderr.write("Is it the right machine? (yes/no/fingerprint) ")
    sys.stderr.flush()
    return sys.stdin.readline().strip() or "no"


@contextlib.contextmanager
def _echo_kept() -> Iterator[None]:
    """A question may be asked in a thread; if Ctrl-C ends the program meanwhile, what is typed must show again."""
    try:
        import atexit
        import termios
    except ImportError:
        yield
        return
    before: list[Any] = termios.tcgetattr(sys.stdin.fileno())

    def restore() -> None:
        with contextlib.suppress(termios.error, ValueError, OSError):
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)

    atexit.register(restore)
    try:
        yield
    finally:
        restore()
        atexit.unregister(restore)
