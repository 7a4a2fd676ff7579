"""A password or passphrase on its way to the one who asked for it: never printed, never logged, never compared."""

from __future__ import annotations


class Secret:
    """Shows as `***` wherever it is shown."""

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """For the very call that hands it over."""
        return self._value

    def __repr__(self) -> str:
        return "***"

    __str__ = __repr__

    def __reduce__(self) -> str:
        raise TypeError("a secret is not written anywhere")
