"""How the table of lies runs: each case has its own simulated machine, project, Python and, over SSH, server. Several
run at once, because they mostly wait."""

from __future__ import annotations

import contextlib
import json
import platform
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit.accounts import Account
from kit.boxes import Boxes
from kit.docker.daemon import GROUP, Daemon
from kit.docker.gpus import offered
from kit.docker.images import PYTHON
from kit.fatbins import cuda_library
from kit.gpu_cases import CASES, CONTAINED, Case, watching
from kit.nvml import Simulated
from kit.sshd import Alias, Client, Options

ENVIRONMENTS = Path(__file__).resolve().parents[1] / "cases" / "findings"
RECORDED = "3.11"
"""The Python whose environments were recorded there, on the machine X86_64."""
AT_ONCE = 5
"""Runs of one product."""
PATIENCE = 480.0
_USED = ("used", "partly-used")
_ACCUSING = ("not-used", "partly-used", "not-available")
_TARGET = "box"

Command = Callable[[Sequence[str], Path, Mapping[str, str]], "subprocess.CompletedProcess[str]"]


@dataclass(frozen=True)
class Outcome:
    """What a run's journal says. `seconds` are from the script's end to the verdict; `problem` is set if there is
    none."""

    case: str
    state: str = ""
    reason: str = ""
    used: tuple[int, ...] = ()
    sentence: str = ""
    remedy: str = ""
    seconds: float = 0.0
    problem: str = ""

    @property
    def is_accused(self) -> bool:
        return self.state in _ACCUSING

    def fits(self, case: Case, product: str) -> bool:
        expected = case.expected_on(product)
        return (self.state, self.reason, self.used) == (expected.state, expected.reason, expected.used)


@dataclass(frozen=True)
class Ground:
    """Where the table runs. Every user can enter `folder`; `command` runs `holdfast WORDS` in a project with these
    variables added, with Holdfast's folder in `home`."""

    folder: Path
    command: Command
    home: Path
    daemon: Daemon | None = None
    boxes: Boxes | None = None


@dataclass(frozen=True)
class _Prepared:
    case: Case
    project: Path
    variables: Mapping[str, str]


def play(grounds: Mapping[str, Ground], cases: Sequence[Case] = CASES) -> dict[str, dict[str, Outcome]]:
    """The outcomes by product and name. Products run at the same time; the longest cases begin first."""
    with ThreadPoolExecutor(len(grounds)) as workers:
        found = {product: workers.submit(_play, product, ground, cases) for product, ground in grounds.items()}
    return {product: each.result() for product, each in found.items()}


def _play(product: str, ground: Ground, cases: Sequence[Case]) -> dict[str, Outcome]:
    chosen = [each for each in cases if product in each.products]
    with contextlib.ExitStack() as closing:
        prepare = _Preparing(product, ground, closing)
        waiting = [prepare(each) for each in sorted(chosen, key=lambda case: not case.is_long)]
        with ThreadPoolExecutor(AT_ONCE) as workers:
            done = list(workers.map(lambda each: _run(each, ground.command), waiting))
    return {each.case: each for each in done}


