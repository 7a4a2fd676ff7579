"""What every container promises to its script and to its client: the same on the bare machine and in an image, from the
plan to the record."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.model import Reason, Run
from holdfast.project.folder import Project
from holdfast.workbench.following.session import session_of
from holdfast.workbench.reach import events
from holdfast.workbench.reach.context import Context
from holdfast.workbench.records.cancel import cancel
from holdfast.workbench.submitting import submit as submitting
from holdfast.workbench.submitting.submit_request import SubmitRequest
from integration.docker.conftest import docker, docker_template, shared_docker  # noqa: F401 - fixtures
from integration.runs.conftest import end_what_is_left
from kit.docker.images import PYTHON
from kit.files import holding
from kit.homes import furnish
from kit.projects import project_at
from kit.waiting import wait_for

SECRET = "s3cr3t-value-äöü"
CONTAINERS = {
    "bare": "type: local\nuserManagedEnvironment: true\n",
    "docker": f"type: docker\nbaseDockerImage: {PYTHON}\nuserManagedEnvironment: true\n",
}


@dataclass(frozen=True)
class Place:
    root: Path
    context: Context

    @property
    def project(self) -> Project:
        return project_at(self.root)

    def begin(self, script: str, wait: bool = True, **request: Any) -> Run:
        (self.root / "t.py").write_text(script)
        *_, last = submitting.submit(self.project, SubmitRequest("t.py", **request), self.context, wait=wait)
        return self.read() if not wait else _ended(last)

    def read(self) -> Run:
        (run_id,) = (each.name for each in (self.root / ".holdfast" / "runs").iterdir())
        return session_of(self.project, run_id, self.context).read()

    def log(self, run: Run) -> bytes:
        return (self.root / ".holdfast" / "runs" / run.run_id / "driver_log").read_bytes()

    def far_log(self, run: Run) -> bytes:
        return next(self.context.home.glob(f"runs/*/{run.run_id}/driver_log")).read_bytes()


def _ended(event: events.Event) -> Run:
    assert isinstance(event, events.Ended)
    return event.run


@pytest.fixture(params=sorted(CONTAINERS))
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "docker":
        request.getfixturevalue("docker")  # DOCKER_HOST leads to it
    root, home = tmp_path / "project", furnish(tmp_path / "home", has_uv=False)
    (root / "aml_config").mkdir(parents=True)
    (root / "aml_config" / "local.compute").write_text(CONTAINERS[request.param])
    (root / "aml_config" / "local.runconfig").write_text("Target: local\nFramework: Python\n")
    yield Place(root, Context(home, {**os.environ, "TOKEN": SECRET}, root, tmp_path))
    end_what_is_left(home)


@pytest.mark.parametrize(
    ("script", "reason", "code", "number"),
    [
        ("pass", Reason.COMPLETED, 0, None),
        ("raise SystemExit(3)", Reason.EXIT_CODE, 3, None),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGUSR1)", Reason.SIGNAL, None, signal.SIGUSR1),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", Reason.KILLED, None, signal.SIGKILL),
    ],
    ids=["success", "code", "signal", "kill"],
)
def test_the_scripts_own_end_is_what_is_recorded(
    place: Place, script: str, reason: Reason, code: int | None, number: int | None
) -> None:
    ending = place.begin(script).ending
    assert ending is not None
    assert (ending.reason, ending.code, ending.signal) == (reason, code, number)


def test_every_byte_of_both_streams_comes_home_in_order(place: Place) -> None:
    script = """
import os
for number in range(200):
    os.write(1 + number % 2, bytes(range(256)) * 8)
os.write(1, b"no newline at the end")
"""
    run = place.begin(script)
    assert place.log(run) == bytes(range(256)) * 8 * 200 + b"no newline at the end"


def test_a_secret_reaches_the_script_and_nothing_else(place: Place) -> None:
    script = """
import os
value = os.environ["TOKEN"]
print(len(value), value)
seen = []
for each in filter(str.isdigit, os.listdir("/proc")):
    try:
        seen.append(open("/proc/%s/cmdline" % each, "rb").read())
    except (FileNotFoundError, ProcessLookupError):
        pass  # it has ended since
print(len(seen) > 0, any(value.encode() in each for each in seen))
"""
    run = place.begin(script, secrets=("TOKEN",))
    assert place.log(run).decode() == f"{len(SECRET)} ***\nTrue False\n"
    wait_for(
        lambda: not [*place.context.home.glob("runs/*/*/inside/group")], what="the container's files are taken away"
    )
    assert holding(SECRET, place.root, place.context.home) == []


def test_the_script_has_its_arguments_its_folder_no_input_and_the_promised_variables(place: Place) -> None:
    script = """
import os, sys
print(sys.argv[1:], sys.stdin.read() == "", os.path.exists("t.py"), os.path.isdir("outputs"))
print(os.path.isdir(os.environ["AZUREML_NATIVE_SHARE_DIRECTORY"]), os.environ["HOLDFAST_RUN_ID"])
"""
    run = place.begin(script, arguments=("a b", "$HOME", "'"))
    shown = repr(["a b", "$HOME", "'"])
    assert place.log(run).decode() == f"{shown} True True True\nTrue {run.run_id}\n"


@pytest.mark.parametrize("listens", [True, False], ids=["listens", "does not listen"])
def test_cancel_asks_first_and_then_ends_everything(place: Place, listens: bool) -> None:
    handler = "lambda *_: (print('saved', flush=True), sys.exit(0))" if listens else "signal.SIG_IGN"
    script = f"""
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, {handler})
subprocess.Popen(["sleep", "1000"], start_new_session=True)
print("up", flush=True)
while True:
    time.sleep(0.05)
"""
    run = place.begin(script, wait=False, grace=60.0 if listens else 1.0)
    wait_for(lambda: place.far_log(run) == b"up\n", what="the script is up")
    *_, last = cancel(place.project, run.run_id, place.context)
    ending = _ended(last).ending
    assert ending is not None
    assert (ending.reason, ending.code) == (Reason.CANCELED, 0 if listens else None)
    assert place.log(run) == (b"up\nsaved\n" if listens else b"up\n")
    assert "sleep" in [each.name for each in place.read().ended_processes]
