"""Asks the person at the terminal what ssh wants to know: passwords and codes without echo, host keys by
fingerprint. And which of several things is meant."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from holdfast.hosts.ssh_questions import Ask, SshQuestion
    from holdfast.workbench.reach.context import Choose


def asker() -> Ask | None:
    """None if no person can answer: input or messages go to a file or a pipe."""
    return ask if _is_terminal(sys.stdin) and _is_terminal(sys.stderr) else None


def chooser() -> Choose | None:
    return choose if _is_terminal(sys.stdin) and _is_terminal(sys.stderr) else None


def choose(question: str, answers: Sequence[str]) -> str | None:
    """One of them, by its number or its name; None for none (Ctrl-D)."""
    from holdfast.cli import terminal

    terminal.clear_line()
    terminal.notice(question)
    for number, each in enumerate(answers, 1):
        terminal.notice(f"  {number}  {each}")
    numbers = {str(number): each for number, each in enumerate(answers, 1)}
    while True:
        line = terminal.ask("Number [1]:")
        answer = line.strip() or answers[0]
        if not line:
            return None
        if answer in answers or answer in numbers:
            return numbers.get(answer, answer)
        terminal.notice(f"Type a number from 1 to {len(answers)}.")


def ask(question: SshQuestion) -> str | None:
    """The answer as it was typed; None for none (Ctrl-D)."""
    from holdfast.cli import terminal

    terminal.clear_line()
    try:
        match question.kind:
            case "notice":
                terminal.notice(question.text)
                return None
            case "host-key":
                return _confirm(question)
            case _:
                if question.is_repeated:
                    terminal.notice("That was not accepted.")
                with _echo_kept():
                    return terminal.ask_hidden(question.text.rstrip())
    except EOFError:
        terminal.notice("")
        return None


def _confirm(question: SshQuestion) -> str:
    """`yes`, the fingerprint itself, or `no`. ssh compares a fingerprint with the key, too."""
    from holdfast.cli import terminal

    if not question.fingerprint:  # ssh asks once more because it took the answer for none
        return "no"
    terminal.notice(f"The host key of {question.host or 'the machine'} is not known here. Its fingerprint:")
    terminal.notice(f"  {question.fingerprint}")
    terminal.hint("Compare it with what the machine's owner says, or type that one here.")
    while True:
        line = terminal.ask("Is it the right machine? (yes/no/fingerprint)")
        answer = line.strip()
        if answer.lower() in ("y", "yes"):
            return "yes"
        if not line or answer.lower() in ("n", "no"):
            return "no"
        if answer == question.fingerprint:
            return answer
        if answer.startswith(("SHA256:", "MD5:")):
            terminal.warning(
                "That is not the fingerprint of this machine's key: it is another machine, or another key."
            )
            return "no"
        terminal.notice("Answer yes or no, or with the fingerprint that it should have.")


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed by the caller
        return False


@contextlib.contextmanager
def _echo_kept() -> Iterator[None]:
    """Restores the echo, also when Ctrl-C ends the program while a thread is asking."""
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
