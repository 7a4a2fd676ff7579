"""A shell for a person where a run runs, in its environment: described over the connection, entered by a terminal.

The description lies in a file that only the account can read and that is removed when it is used: variables do not
stand in an argument of any process.
"""

import json
import os
import sys
import time
from typing import Any, Dict, Optional

from holdfast.farside.environments.built_environment import Environment, read_mark
from holdfast.farside.environments.user_python import find_python
from holdfast.farside.system import foreign
from holdfast.farside.system.bound_plan import bind
from holdfast.farside.system.children import inherited_environment
from holdfast.farside.system.files import names_in, read_record
from holdfast.farside.system.layout import BOUND, GENERATION, INSIDE, Home, checked
from holdfast.farside.system.ownership import make_private
from holdfast.farside.system.refusal import Refused

OLD = 3600.0


def prepare(home: Home, message: Dict[str, Any]) -> Dict[str, Any]:
    """Write down what the shell will find: of a run, of an `environment` or the one that a `plan` means, or of a target
    (`python`), these with `variables`, and in `directory` if one is named; and the `words` to run in its place, if any.
    Answers with a token."""
    if "run" in message:
        description = _of_run(home, message)
    elif "environment" in message or "plan" in message:
        description = _of_environment(home, message)
    elif message.get("container") is not None:
        description = _in_image(home, message, message["container"], "")
    else:
        account = os.path.expanduser("~")
        python = find_python(message.get("python"), account)
        description = {"directory": account, "environment": message["variables"], "python": python}
    description["words"] = [str(word) for word in message.get("words", [])]
    folder = os.path.join(home.path, "shells")
    make_private(folder)
    _forget_old(folder)
    token = os.urandom(8).hex()
    descriptor = os.open(os.path.join(folder, token), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as target:
        json.dump(description, target)
    return {"token": token, "directory": description["directory"]}


def enter(home_path: str, token: str) -> None:
    """Become the shell, or the words in its place. Never returns."""
    path = os.path.join(Home(home_path).path, "shells", checked(token))
    with open(path) as source:
        description = json.load(source)
    os.unlink(path)
    _hold(Home(home_path), description.get("held"))
    if description.get("inside") is not None:
        _become_inside(description)
    environment = dict(inherited_environment(), **description["environment"])
    if "PATH" not in description["environment"]:
        folder = os.path.dirname(description["python"])
        environment["PATH"] = folder + os.pathsep + environment.get("PATH", os.defpath)
    os.chdir(description["directory"])
    argv = description["words"] or [environment.get("SHELL") or "/bin/sh", "-i"]
    try:
        os.execvpe(argv[0], argv, environment)  # noqa: S606 - the words are the user's own
    except OSError as error:
        sys.stderr.write("holdfast: %s: %s\n" % (argv[0], error.strerror))
        sys.stderr.flush()
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)  # as shells do


def _become_inside(description: Dict[str, Any]) -> None:
    from holdfast.farside.containers.container_shell import become

    has_terminal = os.isatty(0) and os.isatty(1)
    try:
        become(description["inside"], description["words"], has_terminal)
    except Refused as refusal:
        sys.exit("holdfast: %s %s" % (refusal.message, refusal.hint))
    except OSError as error:
        sys.exit("holdfast: %s: %s" % (description["inside"]["program"], error.strerror))


def _of_run(home: Home, message: Dict[str, Any]) -> Dict[str, Any]:
    folder = home.run(message["project"], message["run"])
    if not os.path.isdir(folder):
        raise Refused("not-found", "The run `%s` is not on this host any more." % message["run"])
    command = read_record(os.path.join(folder, BOUND))
    if command is None:
        raise Refused("not-ready", "The run `%s` has not come as far as its script yet." % message["run"])
    found: Dict[str, Any] = {name: foreign.text(command.get(name)) for name in ("directory", "python")}
    variables = foreign.mapping(command.get("environment"))
    # What a person starts here is not the run's, and does not end with it.
    found["environment"] = {name: foreign.text(value) for name, value in variables.items() if name != GENERATION}
    if not found["directory"]:
        raise Refused(
            "not-ready", "The command of the run `%s` cannot be read: its `bound.json` is damaged." % message["run"]
        )
    if os.path.isdir(os.path.join(folder, INSIDE)):
        from holdfast.farside.containers.container_shell import of_run

        found["inside"] = of_run(folder, found)
    return found


def _of_environment(home: Home, message: Dict[str, Any]) -> Dict[str, Any]:
    from holdfast.farside.operations import environment_list, environment_report

    if "plan" in message:
        name = environment_report.find(home, message)
        if not name:
            raise Refused("not-built", "The environment is not built on this machine yet.")
    else:
        name = environment_list.one(home, str(message["environment"]))
    path = home.environment(name)
    if not Environment(home, name).is_complete():
        raise Refused("not-ready", "The environment `%s` is unfinished or broken." % name, "Remove it.")
    container = message.get("container") or _container_of(path)
    if container is not None:
        return _in_image(home, message, container, path)
    return {
        "directory": message.get("directory") or os.path.expanduser("~"),
        "environment": dict(message["variables"], VIRTUAL_ENV=path),
        "python": os.path.join(path, "bin", "python"),
        "held": name,
    }


def _in_image(home: Home, message: Dict[str, Any], container: Dict[str, Any], path: str) -> Dict[str, Any]:
    """In a new container of the image, with the environment if there is one."""
    from holdfast.farside.containers.container_shell import of_image

    bound = bind(container, {"account": os.path.expanduser("~")})
    inside = of_image(home, bound, path, dict(message["variables"]))
    found = {"directory": home.container_home(), "environment": {}, "python": "", "inside": inside}
    return dict(found, held=os.path.basename(path)) if path else found


def _container_of(path: str) -> Optional[Dict[str, Any]]:
    """The container in which the environment's Python works, or None if it works on this machine."""
    from holdfast.farside.containers.container_shell import nothing_but
    from holdfast.farside.environments.platforms import platform_name

    mark = read_mark(path)
    if mark.get("image"):
        return nothing_but(str(mark["image"]))
    if str(mark.get("platform") or platform_name()) == platform_name():
        return None
    message = "The environment `%s` was made for images of the kind %s, not for this machine."
    raise Refused(
        "refused",
        message % (os.path.basename(path), mark["platform"]),
        "Enter it by the target that it was made for: holdfast experiment shell -t TARGET",
    )


def _hold(home: Home, name: Optional[str]) -> None:
    """What the shell uses is not removed while it is open: the lock is this process's, which becomes the shell."""
    if name is not None and not Environment(home, name).use(also_after_exec=True):
        sys.exit("The environment `%s` was removed meanwhile." % name)


def _forget_old(folder: str) -> None:
    for name in names_in(folder):
        path = os.path.join(folder, name)
        try:
            if time.time() - os.lstat(path).st_mtime > OLD:
                os.unlink(path)
        except OSError:
            pass
