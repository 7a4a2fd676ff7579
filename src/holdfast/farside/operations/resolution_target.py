"""What the choice of packages for this machine depends on: its platform, the Python that a build here would take,
and whether there is such an environment already."""

import os
from typing import Any, Dict, List, Optional

from holdfast.farside.environments import interpreters
from holdfast.farside.environments.built_environment import is_whole
from holdfast.farside.environments.find import Known
from holdfast.farside.environments.installed import find_python
from holdfast.farside.environments.interpreters import Interpreter, satisfies
from holdfast.farside.environments.locks import Lock, is_lock, minor, note_path, read_locks
from holdfast.farside.environments.place import BuildPlace
from holdfast.farside.machine import gpus
from holdfast.farside.system.children import inherited_environment
from holdfast.farside.system.layout import Home
from holdfast.farside.system.refusal import Refused

Message = Dict[str, Any]


def describe(home: Home, message: Message) -> Dict[str, Any]:
    """`python` is the spec's pin or None, `location` the target's own Python, `spec` the spec's digest, `locks` those
    known for it; `exact`: the first of them is what is wanted; `anew`: none of them is. Answers the `lock` that a build
    here would take and whether it is `built`; where there is none, the `driver` of the GPUs, for which packages are
    chosen too. `python` is None where this machine has none that fits, and `found` tells what it has. With a
    `container` all of it is about the image."""
    place, exact = _place(home, message.get("container")), bool(message.get("exact"))
    platform = place.platform
    near = [lock for lock in message["locks"] if is_lock(lock)]
    if exact and (not near or near[0]["platform"] != platform):
        about = (near[0]["platform"] if near else "another machine", place.words, platform)
        raise Refused("preparation", "The environment that is wanted was made for %s, and %s is %s." % about)
    pin = str(near[0]["python"] if exact else message.get("python") or "")
    report = gpus.ask(inherited_environment())
    if message.get("container") is not None and not message["container"].get("gpus"):
        report = gpus.no_driver()
    looked = Known(home, {"python": pin}, report, place)
    known = near[:1] if exact else [lock for lock in near + read_locks(home, message["spec"]) if looked.fits(lock)]
    location = str(message.get("location") or "")
    found = place.pythons() if pin else []
    if exact and not place.tag:  # the other run may have had what is active here
        found = _active(location or None) + found
    if pin:
        python = _chosen(place, pin, known, found)
    else:
        python = place.own(location) if place.tag else _own(location or None)
    lock = _lock_for(python, [] if message.get("anew") else known)
    return {
        "platform": platform,
        "python": None if python is None else [python.path, python.version],
        "found": interpreters.shown(found),
        "driver": report["driver"],
        "lock": lock,
        "built": lock is not None
        and python is not None
        and _is_built(home, lock, place.noted_as(pin, location if place.tag else python.path)),
    }


def _place(home: Home, container: Optional[Dict[str, Any]]) -> BuildPlace:
    if container is None:
        return BuildPlace(home)
    from holdfast.farside.containers.images import place_asked

    return place_asked(home, container)


def _chosen(place: BuildPlace, pin: str, known: List[Lock], found: List[Interpreter]) -> Optional[Interpreter]:
    """As a build chooses: rather the Python that packages were chosen for before."""
    for lock in known:
        same = place.choose(minor(lock["python"]), found)
        if same is not None and satisfies(same.version, pin):
            return same
    return place.choose(pin, found)


def _own(location: Optional[str]) -> Interpreter:
    if location and os.sep in location and not os.path.isabs(os.path.expanduser(location)):
        message = "`pythonLocation: %s` lies among the files of a run, so it cannot be asked before there is one."
        raise Refused("preparation", message % location, "Name a Python by its whole path, or pin one in the spec.")
    path = find_python(location, "/")
    version = interpreters.versions_of([path], inherited_environment())[path]
    if version is None:
        raise Refused("preparation", "The Python `%s` does not start." % path)
    return Interpreter(path, version)


def _active(location: Optional[str]) -> List[Interpreter]:
    try:
        found = _own(location)
    except Refused:
        return []
    return [found]


def _lock_for(python: Optional[Interpreter], known: List[Lock]) -> Optional[Lock]:
    fitting = [lock for lock in known if python is not None and minor(lock["python"]) == minor(python.version)]
    return fitting[0] if fitting else None


def _is_built(home: Home, lock: Lock, wanted: str) -> bool:
    try:
        with open(note_path(home, lock, wanted)) as source:
            return is_whole(home.environment(source.read().strip()))
    except (OSError, Refused):
        return False
