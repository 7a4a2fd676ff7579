"""How Docker's error messages are read: a kind, a sentence, a remedy, and the key of the file that caused them."""

import pytest

from holdfast.farside.containers.docker_errors import NO_GPUS, NO_PROGRAM, NO_ROOM, UNREACHABLE, explain
from holdfast.farside.system.programs import Finished

DAEMON = "docker: Error response from daemon: "
HELP = "\nSee 'docker run --help'."
MOUNT = DAEMON + 'invalid mount config for type "bind": '
OCI = DAEMON + "OCI runtime create failed: container_linux.go:380: starting container process caused: "


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        (DAEMON + 'could not select device driver "" with capabilities: [[gpu]].', NO_GPUS, "nvidia-container-toolkit"),
        (DAEMON + "Unknown runtime specified nvidia.", NO_GPUS, "runtime `nvidia`"),
        (DAEMON + "unknown or invalid runtime name: nvidia.", NO_GPUS, "`nvidia`"),
        (
            DAEMON + "CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=all.",
            NO_GPUS,
            "Docker cannot give GPUs to containers on the machine",
        ),
        (
            OCI + "process_linux.go:545: container init caused: Running hook #0:: error running hook: exit status 1, "
            "stdout: , stderr: nvidia-container-cli: initialization error: nvml error: driver not loaded.",
            NO_GPUS,
            "driver not loaded",
        ),
        ("Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?", UNREACHABLE, "systemctl"),
        ("dial unix /run/user/7/docker.sock: connect: connection refused", UNREACHABLE, "systemctl"),
        (
            "docker: Got permission denied while trying to connect to the Docker daemon socket at unix:///var/run/"
            f"docker.sock: dial unix /var/run/docker.sock: connect: permission denied.{HELP}",
            "docker",
            "sudo usermod -aG docker ",
        ),
        (DAEMON + "mkdir /v/overlay2/x: no space left on device.", NO_ROOM, "image prune"),
        (DAEMON + "mkdir /v/overlay2/x: no space left on device.", NO_ROOM, "images and containers is full"),
        (MOUNT + f"bind source path does not exist: /home/me/.holdfast/r.{HELP}", "docker", "`/home/me/.holdfast/r`"),
        (
            MOUNT + "stat /net/me/.holdfast: permission denied.",
            "docker",
            "HOLDFAST_HOME, where runs are submitted",
        ),
        (MOUNT + "stat /net/me/.holdfast: permission denied.", "docker", "`holdfastHome: DIR`"),
        (
            OCI + 'exec: "/opt/no/python": stat /opt/no/python: no such file or directory: unknown.',
            NO_PROGRAM,
            "`/opt/no/python` cannot be started in the container: no such file or directory.",
        ),
        (
            "Error: crun: executable file `/opt/no/python` not found in $PATH: No such file or directory: OCI runtime "
            "attempted to invoke a command that was not found",
            NO_PROGRAM,
            "`/opt/no/python`",
        ),
        ("\nit did not answer within 300 s", "docker", "Docker did not answer within 300 s."),
        ("\nit did not answer within 300 s", "docker", "sudo systemctl restart docker"),
        (DAEMON + "something new.", "docker", "Docker says: something new."),
        (DAEMON + "network hots not found.", "docker", "network hots not found"),
    ],
)
def test_a_complaint_becomes_a_sentence_with_its_remedy(said, kind, words):
    refusal = explain(Finished(125, "", said), "/var/lib/docker")
    assert refusal.kind == kind
    assert words in f"{refusal.message} {refusal.hint}"
    assert "See 'docker" not in refusal.message


@pytest.mark.parametrize(
    ("said", "key"),
    [
        (DAEMON + "network hots not found.", "network"),
        (DAEMON + f"Range of CPUs is from 0.01 to 2.00, as there are only 2 CPUs available.{HELP}", "cpus"),
        ('invalid argument "lots" for "--cpus" flag: Failed to parse lots as a rational number', "cpus"),
        (DAEMON + "Minimum memory limit allowed is 6MB.", "memory"),
        ('invalid argument "8x" for "-m, --memory" flag: invalid suffix: \'x\'', "memory"),
        ('invalid argument "8x" for "--shm-size" flag: invalid suffix: \'x\'', "shmSize"),
        (f"unknown flag: --ulimt{HELP}", "dockerArguments"),
        ("unknown flag: --qqqqqq", "dockerArguments"),
    ],
)
def test_an_option_that_docker_does_not_take_is_traced_to_its_key(said, key):
    refusal = explain(Finished(125, "", said))
    assert refusal.kind == "docker"
    assert refusal.hint.startswith(f"Correct `{key}` in the compute target.")
    assert ("Did you mean --ulimit?" in refusal.hint) is ("ulimt" in said)
    assert "unknown flag" not in said or said.partition("\n")[0] in refusal.message
