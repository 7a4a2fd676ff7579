"""What a run was given beside the files of its snapshot."""

from __future__ import annotations

from holdfast.frozen import dataclass


@dataclass(frozen=True)
class GoneOnFrom:
    """The run whose files a run began with: those at `path`, or all."""

    run_id: str
    path: str = ""

    def __str__(self) -> str:
        return f"{self.run_id}:{self.path}" if self.path else self.run_id
