"""Building an environment on the host: once, under a lock, at its final path, marked complete last; never resumed."""

import json
import os
import re
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from holdfast.farside import kernel
from holdfast.farside.layout import BUILD_BYTE, USE_BYTE, Home
from holdfast.farside.refusal import Refused
from holdfast.farside.run.files import remove_tree

COMPLETE = ".complete"
_PROGRESS = re.compile(r"\s*(Resolved|Prepared|Installed|Downloading|Downloaded|Building|Built|Using)\b.*")

RunStep = Callable[[Dict[str, Any]], Optional[str]]
Tell = Callable[..., None]


class Environment:
    """One environment, used by this process until it ends: the shared lock keeps `clean` away from it."""

    def __init__(self, home: Home, plan: Dict[str, Any]) -> None:
        self.id = str(plan["id"])
        self.path = home.environment(self.id)
        self._steps = plan["steps"]
        os.makedirs(home.environments(), exist_ok=True)
        os.makedirs(home.cache(), exist_ok=True)
        self._lock = os.open(self.path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def ensure(self, may_build: bool, run_step: RunStep, wait: Callable[[float], None], tell: Tell) -> bool:
        """True if it was built just now. `run_step` returns the reason when a step failed; `wait` raises to give up."""
        waited = False
        while not kernel.lock(self._lock, BUILD_BYTE):
            if not waited:
                tell("phase", name="environment", text="waiting for another run that builds the same environment")
            waited = True
            wait(0.25)
        try:
            if self.is_complete():
                return False
            if not may_build:
                raise Refused("preparation", "it is not built yet, and `PrepareEnvironment` is false")
            self._build(run_step)
            return True
        finally:
            kernel.lock(self._lock, USE_BYTE, shared=True)
            os.utime(self.path + ".lock")
            kernel.unlock(self._lock, BUILD_BYTE)

    def is_complete(self) -> bool:
        return os.path.exists(os.path.join(self.path, COMPLETE))

    def packages(self) -> List[str]:
        try:
            with open(os.path.join(self.path, COMPLETE)) as source:
                return list(json.load(source)["packages"])
        except (OSError, ValueError, KeyError):
            return []

    def _build(self, run_step: RunStep) -> None:
        remove_tree(self.path)
        for step in self._steps:
            problem = run_step(step)
            if problem is not None:
                remove_tree(self.path)
                raise Refused("preparation", problem)
        mark = os.path.join(self.path, COMPLETE)
        with open(mark + ".new", "w") as target:
            json.dump({"format": 1, "built": time.time(), "packages": installed(self.path)}, target)
            target.flush()
            os.fsync(target.fileno())
        os.rename(mark + ".new", mark)


def installed(prefix: str) -> List[str]:
    """`name==version` of each package, read from the names of the metadata folders."""
    found = set()
    for library in ("lib", "lib64"):
        for python in _names(os.path.join(prefix, library)):
            if not python.startswith("python"):
                continue
            for kind in ("site-packages", "dist-packages"):
                for name in _names(os.path.join(prefix, library, python, kind)):
                    if name.endswith(".dist-info") and "-" in name:
                        package, version = name[: -len(".dist-info")].rsplit("-", 1)
                        found.add("%s==%s" % (package.replace("_", "-"), version))
    return sorted(found, key=str.lower)


def _names(folder: str) -> List[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def beside(python: str) -> Tuple[str, List[str]]:
    """The version of a Python that is the user's own, and the packages that it finds, read from its folders."""
    prefix = os.path.dirname(os.path.dirname(python))
    version, real = "", os.path.realpath(python)
    try:
        with open(os.path.join(prefix, "pyvenv.cfg")) as source:
            settings = dict(line.split("=", 1) for line in source.read().replace(" ", "").splitlines() if "=" in line)
        version = settings.get("version") or settings.get("version_info", "")
    except OSError:
        prefix = os.path.dirname(os.path.dirname(real))
    named = re.search(r"python(3\.[0-9]+)", os.path.basename(real))
    found = set(installed(prefix))
    if prefix == "/usr":
        found.update(installed("/usr/local"))
    return version or (named.group(1) if named else ""), sorted(found, key=str.lower)


def progress_line(line: str) -> Optional[str]:
    """The installer's line as a phase for people, or None if it is of no interest."""
    line = re.sub(r"\x1b\[[0-9;]*m", "", line)
    return line.strip() if _PROGRESS.match(line) else None


def failure(output: str) -> str:
    """The installer's own reason out of what it printed."""
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in output.splitlines()]
    for number, line in enumerate(lines):
        if line.lstrip().startswith(("error:", "\u00d7")):
            return _short(" ".join(each.strip().lstrip("\u00d7╰─▶│ ") for each in lines[number : number + 12]).strip())
    return _short(" ".join(line.strip() for line in lines[-3:] if line.strip())) or "the installer gave no reason"


def _short(text: str) -> str:
    """A sentence for the record; control_log has all of it."""
    return text if len(text) <= 300 else text[:300].rsplit(" ", 1)[0] + " …"
