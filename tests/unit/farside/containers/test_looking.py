"""Inspecting and trying Docker, with a program in its place: engines that the tests cannot start are represented by
recorded output (`tests/cases/docker-info`)."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.codec import encode
from holdfast.containers import Docker, Names
from holdfast.farside.containers import images
from holdfast.farside.operations import docker_report
from holdfast.farside.system.layout import Home
from holdfast.farside.system.refusal import Refused
from holdfast.project.compute import ComputeTarget
from unit.farside.containers.recorded import INFO
from unit.farside.programs import program

FILE = "aml_config/box.compute"
RECORDED = sorted(path.stem for path in INFO.glob("*.json"))
UNUSABLE = ("no-permission", "windows-containers", "desktop")
FAKE = """#!/bin/sh
# Docker as far as the far side can tell: a container is a shell of this machine.
echo "$*" | head -n 1 >> "$FAKE/calls"
case "$1" in
info) cat "$FAKE/info"; exit ;;
image) if [ -e "$FAKE/image" ]; then cat "$FAKE/image"; exit; fi; echo "Error: No such image: x" >&2; exit 1 ;;
pull) echo '[{"Id": "sha256:ab", "Os": "linux"}]' > "$FAKE/image"; echo "Status: Downloaded"; exit ;;
ps | rm) exit ;;
esac
words="$*"
while [ "$1" != -c ]; do shift; done
. "$FAKE/engine"
"""
WORKS = 'exec /bin/sh -c "$2" "$3" "$4" "$5"\n'
GIVES = """case "$words" in *%s*) ;; *"--gpus all"*|*"--device nvidia.com"*|*"--runtime nvidia"*)
echo 'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].' >&2
exit 125 ;; *) exec /bin/sh -c "$2" "$3" "$4" ;; esac
: > "$4/wrote"; echo gpu; echo here > "$4/pipe"
"""
DENIED = "A container cannot write to Holdfast's folder .*Permission denied"
UNSEEN = 'docker: Error response from daemon: invalid mount config for type "bind": bind source path does not exist: '


def container(**more: Any) -> dict[str, Any]:
    """Of a plan, as it arrives."""
    plan = Docker(ComputeTarget("box", "docker", base_docker_image="x", file=FILE)).plan(Names("", "", ""))
    return {**encode(plan), **more}


class Fake:
    """The program, its answers, and what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        program(folder / "bin" / "docker", FAKE)
        self.home = Home(str(folder / "home"))
        self.says("debian-20.10")
        (folder / "image").write_text('[{"Id": "sha256:ab", "Os": "linux"}]')
        self.engine(WORKS)

    def says(self, name: str) -> None:
        shutil.copy(INFO / f"{name}.json", self.folder / "info")

    def engine(self, script: str) -> None:
        (self.folder / "engine").write_text(script)

    def calls(self, verb: str) -> list[str]:
        lines = (self.folder / "calls").read_text().splitlines()
        return [line for line in lines if line.split()[0] == verb]

    def look(self) -> dict[str, Any]:
        return docker_report.look(self.home, {}, lambda text: None)

    def attempt(self, **wish: Any) -> dict[str, Any]:
        return docker_report.attempt(self.home, {"container": container(), **wish}, lambda text: None)

    def left(self) -> list[str]:
        """The files of the home, except the mark and what is known about Docker."""
        return sorted(set(os.listdir(self.home.path)) - {".holdfast-home", "docker.json"})


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    made = Fake(tmp_path / "fake")
    made.home.make()
    monkeypatch.setenv("FAKE", str(made.folder))
    monkeypatch.setenv("PATH", f"{made.folder / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{made.folder}/socket")
    monkeypatch.setattr(images, "find", lambda *_: SimpleNamespace(id="sha256:ab"))
    return made


