"""What a run asks of the GPUs: `plan["gpu"]`, as the near side writes it and the far side reads it."""

from typing import Any, Callable, Dict, NamedTuple, Optional, Union

ALL = "all"
QUIET_AFTER = 600.0
"""Seconds without output and without GPU work after which the user is told, unless another time is asked for."""


class GpuRequest(NamedTuple):
    """`gpus` is how many, or `all`; None: what the script sees is left alone, and watched. `require`: without one
    nothing is started. Of those handed out each has `min_memory` bytes free. `asked`: the run is meant to use one; `by`
    says where that is written, for people. Times in seconds; `quiet_after` None: the user is not told."""

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

    def as_json(self) -> Dict[str, Any]:
        return dict(self._asdict())


def parse(found: Optional[Dict[str, Any]]) -> GpuRequest:
    """What `as_json` made; what is not said is as nothing is asked for. ValueError or TypeError for anything else."""
    known = {} if found is None else dict(found)
    return GpuRequest(**{name: kind(known[name]) for name, kind in _KINDS.items() if name in known})


def _optional(kind: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda found: None if found is None else kind(found)


_KINDS: Dict[str, Callable[[Any], Any]] = {
    "gpus": _optional(lambda found: ALL if found == ALL else int(found)),
    "require": bool,
    "min_memory": _optional(int),
    "stop_if_idle": _optional(float),
    "quiet_after": _optional(float),
    "asked": bool,
    "by": str,
}
