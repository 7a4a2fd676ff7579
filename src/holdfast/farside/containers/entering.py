"""A shell for a person in a container: in the one of a run that is alive, or in a new one of an image, with an
environment of this machine."""

import json
import os
from typing import Any, Dict, List, Optional

from holdfast.farside.containers import options
from holdfast.farside.containers.docker import Docker
from holdfast.farside.containers.ending import is_launcher_alive
from holdfast.farside.containers.images import Described, inspect
from holdfast.farside.containers.probing import SHELL, common_words
from holdfast.farside.layout import INSIDE, Home
from holdfast.farside.refusal import Refused

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

Entry = Dict[str, Any]
"""`program`, and its words `before` and `after` those that say whether there is a terminal."""


def of_run(folder: str, command: Dict[str, Any]) -> Optional[Entry]:
    """None for a run without a container. `command` is the script's, which has no secrets in it."""
    with open(os.path.join(folder, "plan.json")) as source:
        container = json.load(source).get("container")
    if container is None:
        return None
    inside = os.path.join(folder, INSIDE)
    if not os.path.isdir(inside) or not is_launcher_alive(inside):
        image = container.get("known_as") or container["image"]
        raise Refused(
            "not-ready",
            "The container of the run `%s` has ended, so there is nothing to enter." % os.path.basename(folder),
            "Its files are on the machine, in %s. A shell in the same image: holdfast experiment shell -t TARGET "
            "(image %s)." % (command["directory"], image),
        )
    before = ["exec", "-i", "--workdir", str(command["directory"])] + _variables(command["environment"])
    return {"program": str(container["program"]), "before": before, "after": [str(container["name"])]}


def of_image(home: Home, image: str, environment: str, variables: Dict[str, str], program: str = "docker") -> Entry:
    """In a new container, which is gone when the shell ends. `environment` is the folder of one, or empty."""
    docker = Docker(program)
    found = inspect(docker, image)
    if found is None:
        message = "The image `%s` is not on this machine." % image
        raise Refused("not-ready", message, "Fetch it there: docker pull %s" % image)
    os.makedirs(home.container_home(), exist_ok=True)
    before = ["run", "--rm", "-i", "--network", "host", "--workdir", home.container_home()]
    before += common_words(docker, home) + _mounts(docker, home, environment)
    before += _variables(dict(_own(home, found, environment), **variables))
    return {"program": program, "before": before + ["--entrypoint", ""], "after": [found.id]}


def become(entry: Entry, words: List[str], has_terminal: bool) -> None:
    """Never returns, unless the program is not there."""
    docker = Docker(str(entry["program"]))
    argv = list(entry["before"]) + (["-t"] if has_terminal else []) + list(entry["after"]) + (words or [SHELL, "-i"])
    argv = docker.argv(argv)
    os.execvpe(argv[0], argv, docker.environment)  # noqa: S606 - there is no shell on purpose


def _mounts(docker: Docker, home: Home, environment: str) -> List[str]:
    writable = [home.container_home()]
    readable = [home.pythons()] if os.path.isdir(home.pythons()) else []
    if environment:
        is_safe = not docker.daemon(home).rootless  # else modes of files count for nothing
        (writable if is_safe else readable).append(environment)
    words: List[str] = []
    for path in writable + readable:
        words += options.mount(path, path, path in writable)
    return words


def _own(home: Home, image: Described, environment: str) -> Dict[str, str]:
    path = image.environment.get("PATH") or _PATH
    own = {"HOME": home.container_home()}
    if environment:
        own.update(VIRTUAL_ENV=environment, PATH="%s/bin:%s" % (environment, path))
    return own


def _variables(variables: Dict[str, str]) -> List[str]:
    return [word for name, value in sorted(variables.items()) for word in ("-e", "%s=%s" % (name, value))]
