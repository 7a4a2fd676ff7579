"""A shell for a person in a container: in the one of a run that is alive, or in a new one of an image, with an
environment of this machine."""

import os
from typing import Any, Dict, List

from holdfast.farside.containers import docker_options
from holdfast.farside.containers.daemon import DockerClient
from holdfast.farside.containers.image_probe import SHELL, whose_words
from holdfast.farside.containers.images import Image, find, inspect
from holdfast.farside.containers.outfit import (
    Furniture,
    own_account,
    require_gpus,
    require_sources,
    shm,
    under_real_names,
)
from holdfast.farside.containers.removal import is_launcher_alive, planned
from holdfast.farside.system.harmless import pasted
from holdfast.farside.system.layout import INSIDE, Home
from holdfast.farside.system.ownership import make_private
from holdfast.farside.system.refusal import Refused

_STARTED = """command -v "$1" >/dev/null 2>&1 || [ -e "$1" ] || {
    printf 'holdfast: The image has no program `%s`.\\n' "$1" >&2
    exit 127
}
exec "$@"
"""
"""In a shell, so that what is missing is told as shells do, and not in the words of Docker's runtime."""
_TRY_PATIENCE = 60.0

Entry = Dict[str, Any]
"""`program`, and its words `before` and `after` those that say whether there is a terminal."""


def of_run(folder: str, command: Dict[str, Any]) -> Entry:
    """For a run that has a container. `command` is the script's, which has no secrets in it."""
    container = planned(folder)
    if container is None:
        raise Refused("not-ready", "The plan of the run `%s` cannot be read." % os.path.basename(folder))
    inside = os.path.join(folder, INSIDE)
    if not os.path.isdir(inside) or not is_launcher_alive(inside):
        image = container.get("known_as") or container["image"]
        raise Refused(
            "not-ready",
            "The container of the run `%s` has ended, so there is nothing to enter." % os.path.basename(folder),
            "Its files are on the machine, in %s. A shell in a new container of %s: holdfast experiment shell -t %s"
            % (command["directory"], image, pasted(command["environment"].get("HOLDFAST_TARGET", "NAME"))),
        )
    before = ["exec", "-i", "--workdir", str(command["directory"])] + _variables(command["environment"])
    return {"program": str(container["program"]), "before": before, "after": [str(container["name"])]}


def of_image(home: Home, bound: Dict[str, Any], prefix: str, variables: Dict[str, str]) -> Entry:
    """In a new container, which is gone when the shell ends, made as that of a run would be. `bound` is a plan's
    container with its holes filled, `prefix` the folder of an environment, or empty."""
    docker, wanted = DockerClient(str(bound["program"])), docker_options.parse(bound)
    daemon = docker.daemon(home)
    if inspect(docker, wanted.image) is None:
        message = "The image `%s` is not on the machine." % wanted.known_as
        raise Refused("not-ready", message, "Fetch it, on the machine: docker pull %s" % pasted(wanted.known_as))
    image = find(docker, bound, home, None)
    require_sources(wanted)
    require_gpus(wanted, docker.environment)
    way = _way(docker, daemon.gpu_ways(), image.id) if wanted.gpus else ""
    furniture = Furniture(home, daemon, own_account(), prefix)
    given = dict(furniture.variables() + docker_options.capabilities(way, image.environment))
    if prefix:
        given.update(VIRTUAL_ENV=prefix, PATH="%s/bin:%s" % (prefix, image.path))
    before = ["run", "--shm-size", shm(wanted)] + docker_options.gpus(way) + _variables(dict(given, **variables))
    before += list(wanted.options) + ["--rm", "-i", "--workdir", home.container_home(), "--entrypoint", ""]
    before += ["--label", "%s=1" % docker_options.SHELL_LABEL] + whose_words(daemon, home)
    for each in _mounts(furniture, image, wanted):
        before += docker_options.mount(each.source, each.target, each.is_writable)
    return {"program": str(bound["program"]), "before": before, "after": [image.id]}


def nothing_but(image: str) -> Dict[str, Any]:
    """As a plan's container, where there is no target that says more."""
    return {
        "program": "docker",
        "image": image,
        "is_exact": True,
        "known_as": image,
        "gpus": None,
        "options": ["--network", "host"],
        "shm": None,
        "volumes": [],
        "share": "",
        "name": "",
        "labels": {},
        "python": None,
        "file": "",
    }


def become(entry: Entry, words: List[str], has_terminal: bool) -> None:
    """Never returns, unless the program is not there."""
    docker = DockerClient(str(entry["program"]))
    argv = list(entry["before"]) + (["-t"] if has_terminal else []) + list(entry["after"])
    argv += [SHELL, "-c", _STARTED, "sh"] + words if words else [SHELL, "-i"]
    argv = docker.argv(argv)
    os.execvpe(argv[0], argv, docker.environment)  # noqa: S606 - there is no shell on purpose


def _way(docker: DockerClient, ways: List[str], image: str) -> str:
    """The first that works: a person in the shell cannot be asked to try again."""
    for way in ways[:-1]:
        words = (
            ["run", "--rm", "--network", "none"] + docker_options.gpus(way) + ["--entrypoint", SHELL, image, "-c", ":"]
        )
        if docker.call(words, _TRY_PATIENCE).is_good:
            return way
    return ways[-1]


def _mounts(furniture: Furniture, image: Image, wanted: docker_options.WantedContainer) -> List[docker_options.Volume]:
    home = furniture.home
    make_private(home.container_home())
    accounts = os.path.join(home.images(), image.short)
    make_private(accounts)
    return under_real_names(furniture.folders()) + furniture.accounts(image, accounts) + list(wanted.volumes)


def _variables(variables: Dict[str, str]) -> List[str]:
    return [word for name, value in sorted(variables.items()) for word in ("-e", "%s=%s" % (name, value))]
