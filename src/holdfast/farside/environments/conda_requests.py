"""Conda packages, as a build sees them: requests for the worker that solves and installs them, and what it says.

The worker (`conda_worker.py`) is a program for another Python; a request is the text for its stdin, `read_line` reads
each line that it writes. Packages are dicts, as they stand in a lock.
"""

import json
import os
import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from holdfast.farside.environments.conda_channels import Channels, plain_spec
from holdfast.farside.environments.conda_worker import package_name, without_secrets

RATTLER = "py-rattler==0.28.0"
"""What the worker's Python, from 3.10 on, needs."""
UNSATISFIABLE, CHANNEL, NETWORK, STORAGE, OTHER = "unsatisfiable", "channel", "network", "storage", "other"

_KINDS = (UNSATISFIABLE, CHANNEL, NETWORK, STORAGE, OTHER)
_PHASES = {
    "repodata": "reading the channels",
    "solve": "choosing conda packages",
    "download": "getting conda packages",
    "link": "installing conda packages",
}
_WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "conda_worker.py")
_SUBDIRS = {
    "linux-x86_64": "linux-64",
    "linux-aarch64": "linux-aarch64",
    "linux-ppc64le": "linux-ppc64le",
    "linux-s390x": "linux-s390x",
    "darwin-x86_64": "osx-64",
    "darwin-arm64": "osx-arm64",
}
_NOT_OF_PYTHON = ("python_abi", "pypy", "cpython", "python-gil", "python-freethreading", "python-jit")
_NAMES_ON_THE_INDEX = {
    "cupy-core": "cupy",
    "dask-core": "dask",
    "matplotlib-base": "matplotlib",
    "msgpack-python": "msgpack",
    "opencv": "opencv-python",
    "py-lightgbm": "lightgbm",
    "py-opencv": "opencv-python",
    "py-xgboost": "xgboost",
    "py-xgboost-cpu": "xgboost",
    "py-xgboost-gpu": "xgboost",
    "pyqt": "pyqt5",
    "pytables": "tables",
    "python-flatbuffers": "flatbuffers",
    "python-graphviz": "graphviz",
    "python-kaleido": "kaleido",
    "python-xxhash": "xxhash",
    "pytorch": "torch",
    "pytorch-cpu": "torch",
    "pytorch-gpu": "torch",
    "tensorflow-base": "tensorflow",
    "tensorflow-cpu": "tensorflow",
    "tensorflow-gpu": "tensorflow",
    "tensorflow-gpu-base": "tensorflow",
}
_VERSION = re.compile(r"\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?")

Package = Dict[str, Any]


class Prefix(NamedTuple):
    """Where packages are installed, and the path under which a run will see it, which is written into its scripts."""

    path: str
    seen_as: str


class CondaProgress(NamedTuple):
    """`total` is 0 where nothing is downloaded."""

    phase: str
    done: int
    of: int
    bytes: int
    total: int

    @property
    def text(self) -> str:
        counts = ", %d of %d" % (self.done, self.of) if self.phase in ("download", "link") else ""
        megabytes = ", %.1f of %.1f MB" % (self.bytes / 1e6, self.total / 1e6) if self.total else ""
        return _PHASES.get(self.phase, self.phase) + counts + megabytes


class CondaDone(NamedTuple):
    packages: Tuple[Package, ...]


class CondaProblem(NamedTuple):
    """`kind` is one of the words above; `message` is rattler's own reason; `spec` may be empty."""

    kind: str
    message: str
    spec: str


Answer = Union[CondaProgress, CondaDone, CondaProblem]


def worker_command(python: str) -> List[str]:
    """`python` is one that has `RATTLER`. Its stdin gets the request."""
    return [python, "-I", _WORKER]


def solve_request(
    specs: Sequence[str],
    channels: Channels,
    platform: str,
    cuda: str,
    locked: Sequence[Package],
    cache: str,
) -> str:
    """`platform` as in a lock; `cuda` is the version that the target's driver supports, or empty; `locked` are packages
    of an earlier answer, preferred wherever they still fit. In `cache` the worker has folders of its own.

    Raises ValueError where conda has no name for the platform."""
    glibc = re.search(r"-glibc([\d.]+)$", platform)
    virtual = {"glibc": glibc.group(1) if glibc else None, "cuda": cuda or None}
    request = {
        "do": "solve",
        "specs": [plain_spec(spec) for spec in specs],
        "channels": [{"name": name, "urls": list(urls)} for name, urls in channels.groups],
        "platform": subdir(platform),
        "virtual": virtual,
        "locked": list(locked),
        "priority": channels.priority,
        "cache": cache,
    }
    return _request(request, channels)


def install_request(
    packages: Sequence[Package],
    prefix: Prefix,
    channels: Channels,
    platform: str,
    cache: str,
    thorough: bool = False,
) -> str:
    """Exactly these packages into a prefix that is new. `thorough`: the contents of cached packages are checked too,
    not only that all files are there."""
    request = {
        "do": "install",
        "packages": list(packages),
        "prefix": prefix.path,
        "target_prefix": prefix.seen_as,
        "platform": subdir(platform),
        "cache": cache,
        "thorough": thorough,
    }
    return _request(request, channels)


def subdir(platform: str) -> str:
    """Conda's name: `linux-64` of `linux-x86_64-glibc2.36`. Raises ValueError."""
    found = _SUBDIRS.get("-".join(platform.split("-")[:2]))
    if found is None or (found.startswith("linux") and platform.endswith("-musl")):
        raise ValueError("there are no conda packages for %s" % platform)
    return found


def read_line(line: str) -> Optional[Answer]:
    """None for a line that the worker did not write: scripts of packages print, too."""
    try:
        said = json.loads(line)
        if "ok" in said:
            return CondaDone(tuple(dict(each) for each in said["ok"]["packages"]))
        if "error" in said:
            error = said["error"]
            kind = error["kind"] if error["kind"] in _KINDS else OTHER
            return CondaProblem(kind, without_secrets(str(error["message"])), str(error["spec"]))
        return CondaProgress(said["phase"], said["done"], said["of"], said["bytes"], said["total"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def ended_early(code: Optional[int], output: str) -> CondaProblem:
    """For a worker that ended without an answer; `code` is negative after a signal, `output` what else it wrote."""
    how = "was ended by signal %d" % -code if code is not None and code < 0 else "ended with exit code %s" % code
    lines = [line.strip() for line in output.splitlines() if line.strip() and read_line(line) is None]
    last = ": %s" % without_secrets(lines[-1]) if lines else ""
    return CondaProblem(OTHER, "the installer of conda packages %s%s" % (how, last), "")


def python_packages(packages: Sequence[Package]) -> List[str]:
    """`name==version` of those that are Python packages, by their names on a Python package index: what pip and uv take
    for installed. Versions that only conda understands are left out."""
    found = set()
    for package in packages:
        name = str(package["name"])
        needs = {package_name(each) for each in package["depends"]}
        is_python = package["noarch"] == "python" or bool(needs & {"python", "python_abi"})
        if is_python and name not in _NOT_OF_PYTHON and _VERSION.fullmatch(package["version"]):
            found.add("%s==%s" % (_NAMES_ON_THE_INDEX.get(name, name), package["version"]))
    return sorted(found)


def _request(request: Dict[str, Any], channels: Channels) -> str:
    """Secrets travel in here, on stdin, and nowhere else."""
    network = dict(channels.network, credentials=channels.credentials, secret_urls=channels.secret_urls)
    return json.dumps(dict(request, network=network))
