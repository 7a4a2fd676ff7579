"""The `docker` of this machine, called as a program: its daemon, what that can do, and where it is."""

import json
import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from holdfast.farside.containers.docker_errors import DOCKER, explain, missing
from holdfast.farside.system import foreign
from holdfast.farside.system.children import CannotStart, inherited_environment
from holdfast.farside.system.files import read_json, unlink, write_whole
from holdfast.farside.system.harmless import pasted
from holdfast.farside.system.layout import Home
from holdfast.farside.system.programs import Attended, Finished, Listener, Program
from holdfast.farside.system.refusal import Refused

PATIENCE = 60.0
"""Seconds for what a daemon does at once when it is well."""
HOOK, CDI, RUNTIME = "hook", "cdi", "runtime"
"""Ways to give GPUs: `--gpus`, a device of CDI's, the runtime `nvidia`."""
CDI_DEVICE = "nvidia.com/gpu=all"
FORMAT = 2
_SOCKET = "/var/run/docker.sock"
_PID = "docker.pid"
_SIGNS = ("/var/run/docker.pid", "/etc/docker/daemon.json", "/etc/cdi", "/var/run/cdi")
"""What changes when a daemon is restarted or learns of devices, though its socket may be the service manager's."""

Mark = List[List[Any]]


class Daemon(NamedTuple):
    """What `docker info` says. `remaps`: users of containers are others on the machine; `name` is that of its system,
    `root_dir` where images lie, `devices` those of CDI; `has_cdi`: it may know some though it lists none, as older ones
    do."""

    kind: str
    version: str
    os_type: str
    architecture: str
    name: str
    root_dir: str
    rootless: bool
    remaps: bool
    selinux: bool
    runtimes: Tuple[str, ...]
    devices: Tuple[str, ...]
    has_cdi: bool

    @property
    def is_podman(self) -> bool:
        return self.kind == "podman"

    def gpu_ways(self) -> List[str]:
        """In the order in which they are worth a try. Whether the hook is there is in no `docker info`."""
        if self.is_podman:
            return [CDI]
        ways = [HOOK]
        if any(each.startswith("nvidia.com/gpu") for each in self.devices):
            ways.append(CDI)
        if "nvidia" in self.runtimes:
            ways.append(RUNTIME)
        if self.has_cdi and CDI not in ways:
            ways.append(CDI)
        return ways


def parse_info(found: Dict[str, Any]) -> Daemon:
    """From the JSON of `docker info`, by Docker or by Podman in its place."""
    if isinstance(found.get("host"), dict):
        return _podman(found)
    options = [str(each) for each in foreign.listing(found.get("SecurityOptions"))]
    names = {part[len("name=") :] for each in options for part in each.split(",") if part.startswith("name=")}
    devices = [
        str(each.get("ID", "")) for each in foreign.listing(found.get("DiscoveredDevices")) if isinstance(each, dict)
    ]
    return Daemon(
        kind="docker",
        version=str(found.get("ServerVersion") or ""),
        os_type=str(found.get("OSType") or ""),
        architecture=str(found.get("Architecture") or ""),
        name=str(found.get("OperatingSystem") or ""),
        root_dir=str(found.get("DockerRootDir") or ""),
        rootless="rootless" in names,
        remaps="userns" in names,
        selinux="selinux" in names,
        runtimes=tuple(sorted(foreign.mapping(found.get("Runtimes")))),
        devices=tuple(devices),
        has_cdi=bool(found.get("CDISpecDirs")),
    )


def _podman(found: Dict[str, Any]) -> Daemon:
    host, security = found["host"], foreign.mapping(found["host"].get("security"))
    runtime = foreign.mapping(host.get("ociRuntime")).get("name", "")
    return Daemon(
        kind="podman",
        version=str(foreign.mapping(found.get("version")).get("Version") or ""),
        os_type=str(host.get("os") or ""),
        architecture=str(host.get("arch") or ""),
        name=str(foreign.mapping(host.get("distribution")).get("distribution") or ""),
        root_dir=str(foreign.mapping(found.get("store")).get("graphRoot") or ""),
        rootless=bool(security.get("rootless")),
        remaps=False,
        selinux=bool(security.get("selinuxEnabled")),
        runtimes=(str(runtime),),
        devices=(),
        has_cdi=True,
    )


