"""A lock: exactly the packages that an environment has, with their hashes. Made once for a spec and a platform, and
used until the spec changes or the user asks for newer ones."""

import hashlib
import json
import os
import re
from typing import Any, Dict, Iterable, List

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
    is_version = re.match(r"3\.\d+\.\d+[a-z0-9]*\Z", value["python"]) is not None
    is_name = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z", value["platform"]) is not None
    return (
        is_version
        and is_name
        and all(map(_is_conda_package, value["conda"]))
        and not _has_options(value["requirements"])
    )


def _has_options(requirements: str) -> bool:
    """A line of its own that begins with `-`. Those that go on with the line before, as hashes do, are indented."""
    goes_on = False
    for line in requirements.splitlines():
        if line.startswith("-") or (line.lstrip().startswith("-") and not goes_on):
            return True
        goes_on = line.endswith("\\") and not line.lstrip().startswith("#")
    return False


def _is_conda_package(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(key), str) for key in ("url", "sha256"))


def is_honest(lock: Lock, asked: Iterable[str]) -> bool:
    """Whether a lock that came from elsewhere has no address but those of `asked`, the spec's own lines."""
    wanted = "\n".join(asked)
    for line in _without_notes(lock["requirements"]).splitlines():
        address = re.search(r"(?:[a-z+]+://|\$\{)\S+", line)
        if address and not line.startswith((" ", "\t")) and address.group(0).partition("#")[0] not in wanted:
            return False
    return True


def torch_backend(lock: Lock) -> List[str]:
    """Arguments for the installer: builds of PyTorch that were chosen for a driver are on an index of their own."""
    found = re.search(r"^torch==\S+\+((?:cu|rocm|xpu|cpu)[\w.]*)", lock["requirements"], re.MULTILINE)
    return ["--torch-backend", found.group(1)] if found and lock["backend"] else []


def lock_digest(lock: Lock) -> str:
    """Of what gets installed: the notes that tell who asked for a package do not count."""
    packages = [[each.get("url"), each.get("sha256")] for each in lock["conda"]]
    content = [FORMAT, lock["platform"], minor(lock["python"]), _without_notes(lock["requirements"]), packages]
    if lock.get("build"):
        content.append(lock["build"])
    return hashlib.sha256(json.dumps(content).encode("utf-8")).hexdigest()


def _without_notes(requirements: str) -> str:
    lines = [line.rstrip() for line in requirements.splitlines()]
    return "\n".join(line for line in lines if line and not line.lstrip().startswith("#"))


def minor(version: str) -> str:
    """`3.11` of `3.11.2`."""
    return ".".join(version.split(".")[:2])


def package_lines(requirements: str) -> List[str]:
    """The packages of a requirements file, without hashes and notes."""
    lines = _without_notes(requirements).splitlines()
    return [re.sub(r"\s*\\$", "", line) for line in lines if not line.startswith((" ", "\t", "-"))]


def read_locks(home: Home, spec: str) -> List[Lock]:
    """Those that were made here for this spec, the last one first."""
    folder = home.locks()
    names = [name for name in names_in(folder) if name.startswith(spec + "-") and name.endswith(".json")]
    paths = [os.path.join(folder, name) for name in names]
    found = [(os.path.getmtime(path), read_json(path)) for path in paths]
    return [lock for _, lock in sorted(found, key=lambda each: -each[0]) if lock and is_lock(lock)]


def write_lock(path: str, lock: Lock) -> None:
    write_whole(path, json.dumps(lock, indent=1, sort_keys=True), is_durable=True)


def note_path(home: Home, lock: Lock, wanted: str) -> str:
    """Where the name of the environment that this lock became is noted, for the Python that was `wanted`: a pin, or
    which one it is."""
    content = "%s\n%s" % (lock_digest(lock), "conda" if lock["conda"] else wanted)
    name = hashlib.sha256(content.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return os.path.join(home.locks(), name + ".id")


def lock_path(home: Home, spec: str, python: str) -> str:
    """`python` is a version such as `3.11`."""
    return os.path.join(home.locks(), "%s-%s.json" % (checked(spec), python))
