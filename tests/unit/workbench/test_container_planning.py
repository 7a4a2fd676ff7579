"""The plan of a run in a container, from the project's files to what the far side gets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import StateError
from holdfast.history.run_folder import RunFolders
from holdfast.model import Submission
from holdfast.plan import Hole, Plan, Volume, text
from holdfast.project.configuration import load_configuration
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.targets import product_of
from holdfast.workbench.submitting import environment_choice, run_plan
from holdfast.workbench.submitting.job import Job
from holdfast.workbench.submitting.run_plan import Identity, Intent, make_plan
from holdfast.workbench.submitting.submit_request import EnvironmentWishes, SubmitRequest
from kit.projects import own_state, project_at

ID = "sha256:" + "ab" * 32
USER_MANAGED = "userManagedEnvironment: true\n"


@pytest.fixture(autouse=True)
def installer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks for neither uv nor a Python of this machine: an image has its own."""

    def refuse(*_: Any) -> str:
        raise AssertionError("a Python of this machine was looked for")

    monkeypatch.setattr(environment_choice, "find_uv", lambda: "/here/uv")
    monkeypatch.setattr(environment_choice, "uv_name", lambda _: "uv-1.2.3")
    monkeypatch.setattr(environment_choice, "find_python", refuse)
    monkeypatch.setattr(run_plan, "find_python", refuse)


def planned(root: Path, compute: str, **wishes: Any) -> Plan:
    (root / "aml_config").mkdir(exist_ok=True)
    (root / "train.py").write_text("")
    (root / "aml_config" / "gpu.compute").write_text(compute)
    (root / "aml_config" / "gpu.runconfig").write_text("Target: gpu\nFramework: Python\n")
    project, context = project_at(root), Context(root / "home", {}, root, root)
    configuration = load_configuration(project, "gpu", None)
    request = SubmitRequest("train.py", run_configuration="gpu", environment=EnvironmentWishes(**wishes))
    job = Job("train.py", ("train.py",), ())
    intent = Intent(project, request, configuration, job, product_of(configuration.target, context))
    return make_plan(intent, Identity("iris_1", "g", "s" * 64), context)


def test_an_old_file_of_a_container_here_is_run_as_it_is(tmp_path):
    plan = planned(
        tmp_path,
        'type: "localdocker"\nbaseDockerImage: "microsoft/mmlspark:plus-0.9.9"\naddress: "localhost"\n'
        'nativeSharedDirectory: "/srv/share/"\n',
    )
    container = plan.container
    assert container is not None and plan.command is not None and plan.environment is not None
    assert (container.image, container.gpus, container.python) == ("microsoft/mmlspark:plus-0.9.9", None, None)
    assert container.options == (text("--network"), text("host"))
    assert container.file == "aml_config/gpu.compute"
    assert str(plan.share).startswith("/srv/share/")
    assert plan.command.environment["AZUREML_NATIVE_SHARE_DIRECTORY"] == text("/azureml-share/")
    assert plan.command.argv[0] == text(Hole.ENVIRONMENT, "/bin/python")


@pytest.mark.parametrize("kind", ["docker", "remotedocker\naddress: gpu1"])
def test_the_environment_is_built_with_what_is_on_the_host(tmp_path, kind):
    found = planned(tmp_path, f"type: {kind}\n").environment
    assert found is not None
    assert found.interpreter == text(Hole.PYTHON)
    assert found.uv == text(Hole.HOME, "/tools/uv-1.2.3-", Hole.ARCHITECTURE, "/uv")
    assert found.tools == ("uv-1.2.3",)
    assert found.summary == "Python not pinned: no packages", "nothing is active in an image"


@pytest.mark.parametrize("kind", ["docker", "remotedocker\naddress: gpu1"])
@pytest.mark.parametrize(("location", "python"), [("", "python3"), ("pythonLocation: /opt/py\n", "/opt/py")])
def test_the_images_own_python_is_the_images_to_find(tmp_path, kind, location, python):
    plan = planned(tmp_path, f"type: {kind}\n{USER_MANAGED}{location}")
    assert plan.environment is None and plan.command is not None and plan.container is not None
    assert plan.command.argv[0] == text(Hole.PYTHON)
    assert plan.container.python == python
    assert "VIRTUAL_ENV" not in plan.command.environment


