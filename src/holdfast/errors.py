"""Everything that Holdfast raises on purpose: one tree, each error with a remedy and an exit code.

    HoldfastError
    ├── UsageError            the command line makes no sense
    │   └── UnknownName       a name that does not exist; lists the nearest and the valid ones
    ├── ConfigurationError    one or more problems in the project's files, each with file, line and key
    ├── ProjectError          the folder is not what the command needs
    ├── StateError            a run, or what a run is using, is not in a state that allows this
    ├── NotAvailable          known, but this version cannot do it yet
    ├── PreparationError      the packages of an environment cannot be had
    ├── StorageError          disk full, read-only folder, permission denied
    └── HostError             the machine could not be used, or what answered was not the far side
        ├── Unreachable       nothing answered, or the link broke
        ├── LoginNeeded       the machine would ask for something, and no person was there to answer
        ├── HostKeyRefused    its key is unknown and was not confirmed, or is not the one it had
        ├── ElsewhereError    it is not the machine, or not the folder, that the run was started on
        └── FarSideError      the far side answered with an error

A run that failed is not an error: it is data (`model.Ending`). Exit codes are in `ExitCode`; a script's own code passes
through `submit` unchanged, so Holdfast's own failures live in a range of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

from holdfast.farside.system.harmless import one_line


class ExitCode(IntEnum):
    """Holdfast's own exit codes. Documented in `docs/reference/exit-codes.md`, which a test compares with this."""

    USAGE = 240
    CONFIGURATION = 241
    PROJECT = 242
    NOT_AVAILABLE = 243
    STORAGE = 244
    HOST = 245
    RUN = 246
    CANCELED = 247
    TIME_LIMIT = 248
    LOST = 249
    PREPARATION = 250
    DECLINED = 251
    GPU = 252
    DETACHED = 253
    INTERNAL = 254


class HoldfastError(Exception):
    """What happened, in one sentence, and what to do about it. `more`: of several things that happened, lines below the
    first."""

    exit_code: ExitCode = ExitCode.INTERNAL

    def __init__(self, message: str, hint: str = "", more: Sequence[str] = ()) -> None:
        self.lines = (message, *more)
        self.message = "\n".join(self.lines)
        self.hint = hint
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class UsageError(HoldfastError):
    exit_code = ExitCode.USAGE


class UnknownName(UsageError):
    """`kind` is what the name should have been (`run configuration`); `valid` are the names that exist, `place` where
    they do (`run iris_1`)."""

    def __init__(self, kind: str, name: str, valid: Iterable[str], hint: str = "", place: str = "") -> None:
        self.kind, self.name, self.valid = kind, name, sorted(valid)
        guess = nearest(name, self.valid)
        lines = []
        if guess:
            lines.append(f"Did you mean `{one_line(guess)}`?")
        if self.valid:
            shown = ", ".join(map(one_line, self.valid[:20])) + (" …" if len(self.valid) > 20 else "")
            lines.append(f"Available: {shown}")
        if hint:
            lines.append(hint)
        where = f" in {place}" if place else ""
        super().__init__(f"There is no {kind} `{name}`{where}.", "\n".join(lines))


PROBLEMS_SHOWN = 20
"""In one message; the next ones show once these are fixed."""


class ConfigurationError(HoldfastError):
    """All problems of the project's files at once; `problems` are `project.problems.Problem` values."""

    exit_code = ExitCode.CONFIGURATION

    def __init__(self, problems: Sequence[object]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        title = "1 problem" if count == 1 else f"{count} problems"
        lines = [f"  {each}" for each in self.problems[:PROBLEMS_SHOWN]]
        if count > PROBLEMS_SHOWN:
            lines.append(f"  … and {count - PROBLEMS_SHOWN} more.")
        super().__init__(f"{title} in configuration files:", more=lines)


class ProjectError(HoldfastError):
    exit_code = ExitCode.PROJECT


class StateError(HoldfastError):
    exit_code = ExitCode.RUN


class NotAvailable(HoldfastError):
    exit_code = ExitCode.NOT_AVAILABLE


class PreparationError(HoldfastError):
    exit_code = ExitCode.PREPARATION


class StorageError(HoldfastError):
    exit_code = ExitCode.STORAGE


class HostError(HoldfastError):
    exit_code = ExitCode.HOST


class Unreachable(HostError):
    """Worth trying again: a run on the host goes on meanwhile."""


class LoginNeeded(HostError):
    """`methods` are those that the machine accepts, in its own words: `publickey,password`."""

    def __init__(self, message: str, hint: str = "", methods: str = "") -> None:
        super().__init__(message, hint)
        self.methods = methods


class HostKeyRefused(HostError):
    """Not worth trying again without the user."""


class ElsewhereError(HostError):
    """Nothing is known about the run here. `reason` says why, in a few words."""

    def __init__(self, message: str, hint: str, reason: str) -> None:
        super().__init__(message, hint)
        self.reason = reason


class FarSideError(HostError):
    """`kind` is the far side's own word for it (`not-found`, `storage`, `refused`, `internal`)."""

    def __init__(self, kind: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.kind = kind


def nearest(name: str, valid: Iterable[str]) -> str | None:
    """The valid name a person most likely meant, or None."""
    import difflib  # needed only when something is wrong; costs 6 ms

    names = list(valid)
    folded = {each.lower(): each for each in names}
    if name.lower() in folded:
        return folded[name.lower()]
    found = difflib.get_close_matches(name.lower(), list(folded), n=1, cutoff=0.6)
    if found:
        return folded[found[0]]
    containing = [each for low, each in folded.items() if name and (name.lower() in low or low in name.lower())]
    return containing[0] if len(containing) == 1 else None
