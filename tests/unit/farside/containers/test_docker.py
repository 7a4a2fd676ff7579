"""Which daemon is used, what it reports about itself, and how it is called."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from holdfast.farside.containers.daemon import DockerClient, endpoint
from holdfast.farside.system.programs import Attended, Finished, Listener
from holdfast.farside.system.refusal import Refused
from unit.farside.containers.recorded import INFO, daemon
from unit.farside.programs import program


def pretend(folder: Path, script: str) -> DockerClient:
    """A `docker` that runs this shell script, with an existing socket."""
    program(folder / "docker", script)
    (folder / "socket").touch()
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(folder), "DOCKER_HOST": f"unix://{folder}/socket"}
    return DockerClient("docker", environment)


@pytest.mark.recorded
@pytest.mark.parametrize(
    ("name", "ways", "traits"),
    [
        ("debian-20.10", ["hook"], set()),
        ("cdi", ["hook", "cdi"], set()),
        ("cdi-without-devices", ["hook", "cdi"], set()),
        ("toolkit-runtime", ["hook", "runtime"], set()),
        ("nvidia-docker2-default-runtime", ["hook", "runtime"], set()),
        ("podman-rootless", ["cdi"], {"rootless"}),
        ("rootless", None, {"rootless"}),
        ("userns-remap", None, {"remaps"}),
        ("selinux", None, {"selinux"}),
    ],
)
def test_what_an_engine_is_and_how_it_gives_gpus_is_read_from_its_words(name, ways, traits):
    found = daemon(name)
    assert ways is None or found.gpu_ways() == ways
    assert {trait for trait in ("rootless", "remaps", "selinux") if getattr(found, trait)} == traits
    assert found.version and found.root_dir


@pytest.mark.recorded
@pytest.mark.parametrize(
    ("name", "words", "remedy"),
    [
        ("windows-containers", "Windows containers", "Linux containers"),
        ("desktop", "Docker Desktop", "docker context use default"),
        ("no-permission", "may not use Docker", "sudo usermod -aG docker "),
    ],
)
def test_an_unusable_daemon_is_refused_with_a_fix(tmp_path, home, name, words, remedy):
    docker = pretend(tmp_path, f"cat {INFO / name}.json")
    with pytest.raises(Refused) as caught:
        docker.daemon(home)
    assert words in caught.value.message
    assert remedy in caught.value.hint
    assert not os.path.exists(home.docker())


def test_a_daemon_is_asked_once_until_it_is_started_anew(tmp_path, home):
    docker = pretend(tmp_path, f"echo asked >> {tmp_path}/asked; cat {INFO}/debian-20.10.json")
    first = docker.daemon(home)
    assert docker.daemon(home) == first
    assert (tmp_path / "asked").read_text() == "asked\n"
    (tmp_path / "socket").rename(tmp_path / "old")
    (tmp_path / "socket").touch()
    assert docker.daemon(home) == first
    assert (tmp_path / "asked").read_text() == "asked\nasked\n"


@pytest.mark.parametrize("address", ["ssh://me@gpu1:22/run", "ssh://me@gpu1", "tcp://gpu1:2375"])
def test_a_daemon_on_another_machine_is_refused_and_remotedocker_named(tmp_path, address):
    with pytest.raises(Refused) as caught:
        DockerClient("docker", {"PATH": str(tmp_path), "DOCKER_HOST": address}).call(["info"])
    assert f"`{address}`" in caught.value.message
    assert "attach remotedocker --name NAME --address gpu1" in caught.value.hint


def test_a_context_that_leads_elsewhere_is_refused_by_its_name(tmp_path):
    about = tmp_path / ".docker" / "contexts" / "meta" / hashlib.sha256(b"lab").hexdigest()
    about.mkdir(parents=True)
    (about / "meta.json").write_text(json.dumps({"Endpoints": {"docker": {"Host": "tcp://10.0.0.7:2376"}}}))
    (tmp_path / ".docker" / "config.json").write_text(json.dumps({"currentContext": "lab"}))
    with pytest.raises(Refused, match=r"`lab` says `tcp://10\.0\.0\.7:2376`"):
        DockerClient("docker", {"PATH": "", "HOME": str(tmp_path)}).socket()


def test_the_address_is_found_in_the_order_in_which_docker_looks_for_it(tmp_path):
    (tmp_path / ".docker").mkdir()
    (tmp_path / ".docker" / "config.json").write_text(json.dumps({"currentContext": "default"}))
    home = {"HOME": str(tmp_path)}
    assert endpoint(home) == ("", "")
    assert endpoint({**home, "DOCKER_CONTEXT": "default"}) == ("", "")
    assert endpoint({**home, "DOCKER_HOST": "unix:///x", "DOCKER_CONTEXT": "lab"}) == ("unix:///x", "DOCKER_HOST")


def test_podman_stands_in_where_there_is_no_docker_and_without_it_the_hint_is_to_install_one(tmp_path):
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    with pytest.raises(Refused, match="There is no `docker` on the machine") as caught:
        DockerClient("docker", environment).call(["info"])
    assert "install" in caught.value.hint.lower()
    program(tmp_path / "podman", "echo podman")
    docker = DockerClient("docker", environment)
    assert docker.call(["info"]).output == "podman\n"
    assert docker.socket() == ""


def test_streams_are_kept_apart_and_nothing_is_there_to_be_read(tmp_path):
    docker = pretend(tmp_path, 'cat; echo "$1"; echo "error" >&2; exit 3')
    assert docker.call(["word"]) == Finished(3, "word\n", "error\n")


def test_both_streams_are_heard_as_they_come_to_the_last_word_however_much_there_is(tmp_path):
    """The script continues once its first line was read."""
    script = (
        f"echo first; while [ ! -e {tmp_path}/heard ]; do sleep 0.01; done; head -c 3000000 /dev/zero | tr '\\0' 'x';"
        "echo; printf 'a late error' >&2; exit 1"
    )
    heard: list[str] = []
    ticks: list[int] = []

    def hear(line: str) -> None:
        heard.append(line)
        (tmp_path / "heard").touch()

    answer = pretend(tmp_path, script).call(["pull"], 120.0, Listener(hear, lambda: ticks.append(1)))
    assert (answer.code, answer.errors) == (1, "a late error")
    assert heard == ["first", "x" * 3_000_000, "a late error"]
    assert ticks


def test_a_daemon_that_does_not_answer_is_not_waited_for(tmp_path):
    docker, pid = pretend(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 60"), tmp_path / "pid"
    for patience in (0.2, 2.0, 20.0):  # as long as a busy machine needs to begin
        answer = docker.call(["info"], patience=patience)
        assert answer.code is None
        assert "did not answer" in answer.errors
        if pid.exists() and pid.read_text():
            break
    assert not os.path.exists(f"/proc/{pid.read_text().strip()}")


def test_an_interrupted_caller_leaves_no_program_behind(tmp_path):
    class CalledAway(Exception):
        pass

    def wait(seconds: float, pipes: object) -> None:
        if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
            raise CalledAway()

    docker = pretend(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 60").attended_by(Attended(wait, {}))
    with pytest.raises(CalledAway):
        docker.call(["info"])
    assert not os.path.exists(f"/proc/{(tmp_path / 'pid').read_text().strip()}")
