"""The facts of this machine, as far as a user without rights can see them: one dict, made when asked for.

Everything that has to be asked of another program is asked at once, and given up after a time. What could not be
learned is None. Cores and memory are what control groups leave of them.
"""

import os
import re
import sys
import time
from typing import Any, Dict, List, NamedTuple, Optional

from holdfast.farside.machine import gpus, mounts, pythons
from holdfast.farside.system.children import CannotStart, inherited_environment
from holdfast.farside.system.layout import Home
from holdfast.farside.system.programs import Program, collect

TIMEOUT = 10.0
LONGEST = 60.0

Facts = Dict[str, Any]


def facts(home: Home, message: Dict[str, Any]) -> Facts:
    """`timeout` in the message: seconds for each program that is asked, the driver of the GPUs among them."""
    timeout = min(max(float(message.get("timeout", TIMEOUT)), 0.1), LONGEST)
    environment = inherited_environment()
    mounted = mounts.read_mounts(environment)
    questions = _Questions(environment)
    found = _system()
    found["cores"] = _cores()
    found["memory"] = _memory()
    found["folder"] = mounts.folder_facts(home.path, mounted)
    temporary = mounts.folder_facts(environment.get("TMPDIR") or "/tmp", mounted)  # noqa: S108 - it is what is asked
    found["temporary"] = {name: temporary[name] for name in ("path", "noexec", "writable", "free")}
    collect(questions.programs(), timeout)
    found["pythons"] = questions.pythons()
    found["docker"] = questions.docker(timeout)
    found["folder"]["quota"] = questions.quota(found["folder"])
    found["gpus"] = questions.gpus(timeout)
    return found


class _Questions:
    """Programs that were started, by what they were asked."""

    def __init__(self, environment: Dict[str, str]) -> None:
        self._asked: Dict[str, Program] = {}
        self._refused: Dict[str, str] = {}
        self._environment = dict(environment, LC_ALL="C")
        if gpus.is_present(environment):
            try:
                self._asked["gpus"] = gpus.start(environment)
            except CannotStart as problem:
                self._refused["gpus"] = str(problem)
        self._docker = _which("docker", environment)
        if self._docker:
            self._ask("docker", [self._docker, "version", "--format", "{{.Server.Version}}"])
        quota = _which("quota", environment)
        if quota:
            self._ask("quota", [quota, "-w", "-p"])
        self._versions, unknown = pythons.split(pythons.candidates(environment))
        for path in unknown:
            self._ask("python " + path, [path, "-I", "-S", "-c", pythons.QUESTION])

    def _ask(self, name: str, argv: List[str]) -> None:
        try:
            self._asked[name] = Program(argv, self._environment)
        except CannotStart as problem:
            self._refused[name] = str(problem)

    def programs(self) -> List[Program]:
        return list(self._asked.values())

    def gpus(self, timeout: float) -> gpus.Report:
        if "gpus" in self._refused:
            return gpus.failed(self._refused["gpus"])
        asked = self._asked.get("gpus")
        return gpus.no_driver() if asked is None else gpus.report_of(asked, timeout)

    def docker(self, timeout: float) -> Facts:
        """The server's version, or why it cannot be used: no access to its socket, not running."""
        asked = self._asked.get("docker")
        if asked is None:
            return {"path": self._docker, "version": None, "problem": self._refused.get("docker", "")}
        lines = [line.strip() for line in asked.text().splitlines() if line.strip()]
        versions = [line for line in lines if re.match(r"\d+\.\d\S*\Z", line)]
        problem = "" if versions else (lines[-1] if lines else "it answered nothing")
        if not asked.is_done and not versions:
            problem = "no answer within %g s" % timeout
        return {"path": self._docker, "version": versions[0] if versions else None, "problem": problem}

    def quota(self, folder: Facts) -> Optional[Facts]:
        asked = self._asked.get("quota")
        return None if asked is None else mounts.parse_quota(asked.text(), folder["source"], folder["mount_point"])

    def pythons(self) -> List[Facts]:
        """Newest first. One that does not start, or is older than 3, is none."""
        rows = []
        for path, version in self._versions.items():
            asked = self._asked.get("python " + path)
            found = version if asked is None else (pythons.version_said(asked.text()) if asked.is_done else version)
            if found and found.startswith("3."):
                rows.append({"path": path, "version": found})
        return sorted(rows, key=lambda row: [int(each) for each in str(row["version"]).split(".")], reverse=True)


