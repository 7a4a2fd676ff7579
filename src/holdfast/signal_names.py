"""Names of signals by Linux's numbers."""

from __future__ import annotations

OF_NATIVE_CODE = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL")


def signal_name(number: int | None) -> str:
    """By Linux's numbers, which are the runs': those of this system may mean something else."""
    if number is None:
        return "no signal"
    return f"SIG{_SIGNALS[number - 1]}" if 0 < number <= len(_SIGNALS) else f"signal {number}"


_SIGNALS = (
    *("HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM"),
    *("TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF"),
    *("WINCH", "IO", "PWR", "SYS"),
)
