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


@dataclass(frozen=True)
class GivenData:
    """Data that a run read at `target`. `source` is what was typed. `digest` is that of the contents; `is_listing`: of
    names, sizes and times of what lies on the machine anyway, of the first files where there are many (`is_whole`
    false)."""

    target: str
    source: str
    digest: str = ""
    files: int = 0
    size: int = 0
    is_listing: bool = False
    is_whole: bool = True