class DockerClient:
    """`attended` for a process that must not be kept from its other duties by a daemon that does not answer."""

    def __init__(
        self, program: str = "docker", environment: Optional[Dict[str, str]] = None, attended: Optional[Attended] = None
    ) -> None:
        self.environment = dict(inherited_environment() if environment is None else environment)
        self.program = _found(program, self.environment)
        self._attended = attended
        self._socket: Optional[str] = None
        self._foreseen: Dict[Tuple[str, ...], Program] = {}

    def attended_by(self, attended: Optional[Attended]) -> "DockerClient":
        """The same, called by another process or at another time."""
        return DockerClient(self.program, self.environment, attended)

    def argv(self, arguments: Sequence[str]) -> List[str]:
        """For callers that start it in another way, in `environment`."""
        self.socket()
        return [self.program] + list(arguments)

    def call(
        self, arguments: Sequence[str], patience: float = PATIENCE, listener: Optional[Listener] = None
    ) -> Finished:
        """`listener` hears what it says as it comes. An answer that does not come in time has no code, and the program
        is gone."""
        begun = self._foreseen.pop(tuple(arguments), None)
        try:
            call = begun or self._begun(arguments)
        except CannotStart:
            raise missing(self.program) from None
        return call.answer(patience, self._attended, listener)

    def foresee(self, arguments: Sequence[str]) -> None:
        """Begin a call that will be made, so that it goes on beside other work. Whatever is wrong is told then."""
        try:
            self._foreseen[tuple(arguments)] = self._begun(arguments)
        except (CannotStart, Refused):
            pass

    def _begun(self, arguments: Sequence[str]) -> Program:
        call = Program(self.argv(arguments), self.environment, is_apart=True)
        if self._attended is not None:
            self._attended.exits.pop(call.pid, None)  # of an earlier process with this pid
        return call

    def daemon(self, home: Home) -> Daemon:
        """Asked once and kept in the home, until it is started anew. One that cannot see this machine's folders is
        refused."""
        sign = self.mark()
        known = _remembered(home, sign)
        if known is None:
            found = self._info()
            known = _usable(parse_info(found))
            _remember(home, sign, found)
        return known

    def _info(self) -> Dict[str, Any]:
        answer = self.call(["info", "--format", "{{json .}}"])
        found = _json(answer.output)
        complaints = (found or {}).get("ServerErrors")  # it ends well all the same
        if complaints:
            raise explain(Finished(1, "", "\n".join(str(each) for each in complaints)))
        if found is None:
            raise explain(answer)
        return found

    def mark(self) -> Mark:
        """Changes when the daemon restarts or serves another user."""
        looked = [self.socket() or self.program]
        return [[path] + _stamp(path) for path in looked + list(_SIGNS)]

    def started(self) -> float:
        """When the daemon was started, by the machine's clock; 0 where nothing tells, as of Podman, which has none."""
        path = self.socket()
        if not path:
            return 0.0
        # A daemon makes its socket anew, or, where the service manager holds the socket, its pid file.
        return max(_changed(path), _changed(os.path.join(os.path.dirname(path), _PID)))

    def socket(self) -> str:
        """The path of the daemon's socket; empty for Podman, which has none. A daemon elsewhere is refused."""
        if self._socket is None:
            address, origin = endpoint(self.environment)
            if not address:
                address = self._usual()
            self._socket = _path_of(address, origin)
        return self._socket

    def _usual(self) -> str:
        """If the user does not say which: the system's, or one that this user runs without root."""
        own = "/run/user/%d/docker.sock" % os.getuid()
        if not os.path.exists(_SOCKET) and os.path.exists(own):
            self.environment["DOCKER_HOST"] = "unix://" + own
            return "unix://" + own
        return "unix://" + _SOCKET if os.path.basename(self.program) == "docker" else ""


def forget(home: Home) -> None:
    """After a complaint: what is known of the daemon may be wrong by now."""
    unlink(home.docker())


