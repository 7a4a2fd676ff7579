"""Packages of conda in an environment: solved and installed by py-rattler, which has an environment of its own."""

import json
import os
import re
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from holdfast.farside.environments import uv
from holdfast.farside.environments.built_environment import Environment, Known
from holdfast.farside.environments.conda_channels import Channels, channel_urls, plain_spec, read_settings
from holdfast.farside.environments.conda_worker import without_secrets
from holdfast.farside.environments.installer_errors import explain, package_name
from holdfast.farside.environments.locks import Lock
from holdfast.farside.environments.pins import conda_pins
from holdfast.farside.environments.workshop import Workshop
from holdfast.farside.system import foreign
from holdfast.farside.system.children import inherited_environment
from holdfast.farside.system.refusal import Refused

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
    of an earlier answer: what the channels have of the same name, version and build is preferred wherever it fits. In
    `cache` the worker has folders of its own.

    Raises ValueError where conda has no name for the platform."""
    glibc = re.search(r"-glibc([\d.]+)$", platform)
    virtual = {"glibc": glibc.group(1) if glibc else None, "cuda": cuda or None}
    request = {
        "do": "solve",
        "specs": [plain_spec(spec) for spec in specs],
        "channels": [{"name": name, "urls": list(urls)} for name, urls in channels.groups],
        "platform": subdir(platform),
        "virtual": virtual,
        "preferred": [list(each) for each in conda_pins(locked) if each.subdir in ("noarch", subdir(platform))],
        "priority": channels.priority,
        "cache": cache,
    }
    return _request(request, channels)


def install_request(
    packages: Sequence[Package],
    prefix: str,
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
        "prefix": prefix,
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
        said = foreign.parsed(line)
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


def about_spec(problem: CondaProblem, specs: Sequence[str]) -> CondaProblem:
    """The problem with the spec that the solver complains about: the one named first in its reason, or the only one."""
    if problem.spec or problem.kind != UNSATISFIABLE:
        return problem
    found: List[Tuple[int, str]] = []
    for spec in map(plain_spec, specs):
        place = re.search(r"(?<![\w.-])%s(?![\w.-])" % re.escape(_name(spec)), problem.message, re.IGNORECASE)
        if place:
            found.append((place.start(), spec))
    return problem._replace(spec=min(found)[1] if found else plain_spec(specs[0]) if len(specs) == 1 else "")


def _name(spec: str) -> str:
    """`numpy` of `conda-forge::numpy >=1.16`."""
    found = re.match(r"\s*([\w.-]+)", spec.rpartition("::")[2]) or re.match(r"\s*([\w.-]+)", spec)
    return found.group(1).lower() if found else spec


def python_packages(packages: Sequence[Package]) -> List[str]:
    """`name==version` of those that are Python packages, by their names on a Python package index: what pip and uv take
    for installed. Versions that only conda understands are left out."""
    found = set()
    for package in packages:
        name = str(package["name"])
        needs = {_name(each) for each in package["depends"]}
        is_python = package["noarch"] == "python" or bool(needs & {"python", "python_abi"})
        if is_python and name not in _NOT_OF_PYTHON and _VERSION.fullmatch(package["version"]):
            found.add("%s==%s" % (_NAMES_ON_THE_INDEX.get(name, name), package["version"]))
    return sorted(found)


def _request(request: Dict[str, Any], channels: Channels) -> str:
    """Secrets travel in here, on stdin, and nowhere else."""
    network = dict(channels.network, credentials=channels.credentials, secret_urls=channels.secret_urls)
    return json.dumps(dict(request, network=network))


PYTHON = ">=3.10"
"""What py-rattler needs; it is not the Python of the run."""
_EVERY = 0.5


class CondaPart:
    """`python` gives the Python that py-rattler gets; `cuda` is what the driver supports, or empty."""

    def __init__(self, known: Known, shop: Workshop, python: Callable[[], str], cuda: str) -> None:
        self._home, self._plan, self._place, self._known = known.home, known.plan, known.place, known
        self._shop, self._python, self._cuda = shop, python, cuda
        self._tool: Optional[Environment] = None
        self._told = 0.0

    def solve(self, platform: str, preferred: Optional[Lock]) -> List[Dict[str, Any]]:
        """The exact packages, Python among them. Those of the lock `preferred` are kept wherever they fit."""
        pin = self._known.pin()
        python = "python" if not pin else "python %s" % (pin + ".*" if pin[0].isdigit() else pin)
        specs = [python] + [text for text, _ in self._plan["conda"]]
        try:
            locked = preferred["conda"] if preferred else []
            request = solve_request(specs, self._channels(specs), platform, self._cuda, locked, self._cache())
        except ValueError as error:
            raise Refused("preparation", "conda has no packages for this machine: %s" % error) from None
        packages = [dict(each) for each in self._ask(request, specs).packages]
        if not any(each["name"] == "python" for each in packages):
            raise Refused("preparation", "the channels have no Python for these packages")
        return packages

    def install(self, packages: List[Dict[str, Any]], path: str, platform: str, thorough: bool) -> None:
        self._ask(install_request(packages, path, self._channels([]), platform, self._cache(), thorough))

    def tool_python(self) -> str:
        """The Python that has py-rattler; made when it is needed first."""
        if self._tool is None:
            name = RATTLER.replace("==", "-") + ("-" + self._place.tag if self._place.tag else "")
            tool = Environment(self._home, name)
            if not tool.use():
                tool.ensure(lambda: self._make_tool(tool.path), False, self._shop.owner.wait, self._shop.owner.tell)
            self._tool = tool
        return os.path.join(self._tool.path, "bin", "python")

    def leave(self) -> None:
        """The tool is used no more."""
        if self._tool is not None:
            self._tool.leave()
            self._tool = None

    def addresses(self) -> List[str]:
        """Of the channels, and whatever else may name files of this machine."""
        if not self._plan["conda"] and not self._plan["channels"]:
            return []
        found = self._channels([text for text, _ in self._plan["conda"]])
        return [url for _, urls in found.groups for url in urls] + [str(each) for each in found.network.values()]

    def _make_tool(self, path: str) -> Dict[str, Any]:
        variables, python = self._variables(), self._python()
        install = [self._plan["uv"], "pip", "install", "--python", os.path.join(path, "bin", "python"), RATTLER]
        for step in (uv.venv_command(self._plan["uv"], path, python), install):
            progress = uv.UvProgress(self._shop.phase, "fetching %s, which installs conda packages" % RATTLER)
            result = self._shop.run(step, variables, progress.hear)
            if result.code != 0:
                raise Refused("preparation", explain(result.output, []).sentence())
        said = {"packages": [RATTLER], "summary": "py-rattler, which installs conda packages"}
        return dict(said, **self._place.about(python))

    def _ask(self, request: str, specs: Sequence[str] = ()) -> CondaDone:
        answers: List[Any] = []

        def hear(line: str) -> None:
            answer = read_line(line)
            if isinstance(answer, CondaProgress):
                if time.monotonic() - self._told >= _EVERY:
                    self._told = time.monotonic()
                    self._shop.phase(answer.text)
            elif answer is not None:
                answers.append(answer)

        argv = worker_command(self.tool_python())
        result = self._shop.run(argv, self._variables(), hear, request)
        answer = answers[-1] if answers else ended_early(result.code, result.output)
        if isinstance(answer, CondaProblem):
            raise Refused("preparation", self._sentence(about_spec(answer, specs)))
        return CondaDone(answer.packages)

    def _sentence(self, problem: CondaProblem) -> str:
        name = package_name(problem.spec) if problem.spec else ""
        places = [where for text, where in self._plan["conda"] if name and package_name(text) == name]
        asked = " (asked for in %s)" % places[0] if places else ""
        return "%s%s. %s" % (problem.message.rstrip(". "), asked, _REMEDIES.get(problem.kind, ""))

    def _channels(self, specs: List[str]) -> Channels:
        environment = inherited_environment()
        return channel_urls(self._plan["channels"], specs, read_settings(environment), self._shop.secrets)

    def _cache(self) -> str:
        return os.path.join(self._home.cache(), "conda")

    def _variables(self) -> Dict[str, str]:
        return uv.variables(self._home, dict(inherited_environment()), self._place.cache)


_REMEDIES = {
    UNSATISFIABLE: ("Change the versions that contradict each other, or add the channel that has the package."),
    CHANNEL: "Check the names under `channels:`.",
    NETWORK: ("Does the machine reach the channel? Packages below `pip:` come from the Python package index."),
    STORAGE: "Make room on the machine: holdfast experiment clean --environments",
}


def python_version(packages: List[Dict[str, Any]]) -> str:
    return str(next(each["version"] for each in packages if each["name"] == "python"))
