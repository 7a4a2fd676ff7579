"""What a run runs, when everything about it is known."""

from typing import Any, Dict, List, NamedTuple, Optional


class RunCommand(NamedTuple):
    """An argv; `python` is the one whose packages it uses, `environment` has secrets. `prefix` is the folder of a
    managed environment, empty for the machine's or image's own Python, which then is described with a view to `gpus`.
    `share` and what follows are for a container."""

    argv: List[str]
    environment: Dict[str, str]
    directory: str
    python: str
    prefix: str
    share: str
    grace: float
    gpus: Optional[Dict[str, Any]]
    gets_gpus: bool = False
    must_use_gpu: bool = False
