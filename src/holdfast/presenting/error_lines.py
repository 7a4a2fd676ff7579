"""What went wrong, as a line with its remedy, and the exit code for it."""

from __future__ import annotations

import errno

from holdfast.errors import ExitCode, HoldfastError
from holdfast.presenting.lines import Level, Line, Mark, Role, one_line

STORAGE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)


def error_line(problem: BaseException) -> tuple[Line, ExitCode]:
    """What is not an error of ours, nor one of a disk, is a defect."""
    if isinstance(problem, HoldfastError):
        return Line(problem.message, Level.ERROR, problem.hint), problem.exit_code
    if isinstance(problem, OSError) and problem.errno in STORAGE:
        return _storage(problem), ExitCode.STORAGE
    text = one_line(f"{type(problem).__name__}: {problem}".rstrip(": "))
    remedy = "This is a defect of Holdfast. To see where: the same with --debug, or with HOLDFAST_DEBUG=1."
    return Line(text, Level.ERROR, remedy, Mark("internal error", Role.BAD)), ExitCode.INTERNAL


def _storage(problem: OSError) -> Line:
    name = problem.filename
    name = name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else name
    place = f" `{one_line(name)}`" if isinstance(name, str) else ""
    text = f"A file{place} cannot be read or written: {problem.strerror or problem}."
    return Line(text, Level.ERROR, "Check the disk's space and the permissions.")
