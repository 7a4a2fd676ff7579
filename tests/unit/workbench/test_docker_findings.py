"""What Docker on a machine means for runs, sentence by sentence, and what the far side's answers become."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast.codec import encode
from holdfast.containers import Docker, Names
from holdfast.errors import FarSideError, Unreachable
from holdfast.hosts.connection import Push
from holdfast.hosts.machine_report import DockerReport, Leftover, Trial
from holdfast.project.compute import ComputeTarget
from holdfast.workbench.machines import docker_check
from holdfast.workbench.machines.docker_check import Docked, Wish, examine
from holdfast.workbench.reach import events
from kit.reports import facts_of

ENGINE = DockerReport("docker", "27.3.1", "Ubuntu 24.04.1 LTS", False, False, "/var/lib/docker", 10**11, 10**12, ())
ANSWER: dict[str, Any] = {
    "kind": "docker",
    "version": "27.3.1",
    "system": "Ubuntu 24.04.1 LTS",
    "is_rootless": False,
    "remaps": False,
    "root": "/var/lib/docker",
    "free": 10**11,
    "total": 10**12,
    "leftovers": [],
    "user": "",
    "lingers": None,
}
GPUS = {"gpus": {"state": "ok", "devices": [{"index": 0, "state": "ok"}]}}
FILE = "aml_config/box.compute"
TARGET = ComputeTarget("box", "docker", base_docker_image="ubuntu:24.04", file=FILE)
NEW = Wish(TARGET, attaches=True)
TRIED = Trial("sha256:ab", "hook", "")
UNGIVEN = Trial("sha256:ab", "", "no driver of that name")


def wishing(nvidia: bool | None) -> Wish:
    """For a target whose file says this about GPUs."""
    return Wish(replace(TARGET, nvidia_docker=nvidia))


class Answering:
    """A connection that answers each request once, after pushes; an error is raised."""

    def __init__(
        self, *answers: Any, pushes: tuple[str, ...] = (), quiet: float = 0.0, answers_at_once: bool = False
    ) -> None:
        self._answers, self._pushes, self._quiet = list(answers), list(pushes), quiet
        self._answers_at_once = answers_at_once
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def request(self, operation: str, fields: dict[str, Any] | None = None) -> Any:
        return self.answer(self.send(operation, fields))

    def send(self, operation: str, fields: dict[str, Any] | None = None, body: bytes = b"") -> int:
        self.asked.append((operation, dict(fields or {})))
        return len(self.asked)

    def has_answer(self, number: int, timeout: float) -> bool:
        return (self._answers_at_once or not self._pushes) and not self._quiet

    def next_push(self, timeout: float | None) -> Push | None:
        if not self._pushes or self._pushes[0] == "":
            del self._pushes[:1]
            return None
        return Push("progress", "", self._pushes.pop(0), 0, b"")

    def quiet(self) -> float:
        return self._quiet

    def answer(self, number: int) -> Any:
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def ended(there: Any, wish: Wish = NEW, facts: dict[str, Any] | None = None) -> tuple[list[Any], Docked]:
    """The events of an examination of this far side, and what it returned."""
    happening, seen = examine(there, "gpu1", facts_of(**(facts or {})), wish), []
    while True:
        try:
            seen.append(next(happening))
        except StopIteration as stop:
            return seen, stop.value


def looked(*answers: Any, wish: Wish = NEW) -> Docked:
    return ended(Answering(*answers), wish)[1]


def tried(gpus: str = "", problem: str = "") -> dict[str, str]:
    return {"image": "sha256:ab", "gpus": gpus, "problem": problem}


def test_a_healthy_engine_whose_container_works_has_no_findings():
    found = looked(ANSWER, tried())
    assert found == Docked(ENGINE, Trial("sha256:ab", "", ""), ())


@pytest.mark.parametrize(
    ("changes", "words", "stops"),
    [
        ({"version": "17.12.1-ce"}, "Docker 17.12.1-ce is too old", True),
        ({"free": 2 * 10**9}, "`/var/lib/docker`: 2.0 GB free", False),
        ({"free": 10**8}, "little room for images in `/var/lib/docker`: 100 MB free", True),
    ],
)
def test_each_state_of_the_engine_has_its_sentence_and_a_remedy(changes, words, stops):
    (found,) = docker_check.engine_findings(replace(ENGINE, **changes))
    assert words in found.message
    assert found.remedy.endswith((".", "later."))
    assert found.stops_runs is stops


@pytest.mark.parametrize(("kind", "title"), [("docker", "Docker"), ("podman", "Podman")])
def test_an_engine_of_the_accounts_own_that_ends_at_logout_is_told_with_what_keeps_it(kind, title):
    engine = replace(ENGINE, kind=kind, is_rootless=True, user="me", lingers=False)
    (found,) = docker_check.engine_findings(engine)
    assert found.message.startswith(f"{title} is the account's own there (rootless), and ends when `me` logs out")
    assert "loginctl enable-linger" in found.remedy and not found.stops_runs
    for lingers in (True, None):
        assert list(docker_check.engine_findings(replace(engine, lingers=lingers))) == []


def test_whether_the_account_lingers_is_heard_from_the_machine():
    answer = {**ANSWER, "is_rootless": True, "user": "me", "lingers": False}
    assert "`me` logs out" in looked(answer, tried()).findings[0].message


def test_the_oldest_engine_that_works_and_one_of_podman_are_not_too_old():
    for each in (replace(ENGINE, version="18.09.7"), replace(ENGINE, kind="podman", version="4.9.3")):
        assert list(docker_check.engine_findings(each)) == []


def test_containers_that_are_left_are_named_with_the_command_that_removes_them():
    left = (Leftover("holdfast-a_1", "a_1", "running"), Leftover("holdfast-a_2", "a_2", "exited"))
    (found,) = docker_check.engine_findings(replace(ENGINE, leftovers=left))
    assert "left there: holdfast-a_1, holdfast-a_2." in found.message
    assert "docker rm -f holdfast-a_1 holdfast-a_2" in found.remedy
    assert not found.stops_runs


@pytest.mark.parametrize(
    ("engine", "command"),
    [
        (ENGINE, "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker"),
        (replace(ENGINE, is_rootless=True), "systemctl --user restart docker"),
        (replace(ENGINE, kind="podman"), "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"),
    ],
)
def test_gpus_that_docker_cannot_give_are_reported_with_a_fix(engine, command):
    (found,) = docker_check.gpu_findings(engine, UNGIVEN, True, NEW)
    assert found.message.startswith("The machine has GPUs, and ")
    assert found.message.endswith("no driver of that name.")
    assert "nvidia-container-toolkit" in found.remedy
    assert command in found.remedy
    assert f"`nvidiaDocker: true` into {FILE}" in found.remedy
    assert not found.stops_runs, "a run on the CPU works"


def test_a_target_that_wants_gpus_which_it_cannot_have_is_stopped_with_file_and_key():
    wants = wishing(nvidia=True)
    for trial, has_gpus in ((TRIED, False), (None, False), (UNGIVEN, True)):
        (found,) = docker_check.gpu_findings(ENGINE, trial, has_gpus, wants)
        assert found.stops_runs
        assert "rite `nvidiaDocker: false`" in found.remedy
        assert FILE in found.message + found.remedy


@pytest.mark.parametrize(
    ("wish", "count"),
    [(wishing(None), 1), (wishing(nvidia=False), 0), (wishing(nvidia=True), 0), (NEW, 0)],
    ids=["not written", "declined", "asked for", "written by the attach"],
)
def test_gpus_that_were_not_asked_for_are_mentioned_unless_they_were_declined(wish, count):
    found = list(docker_check.gpu_findings(ENGINE, TRIED, True, wish))
    assert len(found) == count
    assert all(f"`nvidiaDocker: true` into {FILE}" in each.remedy for each in found)


@pytest.mark.parametrize("kind", ["image-login", "image-unreachable"])
def test_an_image_that_cannot_be_had_now_is_a_finding_and_no_refusal(kind):
    found = looked(ANSWER, FarSideError(kind, "Log in first", "docker login"))
    assert found.trial is None
    (finding,) = found.findings
    assert finding.message == "Log in first. No container could be tried."
    assert finding.remedy == (
        f"docker login. Or name another image in {FILE} (`baseDockerImage`). "
        "Then look again: holdfast computetarget check box"
    )
    assert not finding.stops_runs


@pytest.mark.parametrize("kind", ["image-unknown", "image-no-room", "docker", "preparation"])
def test_an_image_that_does_not_exist_and_a_folder_that_docker_does_not_see_are_refusals(kind):
    with pytest.raises(FarSideError, match="no way"):
        looked(ANSWER, FarSideError(kind, "no way"))


def test_what_a_container_of_the_target_cannot_have_stops_runs_in_a_check_beside_all_else():
    missing = FarSideError("docker", "`volumes[0]` names nothing.", "Make the folder.")
    found = looked(ANSWER, missing, wish=Wish(TARGET))
    assert [tuple(each) for each in found.findings] == [("`volumes[0]` names nothing.", "Make the folder.", True)]
    assert found.engine.version == "27.3.1"


def test_a_check_fetches_nothing_and_says_that_the_first_run_will():
    there = Answering(ANSWER, FarSideError("image-absent", "not there"))
    found = ended(there, Wish(TARGET))[1]
    assert [each.message for each in found.findings] == ["The image `ubuntu:24.04` is not on the machine."]
    assert there.asked[1] == (
        "docker-try",
        {"container": encode(Docker(TARGET).plan(Names("", "", ""))), "pull": False, "gpus": False},
    )


@pytest.mark.parametrize(("nvidia", "asked"), [(None, True), (True, True), (False, False)])
def test_gpus_are_tried_if_there_are_some_and_they_were_not_declined(nvidia, asked):
    there = Answering(ANSWER, tried("hook" if asked else ""))
    found = ended(there, replace(NEW, target=replace(TARGET, nvidia_docker=nvidia)), GPUS)[1]
    assert there.asked[1][1]["gpus"] is asked
    assert found.gives_gpus is asked


def test_no_container_is_tried_where_the_engine_cannot_run_one():
    there = Answering({**ANSWER, "version": "1.12.6"})
    found = ended(there)[1]
    assert [operation for operation, _ in there.asked] == ["docker"]
    assert found.findings[0].stops_runs


def test_how_far_the_fetching_is_is_told_while_it_goes_on():
    said = ("pulling x: 1 of 8 layers", "pulling x: 3 of 8 layers", "", "pulling x: 3 of 8 layers", "")
    seen, _ = ended(Answering(ANSWER, tried(), pushes=said))
    told = [each.text for each in seen if isinstance(each, events.Doing)][2:]
    assert told == ["pulling x: 1 of 8 layers …", "pulling x: 3 of 8 layers …"]


def test_what_was_said_just_before_the_answer_is_told_too():
    seen, _ = ended(Answering(ANSWER, tried(), pushes=("pulling x", "trying x"), answers_at_once=True))
    assert [each.text for each in seen if isinstance(each, events.Doing)][2:] == ["pulling x …", "trying x …"]


def test_a_machine_that_says_nothing_any_more_is_given_up():
    with pytest.raises(Unreachable):
        ended(Answering(ANSWER, tried(), quiet=docker_check.SILENCE + 1))