def endpoint(environment: Dict[str, str]) -> Tuple[str, str]:
    """The daemon's address as `docker` itself finds it, and who says so; empty where it is the usual one."""
    if environment.get("DOCKER_HOST"):
        return environment["DOCKER_HOST"], "DOCKER_HOST"
    folder = environment.get("DOCKER_CONFIG") or os.path.join(environment.get("HOME", ""), ".docker")
    name, origin = environment.get("DOCKER_CONTEXT", ""), "DOCKER_CONTEXT"
    if not name:
        found = read_json(os.path.join(folder, "config.json")) or {}
        name, origin = str(found.get("currentContext") or ""), "the context of `docker context use`"
    if name in ("", "default"):
        return "", ""
    import hashlib

    digest = hashlib.sha256(name.encode("utf-8")).hexdigest()
    about = read_json(os.path.join(folder, "contexts", "meta", digest, "meta.json")) or {}
    address = ((about.get("Endpoints") or {}).get("docker") or {}).get("Host") or ""
    return str(address), "%s, `%s`" % (origin, name)


def _path_of(address: str, origin: str) -> str:
    scheme, _, rest = address.partition("://")
    if not address or scheme == "unix":
        return rest
    host = rest.rpartition("@")[2].partition("/")[0].partition(":")[0]
    if host in ("", "localhost", "127.0.0.1"):
        remedy = "Use the socket of a daemon on the machine itself: unset DOCKER_HOST, or docker context use default."
    else:
        remedy = (
            "Attach that machine itself: holdfast computetarget attach remotedocker --name NAME --address %s "
            "--username USER. Or use the daemon of this one: unset DOCKER_HOST; docker context use default."
            % pasted(host)
        )
    raise Refused(
        DOCKER,
        "Docker's daemon is not on the machine itself: %s says `%s`, and it could not mount the run's folder."
        % (origin, address),
        remedy,
    )


def _usable(daemon: Daemon) -> Daemon:
    if daemon.os_type and daemon.os_type != "linux":
        raise Refused(
            DOCKER,
            "Docker runs %s containers here; scripts need Linux ones." % daemon.os_type.capitalize(),
            "Switch it to Linux containers.",
        )
    if "docker desktop" in daemon.name.lower():
        raise Refused(
            DOCKER,
            "This is Docker Desktop, whose containers run in a virtual machine of their own.",
            "Use the Docker Engine of the machine: docker context use default.",
        )
    return daemon


def _found(program: str, environment: Dict[str, str]) -> str:
    """Podman stands in where there is no Docker."""
    if os.sep in program:
        return program
    for name in (program, "podman"):
        for folder in environment.get("PATH", os.defpath).split(os.pathsep):
            if folder and os.access(os.path.join(folder, name), os.X_OK):
                return os.path.join(folder, name)
    return program


def _remembered(home: Home, sign: Mark) -> Optional[Daemon]:
    found = read_json(home.docker()) or {}
    if found.get("format") != FORMAT or found.get("mark") != sign or not isinstance(found.get("info"), dict):
        return None
    return parse_info(found["info"])


def _remember(home: Home, sign: Mark, info: Dict[str, Any]) -> None:
    kept = {name: info[name] for name in _KEPT if name in info}
    try:
        write_whole(home.docker(), json.dumps({"format": FORMAT, "mark": sign, "info": kept}), 0o600)
    except OSError:
        pass  # it is asked again


_KEPT = (
    *("host", "store", "version", "SecurityOptions", "DiscoveredDevices", "ServerVersion", "OSType", "Architecture"),
    *("OperatingSystem", "DockerRootDir", "Runtimes", "CDISpecDirs"),
)


def _stamp(path: str) -> List[Any]:
    try:
        status = os.stat(path)
    except OSError:
        return []
    return [status.st_ino, status.st_ctime_ns]


def _changed(path: str) -> float:
    try:
        return os.stat(path).st_ctime
    except OSError:
        return 0.0


def _json(text: str) -> Optional[Dict[str, Any]]:
    found = foreign.parsed(text)
    return found if isinstance(found, dict) else None
