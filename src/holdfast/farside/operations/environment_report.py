"""Whether what is installed here is right for this machine: of the environment that a plan means, or of the user's own
Python. Read from the packages' files; none of them is imported."""

import json
import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from holdfast.farside.environments.build_findings import judge
from holdfast.farside.environments.built_environment import read_mark
from holdfast.farside.environments.drivers import machine_of
from holdfast.farside.environments.find import Known
from holdfast.farside.environments.frameworks import EnvironmentContents as Contents
from holdfast.farside.environments.frameworks import read_environment
from holdfast.farside.environments.installed import find_python, lines
from holdfast.farside.environments.place import BuildPlace
from holdfast.farside.environments.platforms import build_name, platform_name
from holdfast.farside.machine import gpus
from holdfast.farside.system.bound_plan import bind, holes
from holdfast.farside.system.children import CannotStart, inherited_environment
from holdfast.farside.system.layout import Home
from holdfast.farside.system.programs import Program, collect
from holdfast.farside.system.refusal import Refused

PATIENCE = 10.0
"""Seconds for a Python to say where it looks for packages."""
_QUESTION = "import json, sys; print(json.dumps(['%d.%d.%d' % sys.version_info[:3], sys.prefix, sys.path]))"

Message = Dict[str, Any]


class PackageLocation(NamedTuple):
    """Where packages are: `environment` is empty for the user's own Python. `folders` None: the prefix's own."""

    environment: str
    prefix: str
    python: str
    folders: Optional[List[str]] = None
    platform: str = ""


def checked(home: Home, message: Message) -> Dict[str, Any]:
    """Of the environment that `plan` means, or without one of the Python `python`. `gpu`: one is wanted; where the
    machine has one it is wanted in any case."""
    report = gpus.ask(inherited_environment())
    wants_gpu = bool(message.get("gpu")) or bool(report["devices"])
    if message.get("container") is not None:
        report = _given(message["container"], report)
    place = _planned(home, message, report) if message.get("plan") is not None else _own(message)
    about = {"gpus": [str(each.get("name") or "a GPU") for each in report["devices"]], "driver": report["driver"]}
    about.update(cuda=report["cuda"], wants_gpu=wants_gpu, state=report["state"], problem=report["problem"])
    if place is None:
        return dict(about, is_there=False)
    contents = read_environment(place.prefix, place.folders)
    machine = machine_of(report, place.platform or platform_name(), place.python)
    rows = [list(each) for each in judge(contents.packages, contents.builds, machine, wants_gpu)]
    what = {"is_there": True, "environment": place.environment, "path": place.prefix, "python": place.python}
    return dict(about, findings=rows, packages=len(lines(contents.packages)), frameworks=_builds(contents), **what)


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


def _place(home: Home, container: Optional[Dict[str, Any]]) -> Optional[BuildPlace]:
    if container is None:
        return None
    from holdfast.farside.containers.images import place_asked

    return place_asked(home, container)


def _planned(home: Home, message: Message, report: gpus.Report) -> Optional[PackageLocation]:
    name = find(home, message, report)
    if not name:
        return None
    path = home.environment(name)
    mark = read_mark(path)
    return PackageLocation(name, path, mark.get("python", ""), None, str(mark.get("platform", "")))


def _own(message: Message) -> PackageLocation:
    """It is started once, to say where it looks: that is decided by more than its folder."""
    if message.get("container") is not None:
        image = message["container"].get("known_as") or message["container"]["image"]
        raise Refused("refused", "The target runs on the Python of the image `%s` as it is: see there." % image)
    path = find_python(message.get("python"), os.path.expanduser("~"))
    try:
        asked = Program([path, "-c", _QUESTION], inherited_environment())
    except CannotStart as problem:
        raise Refused("cannot-start", str(problem))
    collect([asked], PATIENCE)
    try:
        version, prefix, folders = json.loads(asked.text().strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise Refused("cannot-start", "The Python `%s` does not say where it looks for packages." % path)
    return PackageLocation("", str(prefix), str(version), _folders(folders))


def _folders(said: Sequence[Any]) -> List[str]:
    return [str(each) for each in said if each and os.path.isdir(str(each))]


def _builds(contents: Contents) -> List[List[Any]]:
    return [[each.framework, each.version, each.cuda, each.is_cpu] for each in contents.builds]
