"""What the far side does when a target is attached, checked or detached. Apart from the agent, which starts quicker
without it."""

from typing import Any, Callable, Dict

from holdfast.farside import account, places, proof, sizes
from holdfast.farside.layout import Home

Message = Dict[str, Any]

OPERATIONS: Dict[str, Callable[[Home, Message], Dict[str, Any]]] = {
    "authorize": lambda home, message: account.authorize(message["line"]),
    "deauthorize": lambda home, message: account.deauthorize(message["key"]),
    "after-logout": lambda home, message: account.after_logout(home),
    "start-by": lambda home, message: account.start_by(home, message["start"]),
    "login-python": lambda home, message: account.login_python(),
    "prove-begin": lambda home, message: proof.begin(home, message["token"]),
    "prove-look": lambda home, message: proof.look(home, message["token"], float(message.get("patience", 0))),
    "places": lambda home, message: places.places(home),
    "sizes": lambda home, message: sizes.sizes(home),
    "purge": lambda home, message: sizes.purge(home),
    "leave": lambda home, message: sizes.leave(home, message["home"]),
}
