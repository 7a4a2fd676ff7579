"""How long to try again when the link to a host breaks, and when not to."""

from __future__ import annotations

from holdfast.errors import FarSideError, HostError, HostKeyRefused, LoginNeeded

TRIES = (0.2, 1.0, 2.0, 5.0, 10.0)


class Patience:
    """For one run that goes on meanwhile. `tries` None: for ever."""

    def __init__(self, tries: int | None, run_id: str) -> None:
        self._tries, self._run_id = tries, run_id
        self._failures = 0

    def renew(self) -> None:
        """Something came: the next break is the first one."""
        self._failures = 0

    def pause(self, error: HostError) -> float:
        """Seconds until the next try. Raises where another one can bring nothing."""
        if isinstance(error, FarSideError):
            raise error
        if isinstance(error, LoginNeeded | HostKeyRefused):
            again = f"The run goes on. Follow it again: holdfast logs -f -r {self._run_id}"
            raise HostError(error.message, f"{error.hint}\n{again}".strip()) from error
        if self._tries is not None and self._failures >= self._tries:
            raise error
        pause = TRIES[min(self._failures, len(TRIES) - 1)]
        self._failures += 1
        return pause
