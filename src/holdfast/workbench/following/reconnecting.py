"""How long to try again when the link to a host breaks, and when not to."""

from __future__ import annotations

from holdfast.errors import ElsewhereError, FarSideError, HostError, HostKeyRefused, LoginNeeded, Unreachable

TRIES = (0.2, 1.0, 2.0, 5.0, 10.0)


class Patience:
    """For one run that goes on meanwhile. `tries` None: for ever, where a link broke; whatever else is wrong with a
    host is not mended by waiting, and is tried a few times all the same. `progress`: bytes that are at home."""

    def __init__(self, tries: int | None, run_id: str, progress: int = 0) -> None:
        self._tries, self._run_id, self._most = tries, run_id, progress
        self._failures = 0

    def pause(self, error: HostError, progress: int = 0) -> float:
        """Seconds until the next try, longer each time until more has come home than ever. Raises where another one can
        bring nothing."""
        if isinstance(error, FarSideError | ElsewhereError):
            raise error
        if isinstance(error, LoginNeeded | HostKeyRefused):
            raise self._given_up(error) from error
        if progress > self._most:
            self._most, self._failures = progress, 0
        tries = self._tries if isinstance(error, Unreachable) else len(TRIES)
        if tries is not None and self._failures >= tries:
            raise self._given_up(error) from error
        pause = TRIES[min(self._failures, len(TRIES) - 1)]
        self._failures += 1
        return pause

    def _given_up(self, error: HostError) -> HostError:
        again = f"The run goes on. Follow it again: holdfast logs -f -r {self._run_id}"
        return HostError(error.message, f"{error.hint}\n{again}".strip())
