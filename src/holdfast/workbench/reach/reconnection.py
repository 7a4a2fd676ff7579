"""How long to try again when the link to a host breaks, and when not to."""

from __future__ import annotations

from holdfast.errors import ElsewhereError, FarSideError, HostError, HostKeyRefused, LoginNeeded, Unreachable

TRIES = (0.2, 1.0, 2.0, 5.0, 10.0)


class Patience:
    """`tries` None: for ever, where a link broke; whatever else is wrong with a host is not fixed by waiting, and is
    tried a few times all the same. `advice` is added to the hint of the error that ends it. `progress`: how much has
    been reached already (bytes at home, times that a port was open)."""

    def __init__(self, tries: int | None, advice: str = "", progress: int = 0) -> None:
        self._tries, self._advice, self._most = tries, advice, progress
        self._failures = 0

    def pause(self, error: HostError, progress: int = 0) -> float:
        """Seconds until the next try, longer each time until more was reached than ever. Raises where another one can
        bring nothing."""
        if isinstance(error, FarSideError | ElsewhereError):
            raise error
        if isinstance(error, LoginNeeded | HostKeyRefused):
            raise self._given_up(error)
        if progress > self._most:
            self._most, self._failures = progress, 0
        tries = self._tries
        if not isinstance(error, Unreachable):
            tries = len(TRIES) if tries is None else min(tries, len(TRIES))
        if tries is not None and self._failures >= tries:
            raise self._given_up(error)
        pause = TRIES[min(self._failures, len(TRIES) - 1)]
        self._failures += 1
        return pause

    def _given_up(self, error: HostError) -> HostError:
        error.hint = f"{error.hint}\n{self._advice}".strip()
        return error


def run_goes_on(run_id: str) -> str:
    """What to advise a user who stops following a run."""
    return f"The run goes on. Follow it again: holdfast logs -f -r {run_id}"
