"""What a run asks of the GPUs: `plan["gpu"]` as it arrives."""

from typing import Any, Dict, NamedTuple, Optional, Union

ALL = "all"
QUIET_AFTER = 600.0


class GpuRequest(NamedTuple):
    """`gpus` None: what the script sees is left alone, and watched. `asked`: the run is meant to use one. `by` says
    where that is written, for people; empty where it is not. Memory in bytes, times in seconds."""

    gpus: Optional[Union[int, str]] = None
    require: bool = False
    min_memory: Optional[int] = None
    stop_if_idle: Optional[float] = None
    quiet_after: Optional[float] = QUIET_AFTER
    asked: bool = False
    by: str = ""

    @property
    def is_leasing(self) -> bool:
        return self.gpus is not None and self.gpus != 0


def parse(found: Optional[Dict[str, Any]]) -> GpuRequest:
    """Of a plan that was made before there were such requests: one that asks for nothing."""
    known = {} if found is None else {name: found[name] for name in GpuRequest._fields if name in found}
    return GpuRequest(**known)
