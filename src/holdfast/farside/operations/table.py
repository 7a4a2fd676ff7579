"""The operations of the far side: one table of what may be asked. A module is loaded when one of its operations is.

`docs/reference/protocol.md` is made from this table and from the near end of it, `hosts/client.py`."""

from typing import Any, Callable, Dict, NamedTuple, Tuple

from holdfast.farside.system.layout import Home
from holdfast.farside.system.refusal import Refused

AGENT = "agent"
MESSAGE, TELL = "message", "tell"


class Operation(NamedTuple):
    """Where it is done: a module of the far side and its function, which gets the home and then the fields in `takes`;
    or the whole MESSAGE; or that and TELL, which says meanwhile how far it is. For the AGENT's own it is a method. A
    field that may be left out ends with `?`."""

    module: str
    function: str
    takes: Tuple[str, ...] = ()
    gets: str = ""


def _agent(method: str, *takes: str) -> Operation:
    return Operation(AGENT, method, takes, MESSAGE)


def _message(module: str, function: str, *takes: str) -> Operation:
    return Operation(module, function, takes, MESSAGE)


_RUN = ("project", "run")
_PLACE = ("python?", "plan?", "container?")
_SHELL = ("words?", "project?", "run?", "environment?", "variables?", "directory?")
_CHOICE = ("spec", "locks", "python?", "location?", "exact?", "anew?", "container?")
OPERATIONS: Dict[str, Operation] = {
    "hello": _agent("hello"),
    # Sending a snapshot, starting and following a run
    "prepare": _agent("prepare", "snapshot", "base?"),
    "pack": _agent("pack", "count", "z?"),
    "put": _agent("put", "digest", "offset?", "more?", "z?"),
    "tool": _message("environments.uv", "place", "name", "digest"),
    "platform": _message("environments.uv", "platform"),
    "start": _agent("start", "plan", "submission?", "configuration?", "place?"),
    "earlier": _message("operations.earlier_run", "earlier", *_RUN, "path?"),
    "give-up": _agent("give_up", *_RUN, "generation", "detail?"),
    "cancel": _agent("cancel", *_RUN, "grace?", "detail?"),
    "follow": _agent("follow", "runs", "stay?", "alive?"),
    "list": _agent("list", *_RUN, "ended?", "roots", "from?", "alive?"),
    "stream": _agent("stream", *_RUN, "ended?", "files", "alive?"),
    "link": _message("operations.storage", "link", *_RUN, "ended?", "path", "destination"),
    "stacks": _message("operations.stacks", "stacks", *_RUN),
    "shell": _message("operations.shells", "prepare", *(_SHELL + _PLACE)),
    # What is on the host
    "known-projects": _message("operations.known_runs", "known_projects"),
    "known-runs": _message("operations.known_runs", "known_runs", "project?", "match?", "after?"),
    "records": _message("operations.known_runs", "records", "runs"),
    "objects": _agent("objects", *_RUN, "digests", "offset?"),
    "data-keep": _message("operations.data_folders", "keep", "digest", "name"),
    "data-list": Operation("operations.data_folders", "listed"),
    "data-look": _message("operations.data_folders", "look", "path"),
    "data-remove": _message("operations.data_folders", "remove", "digest"),
    "remove": _message("operations.storage", "remove", "project?", "run?", "environment?"),
    "sweep": _message("operations.sweep", "sweep", "cache?"),
    "sizes": Operation("operations.sizes", "sizes"),
    "purge": Operation("operations.sizes", "purge"),
    "leave": Operation("operations.sizes", "leave", ("home",)),
    # Environments
    "environments": Operation("environments.built_environment", "names"),
    "environment-list": _message("operations.environment_list", "listed", "sizes?"),
    "environment-show": _message("operations.environment_list", "shown", "environment"),
    "environment-check": _message("operations.environment_report", "checked", "gpu?", *_PLACE),
    "environment-target": _message("operations.environment_report", "describe", *_CHOICE),
    "environment-trim": _message("operations.environment_list", "trimmed", "older?", "keep?"),
    # The machine and the account
    "facts": _message("machine.facts", "facts", "timeout?"),
    "gpus": _message("operations.gpu_inventory", "look", "timeout?"),
    "docker": Operation("operations.docker_report", "look", (), TELL),
    "docker-try": Operation("operations.docker_report", "attempt", ("container", "pull?", "gpus?"), TELL),
    "places": Operation("operations.account", "places"),
    "settle": Operation("operations.account", "settle"),
    "authorize": Operation("operations.authorized_keys", "authorize", ("line",)),
    "deauthorize": Operation("operations.authorized_keys", "deauthorize", ("key", "made")),
    "login-python": Operation("operations.login_python", "login_python"),
    "has-python": _message("operations.login_python", "has_python", "python", "start?"),
    "after-logout": Operation("operations.logout", "after_logout"),
    "start-by": Operation("operations.logout", "start_by", ("start",)),
    "prove-begin": Operation("operations.logout", "begin", ("token",)),
    "prove-look": Operation("operations.logout", "look", ("token", "patience")),
}


def find(name: str) -> Operation:
    """Raises Refused if there is no operation of that name."""
    operation = OPERATIONS.get(name)
    if operation is None:
        raise Refused("unknown", "This far side does not know `%s`." % name)
    return operation


def run(operation: Operation, home: Home, message: Dict[str, Any], tell: Callable[[str], None]) -> Any:
    """Loads the module of the operation and calls its function. The agent's own operations are not run here."""
    module = __import__("holdfast.farside." + operation.module, fromlist=[operation.function])
    function = getattr(module, operation.function)
    if operation.gets == MESSAGE:
        return function(home, message)
    if operation.gets == TELL:
        return function(home, message, tell)
    return function(home, *[message[name] for name in operation.takes])
