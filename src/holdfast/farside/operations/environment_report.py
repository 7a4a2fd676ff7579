"""What this host answers about environments: whether what is installed is right for it, read from the packages' files
without an import, and what a choice of packages for it depends on."""

import os
from typing import Any, Dict, List, NamedTuple, Optional

from holdfast.farside.environments.build_findings import judge
from holdfast.farside.environments.built_environment import Known, is_whole, read_mark
from holdfast.farside.environments.drivers import machine_of
from holdfast.farside.environments.frameworks import read_environment
from holdfast.farside.environments.installed import lines
from holdfast.farside.environments.locks import Lock, is_lock, minor, note_path, read_locks
from holdfast.farside.environments.place import BuildPlace, Interpreter, satisfies, version_list
from holdfast.farside.environments.platforms import build_name, platform_name
from holdfast.farside.environments.user_python import NAMES, find_python, is_script, look_at
from holdfast.farside.machine import gpus
from holdfast.farside.system.bound_plan import bind, holes
from holdfast.farside.system.children import CannotStart, inherited_environment
from holdfast.farside.system.layout import Home
from holdfast.farside.system.programs import Program, collect
from holdfast.farside.system.refusal import Refused

_PATIENCE = 10.0
"""Seconds for a script to say which Python it starts."""
_QUESTION = "import sys; print(sys.executable)"

Message = Dict[str, Any]


class PackageLocation(NamedTuple):
    """Where packages are: `environment` is empty for the user's own Python. `folders` None: the prefix's own."""

    environment: str
    prefix: str
    python: str
    folders: Optional[List[str]] = None
    platform: str = ""


def checked(home: Home, message: Message) -> Dict[str, Any]:
    """Checks the environment of `plan`, or the packages of the Python `python` if there is no plan. `gpu`: the run
    wants one, as it always does on a machine that has one."""
    report = gpus.ask(inherited_environment())
    wants_gpu = bool(message.get("gpu")) or bool(report["devices"])
    if message.get("container") is not None:
        report = _given(message["container"], report)
    place = _planned(home, message, report) if message.get("plan") is not None else _own_packages(message)
    about = {"gpus": [str(each.get("name") or "a GPU") for each in report["devices"]], "driver": report["driver"]}
    about.update(cuda=report["cuda"], wants_gpu=wants_gpu, state=report["state"], problem=report["problem"])
    if place is None:
        return dict(about, is_there=False)
    contents = read_environment(place.prefix, place.folders)
    machine = machine_of(report, place.platform or platform_name(), place.python)
    rows = [list(each) for each in judge(contents.packages, contents.builds, machine, wants_gpu)]
    builds = [[each.framework, each.version, each.cuda, each.is_cpu] for each in contents.builds]
    what = {"is_there": True, "environment": place.environment, "path": place.prefix, "python": place.python}
    return dict(about, findings=rows, packages=len(lines(contents.packages)), frameworks=builds, **what)


def find(home: Home, message: Message, report: Optional[gpus.Report] = None) -> str:
    """Which environment of this host the `plan` means; empty where it is not built. It is held as long as this process
    lives. `report` is what is known of the GPUs."""
    account = os.path.expanduser("~")
    facts = {"home": home.path, "work": account, "account": account, "architecture": build_name()}
    plan, container = message["plan"], message.get("container")
    if container is not None:
        facts["python"] = str(message.get("python") or "")
        report = _given(container, report or gpus.ask(inherited_environment()))
    elif "python" in holes(plan):
        facts["python"] = find_python(message.get("python"), account)
    known = Known(home, bind(plan, facts), report or gpus.ask(inherited_environment()), _place(home, container))
    found = known.find()
    return "" if found is None else str(found.environment.id)


def _given(container: Dict[str, Any], report: gpus.Report) -> gpus.Report:
    """What a container is given of the machine's GPUs: all or none."""
    return report if container.get("gpus") else gpus.no_driver()


def _place(home: Home, container: Optional[Dict[str, Any]]) -> BuildPlace:
    if container is None:
        return BuildPlace(home)
    from holdfast.farside.containers.images import place_asked

    return place_asked(home, container)


def _planned(home: Home, message: Message, report: gpus.Report) -> Optional[PackageLocation]:
    name = find(home, message, report)
    if not name:
        return None
    path = home.environment(name)
    mark = read_mark(path)
    return PackageLocation(name, path, mark.get("python", ""), None, str(mark.get("platform", "")))