class _Preparing:
    """Makes what each case of one product needs. What all have: an account and a key, and an empty Python."""

    def __init__(self, product: str, ground: Ground, closing: contextlib.ExitStack) -> None:
        self._product, self._ground, self._closing = product, ground, closing
        self._folder = ground.folder / product
        self._folder.mkdir()
        self._python = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin") or ""
        self._login = _Login(ground.boxes, product in CONTAINED) if product.startswith("remote") else None
        asked = [self._python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        self._version = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()

    def __call__(self, case: Case) -> _Prepared:
        folder = self._folder / "".join(each if each.isalnum() else "-" for each in case.name)
        gpus = _machine(folder / "gpus", case)
        environment = self._environment(folder / "environment", case)
        context: dict[str, str] = dict(gpus.environment)
        if self._product in CONTAINED:
            assert self._ground.daemon is not None
            context.update(self._ground.daemon.environment)
            self._closing.enter_context(offered(self._ground.daemon, gpus, folder))
        lines = [f"type: {self._product}"]
        if self._login is not None:
            address, context = self._login.server(folder.name, context)
            lines += address
        lines += ["userManagedEnvironment: true", f"pythonLocation: {environment}/bin/python"]
        if self._product in CONTAINED:
            volumes = ["volumes:", f"  - {environment}:{environment}", watching(self._home())]
            lines += [f"baseDockerImage: {PYTHON}", *volumes, *case.container]
        name = "%s%d" % (self._product, CASES.index(case))  # runs and their containers are named after it and the time
        return _Prepared(case, _project(folder / name, case, self._product, lines), context)

    def _home(self) -> Path:
        """Holdfast's folder on the machine of the runs."""
        return self._ground.home if self._login is None else self._login.home

    def _environment(self, prefix: Path, case: Case) -> Path:
        """A virtual environment with frameworks, for this machine and for the image, whose system is the same."""
        recorded = ENVIRONMENTS / case.environment
        site = f"lib/python{self._version}/site-packages"
        (prefix / site).mkdir(parents=True)
        (prefix / "bin").mkdir()
        (prefix / "bin" / "python").symlink_to(self._python)
        (prefix / "pyvenv.cfg").write_text(f"home = {Path(self._python).parent}\n")
        if not case.environment:
            return prefix
        of_recording = f"lib/python{RECORDED}/site-packages"
        shutil.copytree(recorded / "prefix" / of_recording, prefix / site, dirs_exist_ok=True)
        for tags in prefix.glob(f"{site}/*.dist-info/WHEEL"):
            here = f"cp{self._version.replace('.', '')}"
            tags.write_text(tags.read_text().replace("cp311", here).replace("x86_64", platform.machine()))
        described = recorded / "libraries.json"
        for path, row in json.loads(described.read_text() if described.exists() else "{}").items():
            library = prefix / path.replace(of_recording, site)
            library.parent.mkdir(parents=True, exist_ok=True)
            library.write_bytes(cuda_library(row["code"], fatbins=3))
        return prefix


class _Login:
    """One account, behind a server for each machine: the server decides what its sessions see of the machine."""

    def __init__(self, boxes: Boxes | None, uses_docker: bool) -> None:
        assert boxes is not None
        self._boxes = boxes
        self._account: Account = boxes.account()
        self._client: Client = boxes.client()
        self._key = self._client.make_key()
        self._account.authorize(self._key.with_name(f"{self._key.name}.pub").read_text())
        if uses_docker:
            self._account.join(GROUP)

    @property
    def home(self) -> Path:
        """Holdfast's folder of the account."""
        return self._account.home / ".holdfast"

    def server(self, name: str, environment: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        """The lines of a target, and what the command needs to reach it."""
        server = self._boxes.server(Options(environment=environment))
        self._client.know(Alias(name, server.port, self._account.name, self._key))
        self._client.trust(server)
        lines = [f"address: 127.0.0.1:{server.port}", f"username: {self._account.name}", f"privateKey: {self._key}"]
        return lines, self._client.environment


def _machine(folder: Path, case: Case) -> Simulated:
    """With the lines that a user writes about it."""
    made = Simulated(folder, case.devices)
    made.driver, made.cuda = case.driver
    made.write()
    folder.chmod(0o777)
    happenings = Path(f"{made.state}.processes")
    happenings.touch()
    happenings.chmod(0o666)
    return made


def _project(folder: Path, case: Case, product: str, lines: Sequence[str]) -> Path:
    settings = [f"Target: {_TARGET}", "Framework: Python"]
    if case.variables:
        settings += ["EnvironmentVariables:", *(f'  {name}: "{value}"' for name, value in case.variables.items())]
    (folder / "aml_config").mkdir(parents=True)
    for name, text in (("compute", lines), ("runconfig", settings)):
        (folder / "aml_config" / f"{_TARGET}.{name}").write_text("".join(f"{line}\n" for line in text))
    (folder / "train.py").write_text(case.text(product))
    return folder


def _run(prepared: _Prepared, command: Command) -> Outcome:
    case = prepared.case
    try:
        done = command(["submit", "-c", _TARGET, *case.options, "train.py"], prepared.project, prepared.variables)
    except subprocess.TimeoutExpired:
        return Outcome(case.name, problem=f"it had not ended after {PATIENCE:.0f} s")
    events = {event["e"]: event for event in reversed(list(_journal(prepared.project)))}
    said = events.get("gpu")
    if said is None:
        return Outcome(case.name, problem=f"there is no verdict; exit code {done.returncode}: {done.stderr[-2000:]}")
    end = events.get("exited")
    return Outcome(
        case.name,
        state=said["state"],
        reason=said["reason"],
        used=tuple(_used(said)),
        sentence=said["sentence"],
        remedy=said["remedy"],
        seconds=said["t"] - end["t"] if end is not None else 0.0,
        problem="" if end is not None else f"the script never ran: {done.stderr[-2000:]}",
    )


def _used(said: dict[str, Any]) -> Iterator[int]:
    if said["state"] in _USED:
        yield from (each["number"] for each in said["devices"] if each["first_use"] is not None)


def _journal(project: Path) -> Iterator[dict[str, Any]]:
    """As it was fetched."""
    for path in project.glob(".holdfast/runs/*/journal.jsonl"):
        for line in path.read_text().splitlines():
            yield json.loads(line)
