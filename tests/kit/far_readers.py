"""The readers of the far side, each with something valid to read: for `kit.fuzzing`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from holdfast.farside.containers import daemon, image_probe, images, launcher_words, outcome
from holdfast.farside.engines import direct, owners
from holdfast.farside.environments import conda_build, conda_channels, frameworks, installer_errors, locks, settings
from holdfast.farside.environments.build_findings import looked_at
from holdfast.farside.environments.fatbin import read_fatbins
from holdfast.farside.environments.user_python import beside
from holdfast.farside.gpu.gpu_facts import NOTHING, End, as_json
from holdfast.farside.gpu.judge import verdict
from holdfast.farside.gpu.lease import registry
from holdfast.farside.machine import gpus, mounts, pythons
from holdfast.farside.operations import environment_list, known_runs, leftover_containers, shells, sweep
from holdfast.farside.operations.subscription import subscribe
from holdfast.farside.run import liveness, run_start
from holdfast.farside.run.run_files import take_secrets
from holdfast.farside.system import processes, unix_sockets
from holdfast.farside.system.digests import prefix_checksum as prefix_checksum
from holdfast.farside.system.files import read_json, read_record
from holdfast.farside.system.layout import Home
from holdfast.farside.system.programs import Finished
from holdfast.farside.system.refusal import Refused
from kit.fatbins import cuda_library
from kit.fuzzing import Reader, in_file, json_lines, json_of
from kit.last_words import LAST_WORDS
from kit.near_readers import JOURNAL, SAMPLES, SUBMISSION, T

PLAN = {
    "format": 1,
    "project": "p",
    "run": "r_1",
    "generation": "fuzzing",
    "snapshot": "a" * 64,
    "engine": {"name": "direct"},
    "environment": None,
    "container": None,
    "limits": {"grace": 1.5, "time": None},
    "stores": ["/nowhere"],
}
CREATED = {"t": T, "e": "created", "generation": "fuzzing", "boot": "b", "machine": "m", "host": "h", "farside": "f"}
DOCKER = {
    "ServerVersion": "27.1",
    "OSType": "linux",
    "Architecture": "x86_64",
    "OperatingSystem": "Debian",
    "DockerRootDir": "/var/lib/docker",
    "SecurityOptions": ["name=seccomp,profile=builtin", "name=rootless"],
    "Runtimes": {"runc": {}, "nvidia": {}},
    "DiscoveredDevices": [{"ID": "nvidia.com/gpu=all"}],
    "CDISpecDirs": ["/etc/cdi"],
}
PODMAN = {
    "host": {"os": "linux", "arch": "amd64", "ociRuntime": {"name": "crun"}, "distribution": {"distribution": "x"}}
    | {"security": {"rootless": True, "selinuxEnabled": False}},
    "version": {"Version": "5.0"},
    "store": {"graphRoot": "/r"},
}
IMAGE = [{"Id": "sha256:ab", "Os": "linux", "Architecture": "amd64", "Config": {"Env": ["PATH=/bin", "A=b"]}}]
INSPECTED = [
    {
        "Name": "/x",
        "Created": "2026-01-02T03:04:05.6+02:00",
        "State": {"Status": "exited"},
        "Config": {"Image": "i", "Labels": {"holdfast.run": "r_1", "holdfast.project": "p"}},
    }
]
REPORT = {"state": "ok", "problem": "", "code": None, "driver": "550.1", "cuda": "12.4"} | {
    "devices": [{"index": 0, "state": "ok", "name": "K80", "uuid": "GPU-1", "capability": [8, 0], "memory_total": 9}]
}
LOCK = locks.make_lock("s", "linux-x86_64-glibc2.36", "3.11.2", "a==1\n", conda=[{"url": "u", "sha256": "s"}])
SAID = (
    {"phase": "downloading", "done": 1, "of": 2, "bytes": 3, "total": 4},
    {"ok": {"packages": [{"name": "a", "version": "1", "depends": ["python"], "noarch": "python"}]}},
    {"error": {"kind": "unknown", "message": "m", "spec": "s"}},
)
LEASES = b"""Num RefCount Protocol Flags Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 1 @holdfast-gpu/GPU-1
0000000000000000: 00000002 00000000 00010000 0001 01 1 @holdfast-gpu-of/0a0b0c0d/77/r_1
0000000000000000: 00000002 00000000 00010000 0001 01 1 @holdfast-gpu-wants/00000000000000ff-77-1-ab/GPU-1
0000000000000000: 00000002 00000000 00010000 0001 01 1 @holdfast-gpu-waits/00000000000000ff-77-ab/r_1
"""
MOUNTS = b"22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n23 22 0:5 / /a\\040b rw - nfs4 host:/x rw,vers=4\n"
TORCH = b"__version__ = '2.1.0+cu121'\ncuda: Optional[str] = '12.1'\nhip = None\n"
METADATA = b"Metadata-Version: 2.1\nName: torch\nVersion: 2.1.0\n\ntext\n"
CONDARC = b"channels: [a, https://u:p@h/t/tok/c]\ncustom_channels:\n  x: https://h\nproxy_servers:\n  http: h\n"
PIP = b"[global]\nindex-url = https://u:p@h/simple\ntrusted-host = a\n  b\n[install]\nproxy = h:1\n"
BOUND = {"directory": "/", "environment": {"A": "b"}, "python": "/p", "stores": ["/s"], "argv": ["a"]}


def _leases(data: bytes) -> object:
    return registry.present(registry.parse(unix_sockets.listed(data, b"holdfast-gpu")).tickets)


def far_readers(folder: Path) -> Iterator[Reader]:
    yield from _of_a_run(folder / "home")
    yield from _of_docker(folder)
    yield from _of_environments(folder / "e")
    report = lambda data: gpus.report_of(_program(data.decode("utf-8", "replace") + "\n"), 1.0)  # noqa: E731
    yield Reader("report of GPUs", report, [json_of(REPORT)])
    yield Reader(
        "verdict's facts", in_file(folder / "v", "gpu.json", _concluded), [json_of(as_json(NOTHING)), json_of({})]
    )
    yield Reader("verdict's samples", in_file(folder / "w", "gpu.jsonl", _concluded), [SAMPLES], "lines")
    yield Reader("leases", _leases, [LEASES], "bytes")
    yield Reader("mounts", lambda data: _mounted(data.decode("utf-8", "surrogateescape")), [MOUNTS], "bytes")
    stat = b"77 (a) b) S 1 77 77 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 1 1 18446744073709551615\n"
    look = in_file(folder / "proc" / "77", "stat", lambda path: processes.look(77, str(path.parent.parent)))
    yield Reader("stat of a process", look, [stat], "bytes")
    config = in_file(folder / "py", "pyvenv.cfg", _pythons)
    yield Reader(
        "pyvenv.cfg", config, [b"home = /usr/bin\nversion = 3.11.2\ninclude-system-site-packages = true\n"], "bytes"
    )


def _of_a_run(path: Path) -> Iterator[Reader]:
    home = Home(str(path))
    home.make()
    run = Path(home.run("p", "r_1"))
    contents = {
        "plan.json": json_of(PLAN),
        "submission.json": json_of(SUBMISSION),
        "configuration.json": b"{}",
        "journal.jsonl": json_lines({**CREATED, "generation": ""}, {"t": T, "e": "started"}),
        "owner.json": json_of({"engine": "direct", "token": "fuzzing", "handle": "1", "format": 1}),
        "bound.json": json_of(BOUND),
        "cancel": json_of({"detail": "d", "grace": 1.0}),
        "secrets.json": json_of({"A": "b"}),
    }
    for name, content in contents.items():
        yield Reader(f"run's {name}", _in_run(home, run, contents, name), [content], _form(name), (Refused, OSError))
    whole = json_lines(CREATED) + JOURNAL
    yield Reader("run's whole journal", _in_run(home, run, contents, "journal.jsonl"), [whole], "lines", (Refused,))
    start = in_file(path, "settings.json", lambda path: (read_json(str(path)), direct.start_setting(home)))
    yield Reader("settings", start, [json_of({"format": 1, "start": "user-unit"})])


def _form(name: str) -> str:
    return "lines" if name.endswith("l") else "json"


def _in_run(home: Home, run: Path, contents: dict[str, bytes], name: str) -> Callable[[bytes], object]:
    def read(data: bytes) -> None:
        run.mkdir(parents=True, exist_ok=True)
        for each, content in contents.items():
            (run / each).write_bytes(data if each == name else content)
        folder = str(run)
        known_runs.known_runs(home, {})
        known_runs.known_projects(home, {})
        known_runs.records(home, {"runs": [["p", "r_1"]]})
        known_runs.objects(home, {"project": "p", "run": "r_1", "digests": ["a" * 64]})
        owners.pace(folder)
        liveness.elsewhere(folder)
        liveness.has_ended(folder)
        list(sweep._snapshots(home))
        list(environment_list._users(home, "e1"))
        pushed: list[Any] = []
        subscribe(folder, {"run": "r_1", "have": {}}).push(lambda message, body: pushed.append(message))
        for asked in (_asked(home), lambda: run_start.is_started(folder, PLAN), lambda: run_start.queued(home, PLAN)):
            _unless_refused(asked)
        liveness.adjudicate(folder)
        liveness.is_alive(folder)
        read_record(os.path.join(folder, "cancel"))
        take_secrets(folder)

    return read


def _asked(home: Home) -> Callable[[], object]:
    return lambda: shells._of_run(home, {"project": "p", "run": "r_1"})


def _unless_refused(ask: Callable[[], object]) -> None:
    with contextlib.suppress(Refused):
        ask()


def _of_docker(folder: Path) -> Iterator[Reader]:
    refusals = (Refused,)
    home = Home(str(folder / "d"))
    home.make()
    parsed = lambda data: daemon._usable(daemon.parse_info(daemon._json(_text(data)) or {}))  # noqa: E731
    yield Reader("docker info", parsed, [json_of(DOCKER), json_of(PODMAN)], "json", refusals)
    kept = in_file(folder / "d", "docker.json", lambda path: daemon._remembered(home, []))
    yield Reader("kept docker info", kept, [json_of({"format": daemon.FORMAT, "mark": [], "info": DOCKER})])
    inspected = lambda data: images.inspect(_docker(data), "i")  # noqa: E731
    yield Reader("docker image inspect", inspected, [json_of(IMAGE)], "json", refusals)
    state = lambda data: outcome.ask(_contained(folder, data))  # noqa: E731
    yield Reader("docker inspect", state, [json_of({"Status": "exited", "Dead": False, "OOMKilled": True})])
    over = lambda data: _left_over(home, _docker(data))  # noqa: E731
    yield Reader("docker inspect of all", over, [json_of(INSPECTED)], "json", refusals)
    lines = [json_of({"e": "started"}), json_of({"e": "frameworks", "names": ["x"], "findings": [["a", "b"]]})]
    yield Reader("launcher's line", launcher_words.parse_event, lines)
    last = in_file(folder / "d", "status.json", lambda path: launcher_words.read_last_words(str(path.parent)))
    yield Reader("launcher's last words", last, [json_of(LAST_WORDS)])
    probed = in_file(folder / "d", "probed.json", lambda path: images._read(str(path)))
    known = {"format": images.FORMAT, "libc": "musl", "pythons": [["a", "b", "c"]], "passwd": "x", "group": "y"}
    yield Reader("what is known of an image", probed, [json_of(known)])
    found = {"libc": "ldd (GLIBC 2.36) 2.36\n", "pythons": "python\t/usr/bin/python3\t3.11.2\t/usr/bin/python3.11\n"}
    text = "".join(
        f"mark {name}\n{value}" for name, value in {**found, "passwd": "a\n", "group": "b\n", "end": ""}.items()
    )
    look = lambda data: _probed(_text(data))  # noqa: E731
    yield Reader("what an image says", look, [text.encode()], "bytes", refusals)


def _left_over(home: Home, docker: Any) -> object:
    return list(leftover_containers._over(home, docker, leftover_containers._listed(home, docker)))


def _probed(text: str) -> object:
    found = image_probe._sections(text, "mark")
    whole = {"libc", "pythons", "passwd", "group", "end"} <= found.keys()
    return image_probe._probed("i", found) if whole else None


def _of_environments(folder: Path) -> Iterator[Reader]:
    site = folder / "lib" / "python3.11" / "site-packages"
    prefix = str(folder)
    looked = lambda path: (frameworks.read_environment(prefix), looked_at(prefix, "3.11.2", REPORT))  # noqa: E731
    for name, content in {
        "torch/version.py": TORCH,
        "torch-x.dist-info/METADATA": METADATA,
        "torch-2.1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nTag: cp311-cp311-linux_x86_64\n",
        "torch-2.1.0.dist-info/RECORD": b"torch/_C.cpython-311-x86_64-linux-gnu.so,sha256=a,1\n",
        "tensorflow/python/platform/build_info.py": b"build_info = {'is_cuda_build': True, 'cuda_version': '12.1'}\n",
        "cupy/.data/_wheel.json": b'{"cuda": "12.x"}',
    }.items():
        place = site / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        yield Reader(name, in_file(place.parent, place.name, looked), [content], "bytes")
    library = in_file(folder, "libtorch_cuda.so", lambda path: read_fatbins(str(path)))
    yield Reader("fatbins", library, [cuda_library(["sm_75", "ptx_90"], fatbins=3)], "bytes")
    yield Reader("worker's lines", lambda data: conda_build.read_line(_text(data)), [json_of(each) for each in SAID])
    explained = lambda data: installer_errors.explain(_text(data), [["torch==2", "a.txt:1"]])  # noqa: E731
    yield Reader(
        "installer's output", explained, [b"error: No solution found: Because torch==2 was not found\n"], "bytes"
    )
    home = Home(str(folder / "h"))
    home.make()
    kept = in_file(
        Path(home.locks()), "s-3.11.json", lambda path: [_with(each) for each in locks.read_locks(home, "s")]
    )
    yield Reader("host's lock", kept, [json_of(LOCK)])
    variables = {"HOME": prefix, "PIP_CONFIG_FILE": str(folder / "pip.conf")}
    channels = in_file(folder, ".condarc", lambda path: _channels(conda_channels.read_settings(variables, prefix)))
    yield Reader("condarc", channels, [CONDARC], "bytes")
    pip = in_file(folder, "pip.conf", lambda path: settings.secrets_in(settings.translated(variables)))
    yield Reader("pip.conf", pip, [PIP], "bytes")


def _channels(found: conda_channels.Settings) -> object:
    return conda_channels.channel_urls(["a", "defaults"], ["x::y"], found)


def _with(lock: locks.Lock) -> object:
    return locks.lock_digest(lock), locks.package_lines(lock["requirements"]), locks.torch_backend(lock)


def _concluded(path: Path) -> object:
    return verdict.conclude(str(path.parent), End(T, T + 9, 0, None, (), (), False))


def _mounted(text: str) -> object:
    found = mounts.parse(text)
    return mounts.mount_of("/a b/c", found), mounts.parse_quota(text, "/dev/sda1", "/")


def _pythons(path: Path) -> object:
    python = path.parent / "bin" / "python"
    return beside(str(python)), pythons.version_by_place(str(python))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _docker(data: bytes) -> Any:
    return SimpleNamespace(call=lambda words, patience: Finished(0, _text(data), ""))


def _contained(folder: Path, data: bytes) -> Any:
    return SimpleNamespace(docker=_docker(data), wanted=SimpleNamespace(name="x"), inside=os.fspath(folder))


def _program(text: str) -> Any:
    return SimpleNamespace(text=lambda: text, is_done=True)