def _own_packages(message: Message) -> PackageLocation:
    """From the files of the Python, which is not started. Only what the login itself has active may be a script that
    chooses one; it is asked which, where no project is."""
    if message.get("container") is not None:
        image = message["container"].get("known_as") or message["container"]["image"]
        raise Refused("refused", "The target runs on the Python of the image `%s` as it is: see there." % image)
    location = message.get("python")
    path = find_python(location, os.path.expanduser("~"))
    if is_script(path):
        if location is not None and location not in NAMES:
            raise Refused(
                "cannot-start",
                "`%s` is a launcher script. Checks run no program that the project names." % path,
                "Name the Python itself under `pythonLocation`, or activate its environment.",
            )
        path = _behind(path)
    found = look_at(path)
    return PackageLocation("", found.prefix, found.version, found.folders)


def _behind(script: str) -> str:
    try:
        asked = Program([script, "-I", "-c", _QUESTION], inherited_environment())
    except CannotStart as problem:
        raise Refused("cannot-start", str(problem))
    collect([asked], _PATIENCE)
    said = (asked.text().strip().splitlines() or [""])[-1]
    if not os.path.isabs(said):
        raise Refused(
            "cannot-start",
            "`%s` did not report which Python it starts." % script,
            "Set `pythonLocation` to the Python itself.",
        )
    return said


def describe(home: Home, message: Message) -> Dict[str, Any]:
    """`python` is the spec's pin or None, `location` the target's own Python, `spec` the spec's digest, `locks` those
    known for it; `exact`: the first of them is what is wanted; `anew`: none of them is. Answers the `lock` that a build
    here would take and whether it is `built`; where there is none, the `driver` of the GPUs, for which packages are
    chosen too. `python` is None where this machine has none that fits, and `found` tells what it has. With a
    `container` all of it is about the image."""
    place, exact = _place(home, message.get("container")), bool(message.get("exact"))
    platform = place.platform
    near = [lock for lock in message["locks"] if is_lock(lock) and lock["spec"] == message["spec"]]
    if exact and (not near or near[0]["platform"] != platform):
        about = (near[0]["platform"] if near else "another machine", place.words, platform)
        raise Refused("preparation", "The environment that is wanted was made for %s, and %s is %s." % about)
    pin = str(near[0]["python"] if exact else message.get("python") or "")
    report = gpus.ask(inherited_environment())
    if message.get("container") is not None and not message["container"].get("gpus"):
        report = gpus.no_driver()
    looked = Known(home, {"python": pin, "packages": "those that are asked about"}, report, place)
    known = near[:1] if exact else [lock for lock in near if looked.fits(lock)]
    if not known:  # the host's own count where the project has none
        known = [lock for lock in read_locks(home, message["spec"]) if looked.fits(lock)]
    location = str(message.get("location") or "")
    found = place.pythons() if pin else []
    if exact and not place.tag:  # the other run may have had what is active here
        found = _active(home, location or None) + found
    if pin:
        python = _chosen(place, pin, known, found)
    else:
        python = place.own(location) if place.tag else _own(home, location or None)
    lock = _lock_for(python, [] if message.get("anew") else known)
    return {
        "platform": platform,
        "python": None if python is None else [python.path, python.version],
        "found": version_list(found),
        "driver": report["driver"],
        "without_gpu": machine_of(report, platform, "").is_without_gpu,
        "lock": lock,
        "built": lock is not None
        and python is not None
        and _is_built(home, note_path(home, lock, place.noted_as(pin, location if place.tag else python.path), exact)),
    }


def _chosen(place: BuildPlace, pin: str, known: List[Lock], found: List[Interpreter]) -> Optional[Interpreter]:
    """As a build chooses: rather the Python that packages were chosen for before."""
    for lock in known:
        same = place.choose(minor(lock["python"]), found)
        if same is not None and satisfies(same.version, pin):
            return same
    return place.choose(pin, found)


def _own(home: Home, location: Optional[str]) -> Interpreter:
    if location and os.sep in location and not os.path.isabs(os.path.expanduser(location)):
        message = "`pythonLocation: %s` lies among the files of a run, so it cannot be asked before there is one."
        raise Refused("preparation", message % location, "Name a Python by its whole path, or pin one in the spec.")
    path = find_python(location, "/")
    found = BuildPlace(home).active(path)
    if not found:
        raise Refused("preparation", "The Python `%s` does not start." % path)
    return found[0]


def _active(home: Home, location: Optional[str]) -> List[Interpreter]:
    try:
        return [_own(home, location)]
    except Refused:
        return []


def _lock_for(python: Optional[Interpreter], known: List[Lock]) -> Optional[Lock]:
    fitting = [lock for lock in known if python is not None and minor(lock["python"]) == minor(python.version)]
    return fitting[0] if fitting else None


def _is_built(home: Home, note: str) -> bool:
    try:
        with open(note) as source:
            return is_whole(home.environment(source.read().strip()))
    except (OSError, Refused):
        return False
