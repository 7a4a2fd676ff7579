"""A lock: exactly the packages that an environment has, with their hashes. Made once for a spec and a platform, and
used until the spec changes or somebody asks for newer ones."""

import hashlib
import json
import os
import re
from typing import Any, Dict, List, Optional

from holdfast.farside.layout import Home, checked

FORMAT = 1
KEYS = ("spec", "platform", "python", "requirements", "conda", "backend")

Lock = Dict[str, Any]


def make_lock(spec: str, platform: str, python: str, requirements: str, **more: Any) -> Lock:
    """`python` is a full version; `requirements` a requirements file with hashes; `more` is `conda` (packages) and
    `backend` (the build of PyTorch that was chosen for the driver)."""
    lock = {"format": FORMAT, "spec": spec, "platform": platform, "python": python, "requirements": requirements}
    return dict(lock, conda=more.get("conda", []), backend=more.get("backend", ""))


def is_lock(value: Any) -> bool:
    return isinstance(value, dict) and value.get("format") == FORMAT and all(key in value for key in KEYS)


def lock_digest(lock: Lock) -> str:
    """Of what gets installed: the notes that tell who asked for a package do not count."""
    packages = [[each.get("url"), each.get("sha256")] for each in lock["conda"]]
    content = [FORMAT, lock["platform"], minor(lock["python"]), without_notes(lock["requirements"]), packages]
    return hashlib.sha256(json.dumps(content).encode("utf-8")).hexdigest()


def without_notes(requirements: str) -> str:
    lines = [line.rstrip() for line in requirements.splitlines()]
    return "\n".join(line for line in lines if line and not line.lstrip().startswith("#"))


def minor(version: str) -> str:
    """`3.11` of `3.11.2`."""
    return ".".join(version.split(".")[:2])


def package_count(lock: Lock) -> int:
    return len(package_lines(lock["requirements"])) + len(lock["conda"])


def package_lines(requirements: str) -> List[str]:
    """The packages of a requirements file, without hashes and notes."""
    lines = without_notes(requirements).splitlines()
    return [re.sub(r"\s*\\$", "", line) for line in lines if not line.startswith((" ", "\t", "-"))]


def read_locks(home: Home, spec: str) -> List[Lock]:
    """Those that were made here for this spec, by whoever, the last one first."""
    folder = home.locks()
    try:
        names = [name for name in os.listdir(folder) if name.startswith(spec + "-") and name.endswith(".json")]
    except OSError:
        return []
    paths = [os.path.join(folder, name) for name in names]
    found = [(os.path.getmtime(path), _read(path)) for path in paths]
    return [lock for _, lock in sorted(found, key=lambda each: -each[0]) if lock is not None]


def _read(path: str) -> Optional[Lock]:
    try:
        with open(path) as source:
            found = json.load(source)
    except (OSError, ValueError):
        return None
    return found if is_lock(found) else None


def write_lock(path: str, lock: Lock) -> None:
    """Whole or not at all."""
    new = "%s.new-%d" % (path, os.getpid())
    with open(new, "w") as target:
        json.dump(lock, target, indent=1, sort_keys=True)
        target.flush()
        os.fsync(target.fileno())
    os.rename(new, path)


def note_path(home: Home, lock: Lock, pin: str, interpreter: str) -> str:
    """Where the name of the environment that this lock became is noted, for the Python that was asked for."""
    wanted = "conda" if lock["conda"] else pin or os.path.realpath(interpreter)
    content = "%s\n%s" % (lock_digest(lock), wanted)
    name = hashlib.sha256(content.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return os.path.join(home.locks(), name + ".id")


def lock_path(home: Home, spec: str, python: str) -> str:
    """`python` is a version such as `3.11`."""
    return os.path.join(home.locks(), "%s-%s.json" % (checked(spec), python))
