"""A plan with its holes filled, and what its run then runs. Pure."""

from typing import Any, Dict, List, NamedTuple, Optional, Set

HOLES = ("home", "run", "work", "farside", "environment", "path", "pythonpath", "python", "account", "architecture")


def bind(value: Any, facts: Dict[str, Any]) -> Any:
    """`value` with every `{"join": [...]}` made a string. Literals are never searched for holes, so what a user
    wrote stays."""
    if isinstance(value, dict):
        if set(value) == {"join"}:
            return "".join(_part(part, facts) for part in value["join"])
        return {key: bind(each, facts) for key, each in value.items()}
    if isinstance(value, list):
        return [bind(each, facts) for each in value]
    return value


def holes(value: Any) -> Set[str]:
    """The names of the holes in `value`."""
    if isinstance(value, dict):
        if set(value) == {"hole"}:
            return {str(value["hole"])}
        return {name for each in value.values() for name in holes(each)}
    if isinstance(value, list):
        return {name for each in value for name in holes(each)}
    return set()


def _part(part: Any, facts: Dict[str, Any]) -> str:
    if isinstance(part, str):
        return part
    name = part["hole"]
    if name not in HOLES:
        raise KeyError("the plan has a hole `%s` that this version does not know" % name)
    return str(facts[name])


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
