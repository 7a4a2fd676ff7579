"""What the far side does when a target is attached, checked or detached. Apart from the agent, which starts quicker
without it."""

from typing import Any, Callable, Dict

from holdfast.farside.account import authorized_keys, login_python, logout, ownership, places, proof
from holdfast.farside.layout import Home
from holdfast.farside.store import sizes

Message = Dict[str, Any]

OPERATIONS: Dict[str, Callable[[Home, Message], Dict[str, Any]]] = {
    "settle": lambda home, message: ownership.settle(home),
    "authorize": lambda home, message: authorized_keys.authorize(message["line"]),
    "deauthorize": lambda home, message: authorized_keys.deauthorize(message["key"], int(message.get("made", 0))),
    "after-logout": lambda home, message: logout.after_logout(home),
    "start-by": lambda home, message: logout.start_by(home, message["start"]),
    "has-python": lambda home, message: login_python.has_python(message["python"]),
    "login-python": lambda home, message: login_python.login_python(),
    "prove-begin": lambda home, message: proof.begin(home, message["token"]),
    "prove-look": lambda home, message: proof.look(home, message["token"], float(message.get("patience", 0))),
    "places": lambda home, message: places.places(home),
    "sizes": lambda home, message: sizes.sizes(home),
    "purge": lambda home, message: sizes.purge(home),
    "leave": lambda home, message: sizes.leave(home, message["home"]),
}