def test_all_that_a_file_asks_for_reaches_the_far_side(tmp_path):
    plan = planned(
        tmp_path,
        "type: docker\nnvidiaDocker: true\nvolumes: ['~/sets:/data', '/x,y:/z:rw']\nshmSize: 1g\nmemory: 8g\ncpus: 2\n"
        "network: none\ndockerArguments: [--ipc=host]\n",
    )
    container = plan.container
    assert container is not None
    assert " ".join(map(str, container.options)) == "--network none --memory 8g --cpus 2 --ipc=host"
    assert container.volumes == (Volume(text(Hole.ACCOUNT, "/sets"), "/data", False), Volume(text("/x,y"), "/z", True))
    assert (container.gpus, container.shm, container.image) == (True, "1g", "ubuntu:24.04")
    assert container.is_default


def record(root: Path, container: dict[str, Any] | None, events: list[dict[str, Any]], lock: bool = False) -> str:
    folders = RunFolders(own_state(root))
    run_id = folders.reserve("iris", 1e9)
    submission = Submission(run_id, 1, "p", "iris", "train.py", (), "gpu", "gpu", "docker", "a" * 64, 1e9, "g")
    plan = {"container": container, "environment": {"summary": "as then", "spec": LOCK["spec"]} if lock else None}
    folders.commit(run_id, submission, plan, {})
    lines = "".join(json.dumps({"t": 1e9, **each}) + "\n" for each in events)
    (folders.path(run_id) / "journal.jsonl").write_text(lines)
    if lock:
        (folders.path(run_id) / "environment.json").write_text(json.dumps(LOCK))
    return run_id


LOCK = {
    "format": 1,
    "spec": "c" * 64,
    "platform": "linux-x86_64-glibc",
    "python": "3.11.2",
    "requirements": "six==1.16.0\n",
    "conda": [],
    "backend": "uv",
}
USED = {"e": "container", "image": ID, "image_name": "python:3.12", "name": "holdfast-x"}


@pytest.mark.parametrize(
    ("then", "events", "now", "image", "python"),
    [
        ({"image": "python:3.12", "python": None}, [USED], "", (ID, True, "python:3.12"), None),
        (None, [], USER_MANAGED, ("python:3.13", False, "python:3.13"), None),
        ({"image": "python:3.12", "python": "/opt/py"}, [USED], "", (ID, True, "python:3.12"), "/opt/py"),
    ],
    ids=["packages in its image", "packages of a run without one", "the image's own Python"],
)
def test_the_image_of_another_run_is_used_by_its_id(tmp_path, then, events, now, image, python):
    run = record(tmp_path, then, events, lock=python is None)
    plan = planned(tmp_path, f"type: docker\nbaseDockerImage: python:3.13\n{now}", of_run=run)
    assert plan.container is not None and plan.command is not None
    assert (plan.container.image, plan.container.is_exact, plan.container.known_as) == image
    assert plan.container.python == python
    if python is None:
        assert plan.environment is not None and plan.environment.exact
    else:
        assert plan.environment is None and plan.command.argv[0] == text(Hole.PYTHON)


@pytest.mark.parametrize("told", ["evil:latest", "sha256:abc", "--privileged", f"{ID}\n", ""])
def test_what_a_host_says_is_the_image_of_a_run_counts_only_as_an_id(tmp_path, told):
    run = record(tmp_path, {"image": "python:3.12", "python": None}, [{**USED, "image": told}], lock=True)
    with pytest.raises(StateError, match=run):
        planned(tmp_path, "type: docker\nbaseDockerImage: python:3.13\n", of_run=run)


def test_a_run_that_never_got_its_image_has_none_to_use_again(tmp_path):
    run = record(tmp_path, {"image": "python:3.12", "python": None}, [])
    with pytest.raises(StateError, match=run):
        planned(tmp_path, "type: docker\n", of_run=run)
