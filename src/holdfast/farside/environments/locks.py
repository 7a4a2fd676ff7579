"""A lock: exactly the packages that an environment has, with their hashes. Made once for a spec and a platform, and
used until the spec changes or the user asks for newer ones.

A lock that this host made is installed as it is. Of any other nothing counts but its pins, names with versions
(`pins.py`): what is installed is derived from the spec and the host's own indexes."""

import hashlib
import json
import os
import re
from typing import Any, Dict, List, Optional

from holdfast.farside.environments.pins import entries
from holdfast.farside.system.files import names_in, read_json, write_whole
from holdfast.farside.system.layout import Home, checked

FORMAT = 1

Lock = Dict[str, Any]


def make_lock(spec: str, platform: str, python: str, requirements: str, **more: Any) -> Lock:
    """`python` is a full version; `requirements` a requirements file with hashes; `more` is `conda` (packages), `cuda`
    (what the driver supports that these were chosen for), `backend` (the build of PyTorch was chosen for the driver)
    and `build` (options that decide how packages are built)."""
    lock = {"format": FORMAT, "spec": spec, "platform": platform, "python": python, "requirements": requirements}
    chosen = {"conda": more.get("conda", []), "cuda": more.get("cuda", ""), "backend": more.get("backend", "")}
    chosen["build"] = more.get("build", [])
    return dict(lock, **chosen)


def is_lock(value: Any) -> bool:
    """Whether it has all that a lock has, of the right kind, and says nothing but packages."""
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        return False
    texts = ("spec", "platform", "python", "requirements", "backend")
    if not all(isinstance(value.get(key), str) for key in texts) or not isinstance(value.get("conda"), list):
        return False
    if not isinstance(value.get("cuda", ""), str) or not isinstance(value.get("build", []), list):
        return False
    is_version = re.match(r"3\.\d+\.\d[a-z0-9]*\Z", value["python"], re.ASCII) is not None
    are_names = all(re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z", value[key]) for key in ("spec", "platform"))
    return is_version and are_names and all(map(_is_conda_package, value["conda"])) and _is_parsed(value)


def _is_parsed(lock: Lock) -> bool:
    try:
        entries(lock["requirements"])
    except ValueError:
        return False
    return True


def _is_conda_package(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(key), str) for key in ("url", "sha256"))


def torch_backend(lock: Lock) -> List[str]:
    """Arguments for the installer: builds of PyTorch that were chosen for a driver are on an index of their own."""
    found = re.search(r"^torch==\S+\+((?:cu|rocm|xpu|cpu)[\w.]*)", lock["requirements"], re.MULTILINE)
    return ["--torch-backend", found.group(1)] if found and lock["backend"] else []


def lock_digest(lock: Lock) -> str:
    """Of what gets installed: the notes that tell who asked for a package do not count."""
    packages = [[each.get("url"), each.get("sha256")] for each in lock["conda"]]
    content = [FORMAT, lock["platform"], minor(lock["python"]), without_notes(lock["requirements"]), packages]
    if lock.get("build"):
        content.append(lock["build"])
    return hashlib.sha256(json.dumps(content).encode("utf-8")).hexdigest()


def without_notes(requirements: str) -> str:
    """What counts of it. An installer gets exactly this: it may take something else for a note."""
    lines = [line.rstrip() for line in requirements.splitlines()]
    return "\n".join(line for line in lines if line and not line.lstrip().startswith("#"))


def minor(version: str) -> str:
    """`3.11` of `3.11.2`."""
    return ".".join(version.split(".")[:2])


def package_lines(requirements: str) -> List[str]:
    """The packages of a requirements file, without hashes and notes."""
    lines = without_notes(requirements).splitlines()
    return [
        line[:-1].rstrip() if line.endswith("\\") else line for line in lines if not line.startswith((" ", "\t", "-"))
    ]


def read_locks(home: Home, spec: str) -> List[Lock]:
    """Those that were made here for this spec, the last one first."""
    return _read_locks(home.locks(), spec)


def _read_locks(folder: str, spec: str) -> List[Lock]:
    names = [name for name in names_in(folder) if name.startswith(spec + "-") and name.endswith(".json")]
    paths = [os.path.join(folder, name) for name in names]
    found = [(os.path.getmtime(path), read_json(path)) for path in paths]
    return [lock for _, lock in sorted(found, key=lambda each: -each[0]) if lock and is_lock(lock)]


def write_lock(path: str, lock: Lock) -> None:
    write_whole(path, json.dumps(lock, indent=1, sort_keys=True), is_durable=True)


def keep_own(folder: str, lock: Lock) -> None:
    """Note that this machine made the lock, which is known from then on wherever it comes from. `folder` is the one of
    the home for locks."""
    write_whole(_own_path(folder, lock), "", is_durable=True)


def is_own(folder: str, lock: Lock) -> bool:
    """Whether this machine made the lock, for the spec that it names: it is as good as one that would be made now."""
    return os.path.exists(_own_path(folder, lock)) or lock in _read_locks(folder, lock["spec"])


def _own_path(folder: str, lock: Lock) -> str:
    return os.path.join(folder, "%s-%s.made" % (checked(lock["spec"]), fingerprint(lock)))


def fingerprint(lock: Lock) -> str:
    """Of all that a lock says; `lock_digest` is of what gets installed, whatever it was made for."""
    content = [lock_digest(lock), lock["python"], lock["backend"], lock.get("cuda", ""), lock["conda"]]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf-8")).hexdigest()


def note_path(home: Home, lock: Lock, wanted: str, is_exact: bool = False) -> str:
    """Where the name of the environment is noted that this lock became for its spec, with the Python that was `wanted`:
    a pin, or which one it is. `is_exact`: the lock of a run whose very environment was wanted."""
    use = "exact" if is_exact else ""
    content = "\n".join([lock_digest(lock), "conda" if lock["conda"] else wanted, lock["spec"], use])
    name = hashlib.sha256(content.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return os.path.join(home.locks(), name + ".id")


def lock_path(home: Home, spec: str, python: str, origin: Optional[Lock] = None) -> str:
    """`python` is a version such as `3.11`; `origin` the lock of another machine whose versions are preferred."""
    name = python if origin is None else "%s-%s" % (python, fingerprint(origin)[:16])
    return os.path.join(home.locks(), "%s-%s.json" % (checked(spec), name))
