"""Which daemon is meant, what it says of itself, and what is made of its complaints."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from pathlib import Path

import pytest

from holdfast.farside.containers.calling import Attended, Listener
from holdfast.farside.containers.complaints import NO_GPUS, NO_PROGRAM, NO_ROOM, UNREACHABLE, Answer, explain
from holdfast.farside.containers.docker import Docker, endpoint, parse_info
from holdfast.farside.layout import Home
from holdfast.farside.refusal import Refused

RECORDED = Path(__file__).parents[3] / "cases" / "docker-info"


def pretend(folder: Path, script: str) -> Docker:
    """A `docker` that does what the shell script says, with a socket that is there."""
    program = folder / "docker"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (folder / "socket").touch()
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(folder), "DOCKER_HOST": f"unix://{folder}/socket"}
    return Docker("docker", environment)


def recorded(name: str) -> dict[str, object]:
    found = json.loads((RECORDED / f"{name}.json").read_text())
    assert isinstance(found, dict)
    return found


@pytest.mark.recorded
@pytest.mark.parametrize(
    ("name", "ways"),
    [
        ("debian-20.10", ["hook"]),
        ("cdi", ["hook", "cdi"]),
        ("cdi-without-devices", ["hook", "cdi"]),
        ("toolkit-runtime", ["hook", "runtime"]),
        ("nvidia-docker2-default-runtime", ["hook", "runtime"]),
        ("podman-rootless", ["cdi"]),
    ],
)
def test_the_ways_to_give_gpus_are_those_of_the_engine(name: str, ways: list[str]) -> None:
    assert parse_info(recorded(name)).gpu_ways() == ways


@pytest.mark.recorded
@pytest.mark.parametrize(
    ("name", "rootless", "remaps", "selinux"),
    [
        ("debian-20.10", False, False, False),
        ("rootless", True, False, False),
        ("userns-remap", False, True, False),
        ("selinux", False, False, True),
        ("podman-rootless", True, False, False),
    ],
)
def test_who_a_container_is_on_the_machine_is_read_from_its_words(
    name: str, rootless: bool, remaps: bool, selinux: bool
) -> None:
    daemon = parse_info(recorded(name))
    assert (daemon.rootless, daemon.remaps, daemon.selinux) == (rootless, remaps, selinux)
    assert daemon.version and daemon.root_dir


@pytest.mark.recorded
@pytest.mark.parametrize(
    ("name", "words"), [("desktop", "virtual machine"), ("windows-containers", "Linux"), ("no-permission", "usermod")]
)
def test_a_daemon_that_cannot_be_used_is_refused_with_what_mends_it(tmp_path: Path, name: str, words: str) -> None:
    docker = pretend(tmp_path, f"cat {RECORDED / name}.json")
    with pytest.raises(Refused) as caught:
        docker.daemon(Home(str(tmp_path)))
    assert words in f"{caught.value.message} {caught.value.hint}"
    assert not (tmp_path / "docker.json").exists()


def test_a_daemon_is_asked_once_until_it_is_started_anew(tmp_path: Path) -> None:
    script = f"echo asked >> {tmp_path}/asked; cat {RECORDED}/debian-20.10.json"
    docker, home = pretend(tmp_path, script), Home(str(tmp_path))
    first = docker.daemon(home)
    assert docker.daemon(home) == first
    assert (tmp_path / "asked").read_text() == "asked\n"
    (tmp_path / "socket").rename(tmp_path / "old")
    (tmp_path / "socket").touch()
    assert docker.daemon(home) == first
    assert (tmp_path / "asked").read_text() == "asked\nasked\n"


def test_a_daemon_on_another_machine_is_refused_and_remotedocker_named(tmp_path: Path) -> None:
    docker = Docker("docker", {"PATH": str(tmp_path), "DOCKER_HOST": "ssh://me@gpu1:22/run"})
    with pytest.raises(Refused) as caught:
        docker.call(["info"])
    assert "`ssh://me@gpu1:22/run`" in caught.value.message
    assert "attach remotedocker --name NAME --address gpu1" in caught.value.hint


def test_a_context_that_leads_elsewhere_is_refused_by_its_name(tmp_path: Path) -> None:
    about = tmp_path / ".docker" / "contexts" / "meta" / hashlib.sha256(b"lab").hexdigest()
    about.mkdir(parents=True)
    (about / "meta.json").write_text(json.dumps({"Endpoints": {"docker": {"Host": "tcp://10.0.0.7:2376"}}}))
    (tmp_path / ".docker" / "config.json").write_text(json.dumps({"currentContext": "lab"}))
    with pytest.raises(Refused, match=r"`lab` says `tcp://10\.0\.0\.7:2376`"):
        Docker("docker", {"PATH": "", "HOME": str(tmp_path)}).socket()


def test_the_address_is_found_in_the_order_in_which_docker_looks_for_it(tmp_path: Path) -> None:
    (tmp_path / ".docker").mkdir()
    (tmp_path / ".docker" / "config.json").write_text(json.dumps({"currentContext": "default"}))
    home = {"HOME": str(tmp_path)}
    assert endpoint(home) == ("", "")
    assert endpoint({**home, "DOCKER_CONTEXT": "default"}) == ("", "")
    assert endpoint({**home, "DOCKER_HOST": "unix:///x", "DOCKER_CONTEXT": "lab"}) == ("unix:///x", "DOCKER_HOST")


def test_no_docker_at_all_is_said_with_what_installs_it(tmp_path: Path) -> None:
    with pytest.raises(Refused) as caught:
        Docker("docker", {"PATH": str(tmp_path), "HOME": str(tmp_path)}).call(["info"])
    assert "no `docker` on the machine" in caught.value.message
    assert "install" in caught.value.hint.lower()


def test_podman_stands_in_where_there_is_no_docker(tmp_path: Path) -> None:
    (tmp_path / "podman").write_text("#!/bin/sh\necho podman\n")
    (tmp_path / "podman").chmod(0o755)
    docker = Docker("docker", {"PATH": str(tmp_path), "HOME": str(tmp_path)})
    assert docker.call(["info"]).output == "podman\n"
    assert docker.socket() == ""


def test_streams_are_kept_apart_and_nothing_is_there_to_be_read(tmp_path: Path) -> None:
    docker = pretend(tmp_path, 'cat; echo "$1"; echo "error" >&2; exit 3')
    assert docker.call(["word"]) == Answer(3, "word\n", "error\n")


def test_both_streams_are_heard_as_they_come_to_the_last_word_however_much_there_is(tmp_path: Path) -> None:
    """The script goes on when its first line was heard."""
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


def test_a_daemon_that_does_not_answer_is_not_waited_for(tmp_path: Path) -> None:
    docker, pid = pretend(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 60"), tmp_path / "pid"
    for patience in (0.2, 2.0, 20.0):  # as long as a busy machine needs to begin
        answer = docker.call(["info"], patience=patience)
        assert answer.code is None
        assert "did not answer" in answer.errors
        if pid.exists() and pid.read_text():
            break
    assert not os.path.exists(f"/proc/{pid.read_text().strip()}")


def test_whoever_is_called_away_leaves_no_program_behind(tmp_path: Path) -> None:
    class CalledAway(Exception):
        pass

    def wait(seconds: float, pipes: object) -> None:
        if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
            raise CalledAway()

    docker = pretend(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 60").attended_by(Attended(wait, {}))
    with pytest.raises(CalledAway):
        docker.call(["info"])
    assert not os.path.exists(f"/proc/{(tmp_path / 'pid').read_text().strip()}")


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        (
            'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].',
            NO_GPUS,
            "nvidia-container-toolkit",
        ),
        ("docker: Error response from daemon: Unknown runtime specified nvidia.", NO_GPUS, "runtime `nvidia`"),
        ("docker: Error response from daemon: unknown or invalid runtime name: nvidia.", NO_GPUS, "`nvidia`"),
        (
            "docker: Error response from daemon: CDI device injection failed: unresolvable CDI devices "
            "nvidia.com/gpu=all.",
            NO_GPUS,
            "cannot give GPUs",
        ),
        (
            "docker: Error response from daemon: OCI runtime create failed: container_linux.go:380: starting container "
            "process caused: process_linux.go:545: container init caused: Running hook #0:: error running hook: exit "
            "status 1, stdout: , stderr: nvidia-container-cli: initialization error: nvml error: driver not loaded.",
            NO_GPUS,
            "driver not loaded",
        ),
        ("Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?", UNREACHABLE, "systemctl"),
        (
            "docker: Got permission denied while trying to connect to the Docker daemon socket at unix:///var/run/"
            "docker.sock: dial unix /var/run/docker.sock: connect: permission denied.\nSee 'docker run --help'.",
            "docker",
            "sudo usermod -aG docker ",
        ),
        ("docker: Error response from daemon: mkdir /v/overlay2/x: no space left on device.", NO_ROOM, "image prune"),
        (
            'docker: Error response from daemon: invalid mount config for type "bind": bind source path does not '
            "exist: /home/me/.holdfast/runs/p/r.\nSee 'docker run --help'.",
            "docker",
            "`/home/me/.holdfast/runs/p/r`",
        ),
        (
            'docker: Error response from daemon: invalid mount config for type "bind": stat /net/me/.holdfast: '
            "permission denied.",
            "docker",
            "HOLDFAST_HOME, where runs are submitted, for type `docker`",
        ),
        (
            'docker: Error response from daemon: invalid mount config for type "bind": stat /net/me/.holdfast: '
            "permission denied.",
            "docker",
            "`holdfastHome: DIR` in the compute target",
        ),
        (
            "docker: Error response from daemon: OCI runtime create failed: container_linux.go:380: starting container "
            'process caused: exec: "/opt/no/python": stat /opt/no/python: no such file or directory: unknown.',
            NO_PROGRAM,
            "`/opt/no/python` cannot be started in the container: no such file or directory.",
        ),
        (
            "Error: crun: executable file `/opt/no/python` not found in $PATH: No such file or directory: OCI runtime "
            "attempted to invoke a command that was not found",
            NO_PROGRAM,
            "`/opt/no/python` cannot be started",
        ),
        ("dial unix /run/user/7/docker.sock: connect: connection refused", UNREACHABLE, "systemctl"),
        ("unknown flag: --gpuz\nSee 'docker run --help'.", "docker", "unknown flag: --gpuz"),
        ("docker: Error response from daemon: Minimum memory limit allowed is 6MB.", "docker", "`memory`"),
        ("docker: Error response from daemon: network lab not found.", "docker", "network lab not found"),
        ("docker: Error response from daemon: something new.", "docker", "Docker says: something new."),
    ],
)
def test_a_complaint_becomes_a_sentence_with_its_remedy(said: str, kind: str, words: str) -> None:
    refusal = explain(Answer(125, "", said), "/var/lib/docker")
    assert refusal.kind == kind
    assert words in f"{refusal.message} {refusal.hint}"
    assert "See 'docker" not in refusal.message