def _system() -> Facts:
    import pwd

    name = os.uname()
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = str(os.getuid())
    return {
        "time": time.time(),
        "host": name.nodename,
        "user": user,
        "system": _pretty_name() or name.sysname,
        "kernel": name.release,
        "architecture": name.machine,
        "glibc": _glibc(),
        "python": {"path": sys.executable, "version": "%d.%d.%d" % sys.version_info[:3]},
    }


def _pretty_name() -> str:
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        try:
            with open(path, encoding="utf-8", errors="replace") as source:
                named = re.search(r"^PRETTY_NAME=([\"']?)(.*)\1\s*$", source.read(), re.MULTILINE)
        except OSError:
            continue
        if named:
            return named.group(2)
    return ""


def _glibc() -> Optional[str]:
    """None on a system with another C library, which runs no ordinary wheels."""
    try:
        words = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
    except (ValueError, OSError):
        return None
    return words[1] if len(words) == 2 and words[0] == "glibc" else None


def _cores() -> Facts:
    return {"online": os.cpu_count(), "usable": len(os.sched_getaffinity(0)), "quota": limits().cores}


def _memory() -> Facts:
    found: Dict[str, int] = {}
    try:
        with open("/proc/meminfo") as source:
            for line in source:
                name, _, rest = line.partition(":")
                if name in ("MemTotal", "MemAvailable"):
                    found[name] = int(rest.split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return {"total": found.get("MemTotal"), "available": found.get("MemAvailable"), "limit": limits().memory}


def _which(program: str, environment: Dict[str, str]) -> Optional[str]:
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, program)
        if os.path.isabs(path) and os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return None


_UNLIMITED = 1 << 60


class MachineLimits(NamedTuple):
    cores: Optional[float]
    memory: Optional[int]


def limits(root: str = "/") -> MachineLimits:
    """The narrowest of this process's group and all above it; None is no limit."""
    cores: List[float] = []
    memory: List[int] = []
    for controllers, path in _groups(root).items():
        if controllers == "":
            for folder in _upwards(os.path.join(root, "sys/fs/cgroup"), path):
                cores += _quota(_read(os.path.join(folder, "cpu.max")))
                memory += _bytes(_read(os.path.join(folder, "memory.max")))
        for name in controllers.split(","):
            for folder in (
                _upwards(os.path.join(root, "sys/fs/cgroup", name), path) if name in ("cpu", "memory") else []
            ):
                period = _read(os.path.join(folder, "cpu.cfs_period_us"))
                cores += _quota("%s %s" % (_read(os.path.join(folder, "cpu.cfs_quota_us")), period))
                memory += _bytes(_read(os.path.join(folder, "memory.limit_in_bytes")))
    return MachineLimits(min(cores) if cores else None, min(memory) if memory else None)


def _groups(root: str) -> Dict[str, str]:
    """Controllers (none in version 2) and the path of this process's group."""
    found = {}
    for line in _read(os.path.join(root, "proc/self/cgroup")).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        found[controllers] = path
    return found


def _upwards(base: str, path: str) -> List[str]:
    """The group's folder and all above it; inside a container the group's own is mounted as the base."""
    parts = [each for each in path.split("/") if each and each != ".."]
    return [os.path.join(base, *parts[:count]) for count in range(len(parts), -1, -1)]


def _quota(text: str) -> List[float]:
    words = text.split()
    try:
        allowed, period = int(words[0]), int(words[1])
    except (ValueError, IndexError):
        return []  # `max`, or not there
    return [round(allowed / float(period), 2)] if allowed > 0 and period > 0 else []


def _bytes(text: str) -> List[int]:
    try:
        count = int(text)
    except ValueError:
        return []
    return [count] if 0 < count < _UNLIMITED else []


def _read(path: str) -> str:
    try:
        with open(path) as source:
            return source.read().strip()
    except OSError:
        return ""