def test_a_look_says_what_the_engine_is_and_how_much_room_it_has(fake, tmp_path):
    info = json.loads((fake.folder / "info").read_text())
    (fake.folder / "info").write_text(json.dumps({**info, "DockerRootDir": str(tmp_path)}))
    found = fake.look()
    assert {name: found[name] for name in ("kind", "version", "system", "is_rootless", "remaps", "leftovers")} == {
        "kind": "docker",
        "version": "20.10.24+dfsg1",
        "system": "Debian GNU/Linux 12 (bookworm)",
        "is_rootless": False,
        "remaps": False,
        "leftovers": [],
    }
    assert 0 < found["free"] <= found["total"]


@pytest.mark.recorded
def test_room_on_a_disk_that_this_user_does_not_see_is_not_guessed(fake):
    fake.says("podman-rootless")
    found = fake.look()
    assert (found["kind"], found["version"], found["is_rootless"]) == ("podman", "4.9.3", True)
    assert (found["free"], found["total"]) == (None, None)


@pytest.mark.recorded
@pytest.mark.parametrize(
    ("engine", "said", "lingers"),
    [("rootless", "no", False), ("podman-rootless", "no", False), ("rootless", "yes", True), ("selinux", "no", None)],
)
def test_whether_an_engine_of_the_accounts_own_outlives_its_logins_is_asked(fake, engine, said, lingers):
    program(fake.folder / "bin" / "loginctl", f"echo Linger={said}")
    fake.says(engine)
    assert fake.look()["lingers"] is lingers


@pytest.mark.recorded
@pytest.mark.parametrize("name", [name for name in RECORDED if name not in UNUSABLE])
def test_every_recorded_engine_that_works_here_is_understood(fake, name):
    fake.says(name)
    found = fake.look()
    assert found["version"]
    assert found["is_rootless"] is ("rootless" in name)
    assert found["remaps"] is (name == "userns-remap")


def test_a_container_writes_to_the_real_folder_as_this_user_and_leaves_nothing(fake):
    assert fake.attempt() == {"image": "sha256:ab", "gpus": "", "problem": ""}
    (run,) = fake.calls("run")
    assert f"--user {os.getuid()}:{os.getgid()}" in run
    assert f"source={fake.home.path}/proofs/" in run
    assert f"--label holdfast.home={fake.home.path}" in run
    assert "-e NVIDIA_VISIBLE_DEVICES=void" in run
    assert fake.left() == []


def test_a_container_is_tried_with_what_the_target_says_and_removed_by_its_name(fake, tmp_path):
    words = ["--network", "hots", "--cpus", "99", "--restart", "always"]
    fake.attempt(pull=True, container=container(options=words, volumes=[volume(tmp_path)], shm="1g"))
    (run,) = fake.calls("run")
    assert " ".join(words) in run
    assert "--shm-size 1g" in run
    assert f"type=bind,source={tmp_path},target=/data,readonly" in run
    assert run.index("--rm=false") > run.index("--restart"), "what is left is removed by us"
    (gone,) = fake.calls("rm")
    assert f"--name {gone.split()[-1]} " in run


def test_a_container_of_a_check_has_no_folder_of_the_project_and_no_rights(fake, tmp_path):
    fake.attempt(container=container(options=["--network", "bridge"], volumes=[volume(tmp_path)]))
    (run,) = fake.calls("run")
    assert "--network bridge --cap-drop ALL --security-opt no-new-privileges" in run
    assert f"source={tmp_path}," not in run


def volume(source: Path) -> dict[str, Any]:
    return {"source": {"join": [str(source)]}, "target": "/data", "is_writable": False}


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"volumes": [volume(Path("/none"))]}, rf"`volumes\[0\]` in {FILE} names `/none`"),
        ({"gpus": True}, f"`nvidiaDocker: true` in {FILE} "),
    ],
    ids=["a volume that is missing", "GPUs of a machine without a driver"],
)
def test_what_a_run_would_be_refused_for_is_refused_with_file_and_key_before_the_image_is_looked_for(
    fake, asked, words
):
    (fake.folder / "image").unlink()
    with pytest.raises(Refused, match=words):
        fake.attempt(container=container(**asked))


@pytest.mark.parametrize("python", ["/opt/none/bin/python", "python3.5"])
def test_a_python_that_the_image_lacks_is_refused_as_a_run_is(fake, monkeypatch, python):
    found = SimpleNamespace(id="sha256:ab", python=lambda asked: asked if asked.startswith("/") else None)
    monkeypatch.setattr(images, "find", lambda *_: found)
    with pytest.raises(Refused, match=f"has no Python `{python}`") as caught:
        fake.attempt(container=container(python=python))
    assert "pythonLocation" in caught.value.hint
    assert fake.attempt(container=container(python=sys.executable))["image"] == "sha256:ab"


def test_a_look_marks_the_folder_before_it_puts_anything_there(fake):
    shutil.rmtree(fake.home.path)
    os.makedirs(os.path.join(fake.home.path, "farside"))
    fake.look()
    assert os.path.exists(fake.home.docker())
    assert os.path.exists(fake.home.marker())


@pytest.mark.parametrize(
    ("engine", "words", "hint"),
    [
        ('echo "cannot create /x: Permission denied" >&2; exit 3\n', DENIED, "--home"),
        (': > "$4/wrote"\n', "in a system of their own", ""),
        (f"echo '{UNSEEN}'\"$4\". >&2; exit 125\n", "does not see", "local disk"),
    ],
    ids=["cannot write", "another system's pipes", "folder not seen"],
)
def test_a_container_that_cannot_use_the_folder_is_refused_with_what_it_said(fake, engine, words, hint):
    fake.engine(engine)
    with pytest.raises(Refused, match=words) as caught:
        fake.attempt()
    assert hint in caught.value.hint
    assert fake.left() == []


def test_files_that_would_be_anothers_are_refused(tmp_path):
    stranger = SimpleNamespace(st_uid=os.getuid() + 231072)
    with pytest.raises(Refused, match="belongs to another user"):
        docker_report._require_own(Home(str(tmp_path)), stranger)  # type: ignore[arg-type]


@pytest.mark.recorded
@pytest.mark.parametrize(
    ("info", "given", "way"),
    [
        ("debian-20.10", "--gpus all", "hook"),
        ("toolkit-runtime", "--runtime nvidia", "runtime"),
        ("nvidia-docker2-default-runtime", "--runtime nvidia", "runtime"),
        ("cdi", "--device nvidia.com/gpu=all", "cdi"),
        ("podman-rootless", "--device nvidia.com/gpu=all", "cdi"),
    ],
)
def test_gpus_are_given_in_the_way_that_the_engine_has(fake, info, given, way):
    fake.says(info)
    fake.engine(GIVES % f'"{given}"')
    assert fake.attempt(gpus=True) == {"image": "sha256:ab", "gpus": way, "problem": ""}


@pytest.mark.recorded
@pytest.mark.parametrize(
    ("info", "engine", "problem"),
    [
        ("cdi-without-devices", GIVES % '"nothing"', "cannot give GPUs"),
        ("debian-20.10", ': > "$4/wrote"; echo here > "$4/pipe"\n', "a container that was given them finds none"),
    ],
    ids=["no way gives them", "given, and none found"],
)
def test_gpus_that_a_container_does_not_get_are_a_problem_and_no_refusal(fake, info, engine, problem):
    fake.says(info)
    fake.engine(engine)
    found = fake.attempt(gpus=True)
    assert found["gpus"] == ""
    assert problem in found["problem"]
    assert fake.left() == []


def test_an_image_is_fetched_where_that_is_wanted_and_only_there(fake):
    (fake.folder / "image").unlink()
    with pytest.raises(Refused) as caught:
        fake.attempt()
    assert caught.value.kind == "image-absent"
    assert fake.attempt(pull=True)["image"] == "sha256:ab"
    assert fake.calls("pull") == ["pull x"]
