"""What is known about an image before anything runs in it, and what the error says if it is not available."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.containers import image_probe, images
from holdfast.farside.containers.docker_errors import NO_ROOM
from holdfast.farside.containers.pull import PullProgress, replacement, why
from holdfast.farside.environments.workshop import Supervision
from holdfast.farside.system.layout import CONTROL, Home
from holdfast.farside.system.programs import Finished, Listener, Program
from holdfast.farside.system.refusal import Refused

ID = "sha256:" + "ab" * 32
FILE = "aml_config/box.compute"
PROBED = image_probe.Probed("glibc2.36", [["/usr/bin/python3", "3.11.2", "/usr/bin/python3.11"]], "root:x:0:0\n", "")
GO = {"x86_64": "amd64", "aarch64": "arm64"}


class Engine:
    """Answers as `docker` does, from a table of images by their names."""

    program = "docker"
    pulled = Finished(0, "", "")

    def __init__(self, **known: dict[str, Any]) -> None:
        self.environment: dict[str, str] = {}
        self.known = known
        self.asked: list[list[str]] = []

    def call(self, words: list[str], patience: float = 0.0, listener: Listener | None = None) -> Finished:
        self.asked.append(words)
        if words[0] == "pull":
            assert listener is not None
            for line in (self.pulled.output + self.pulled.errors).splitlines():
                listener.hear(line)
            return self.pulled
        row = self.known.get(words[-1])
        if row is None:
            return Finished(1, "[]\n", f"Error: No such image: {words[-1]}")
        return Finished(0, json.dumps([row]), "")


def row(**more: Any) -> dict[str, Any]:
    machine = GO.get(os.uname().machine, os.uname().machine)
    config = {"Env": ["PATH=/opt/bin:/usr/bin", "EMPTY=", "A=b=c"], "User": "", "Entrypoint": ["/hello"]}
    return {"Id": ID, "Os": "linux", "Architecture": machine, "Config": config, **more}


def wanted(image: str = "debian", **more: Any) -> dict[str, Any]:
    return {"program": "docker", "image": image, "known_as": image, "is_exact": False, "file": FILE, **more}


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which images were looked into."""
    seen: list[str] = []

    def look(docker: Any, image: str, home: Home) -> image_probe.Probed:
        seen.append(image)
        return PROBED

    monkeypatch.setattr(images, "look", look)
    return seen


def find(engine: Any, container: dict[str, Any], home: Home, owner: Any = None) -> images.Image:
    return images.find(engine, container, home, owner)


def test_an_image_is_what_docker_and_one_look_inside_say(home, looks):
    found = find(Engine(debian=row()), wanted(), home)

    assert (found.id, found.name, found.path) == (ID, "debian", "/opt/bin:/usr/bin")
    assert found.environment == {"PATH": "/opt/bin:/usr/bin", "EMPTY": "", "A": "b=c"}
    assert found.platform == f"linux-{os.uname().machine}-glibc2.36"
    assert found.build_name == f"{os.uname().machine}-glibc"
    assert found.pythons == (images.Python("/usr/bin/python3", "3.11.2", "/usr/bin/python3.11"),)


def test_an_image_is_inspected_once_unless_the_note_about_it_is_damaged(home, looks):
    find(Engine(debian=row()), wanted(), home)
    assert find(Engine(debian=row()), wanted(), home).pythons[0].version == "3.11.2"
    assert looks == [ID]
    next(Path(home.images()).iterdir()).write_text("{")

    assert find(Engine(debian=row()), wanted(), home).pythons[0].version == "3.11.2"
    assert looks == [ID, ID]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (None, "/usr/bin/python3"),
        ("", "/usr/bin/python3"),
        ("python", "/usr/bin/python3"),
        ("/opt/p/bin/python", "/opt/p/bin/python"),
        ("python3.7", None),
    ],
)
def test_the_python_of_an_image_is_found_by_name_or_taken_by_its_path(home, looks, asked, expected):
    assert find(Engine(debian=row()), wanted(), home).python(asked) == expected


OTHER = "arm64" if os.uname().machine == "x86_64" else "amd64"


@pytest.mark.parametrize(
    ("engine", "asked", "words"),
    [
        (
            Engine(debian=row(Architecture=OTHER)),
            wanted(),
            f"is for {images.machine(OTHER)}, and the machine is {os.uname().machine}",
        ),
        (Engine(debian=row(Os="windows")), wanted(), "is for Windows, and the machine runs Linux"),
        (Engine(), wanted(), "The image `debian` is not on the machine yet."),
        (Engine(), wanted(), "docker pull debian"),
        (Engine(), wanted(is_default=True), f"{FILE} has no `baseDockerImage`."),
    ],
    ids=["another architecture", "Windows", "missing", "missing, with a remedy", "default"],
)
def test_an_image_that_does_not_serve_is_neither_fetched_nor_looked_into_and_the_key_is_named(
    home, looks, engine, asked, words
):
    with pytest.raises(Refused) as refused:
        find(engine, asked, home)

    assert refused.value.kind == "docker"
    assert words in f"{refused.value.message} {refused.value.hint}"
    assert (f"named in {FILE} under `baseDockerImage`" in refused.value.message) is not asked.get("is_default", False)
    assert looks == [] and all("pull" not in words for words in engine.asked)


def test_the_very_image_of_another_run_is_never_replaced_by_another_one(home, looks, tmp_path):
    engine = Engine()

    with pytest.raises(Refused, match=r"sha256:ab.* \(`debian:12`\), in which the other run ran, is not on") as no:
        find(engine, wanted(ID, is_exact=True, known_as="debian:12"), home, owner(tmp_path, []))

    assert "baseDockerImage" not in no.value.message
    assert all("pull" not in words for words in engine.asked)


def owner(folder: Path, told: list[str]) -> Supervision:
    def tell(kind: str, **fields: Any) -> None:
        told.append(fields["text"])

    return Supervision(str(folder), lambda pid, pump: None, lambda: None, lambda: None, lambda seconds: None, tell)


class Registry(Engine):
    """A registry that has the image at the first pull."""

    pulled = Finished(
        0,
        "24.04: Pulling from library/ubuntu\n0123456789ab: Pulling fs layer\n0123456789ab: Pull complete\n"
        "Status: Downloaded newer image for ubuntu:24.04\n",
        "",
    )

    def call(self, words: list[str], patience: float = 0.0, listener: Listener | None = None) -> Finished:
        if words[0] == "pull":
            self.known[words[-1]] = row()
        return super().call(words, patience, listener)


def test_a_missing_image_is_fetched_and_the_log_has_what_docker_said(home, looks, tmp_path):
    told: list[str] = []

    find(Registry(), wanted("ubuntu:24.04"), home, owner(tmp_path, told))

    assert told[0] == "pulling ubuntu:24.04"
    assert "$ docker pull ubuntu:24.04\n24.04: Pulling from" in (tmp_path / CONTROL).read_text()


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        ("Error response from daemon: write /v/x: no space left on device", "storage", "docker image prune"),
        ("Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?", "docker", "systemctl"),
    ],
)
def test_what_is_wrong_with_docker_itself_is_not_taken_for_a_registry_that_is_not_reached(
    home, looks, tmp_path, said, kind, words
):
    engine = Engine()
    engine.pulled = Finished(1, "", said + "\n")
    with pytest.raises(Refused) as refused:
        find(engine, wanted("big"), home, owner(tmp_path, []))

    assert refused.value.kind == kind
    assert words in f"{refused.value.message} {refused.value.hint}"
    assert "registry" not in refused.value.message


@pytest.mark.parametrize(
    ("said", "kind", "expected"),
    [
        ("manifest for ubuntu:99 not found: manifest unknown: manifest unknown", "image-unknown", "has no image"),
        (
            "pull access denied for x, repository does not exist or may require 'docker login': denied: requested",
            "image-unknown",
            "docker login",
        ),
        ('Head "https://r.io/v2/x/manifests/1": no basic auth credentials', "image-login", "docker login r.io"),
        ("unauthorized: authentication required", "image-login", "docker login r.io"),
        ('Get "https://r.io/v2/": dial tcp: lookup r.io: no such host', "image-unreachable", "cannot be reached"),
        (
            "net/http: request canceled (Client.Timeout exceeded while awaiting headers)",
            "image-unreachable",
            "docker save",
        ),
        ("no matching manifest for linux/amd64 in the manifest list entries", "image-unfit", "not made for machines"),
        ("toomanyrequests: You have reached your pull rate limit.", "image-login", "fetch no more images"),
        ("write /var/lib/docker/tmp/GetImageBlob1: no space left on device", NO_ROOM, "no room"),
        ('Get "http://r.io:1/v2/": dial tcp 127.0.0.1:1: connect: connection refused', "image-unreachable", "reached"),
        ("something new", "image-unreachable", "could not be fetched. Docker says: something new"),
    ],
)
def test_a_reason_and_a_remedy_are_made_of_what_docker_says(said, kind, expected):
    reason = why("r.io/x:1", Finished(1, "1: Pulling from x\n", f"Error response from daemon: {said}\n"))

    assert reason.kind == kind
    assert expected in reason.message + " " + reason.hint
    assert said[:40] in reason.message or kind == NO_ROOM


GONE = Finished(
    1, "", "Error response from daemon: pull access denied for microsoft/mmlspark, repository does not exist"
)


def test_an_image_that_is_gone_gives_the_reason_and_a_modern_one():
    plain, gpu = (why(f"microsoft/mmlspark:{tag}", GONE) for tag in ("plus-0.9.9", "plus-gpu-0.9.9"))

    assert plain.message.startswith("The image `microsoft/mmlspark:plus-0.9.9` is gone: its maker took it away")
    assert plain.hint == "Use a modern one instead: ubuntu:24.04"
    assert gpu.hint.startswith("Use a modern one instead: nvidia/cuda:")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("docker.io/microsoft/cntk:2.6-gpu", "nvidia/cuda"),
        ("nvidia/cuda:9.0-cudnn7-devel-ubuntu16.04", "nvidia/cuda:12"),
        ("nvidia/cuda", "nvidia/cuda:12"),
        ("gcr.io/tensorflow/tensorflow:latest-gpu", "tensorflow/tensorflow:latest-gpu"),
        ("jupyter/scipy-notebook:latest", "quay.io/jupyter/scipy-notebook:latest"),
        ("mcr.microsoft.com/azureml/base-gpu:openmpi3.1.2", "nvidia/cuda"),
        ("ubuntu:24.04", None),
        ("ghcr.io/me/microsoft/x", None),
    ],
)
def test_names_that_people_still_have_are_known_and_one_that_may_be_there_has_no_replacement(name, expected):
    found = replacement(name)
    assert found is None if expected is None else (found is not None and found[0].startswith(expected))


def test_layers_are_counted_as_they_come():
    told: list[str] = []
    progress = PullProgress("ubuntu:24.04", told.append)
    for line in (
        "24.04: Pulling from library/ubuntu",
        "aaaaaaaaaaaa: Pulling fs layer",
        "bbbbbbbbbbbb: Already exists",
        "aaaaaaaaaaaa: Download complete",
        "cccccccccccc: Waiting",
        "Digest: sha256:0123456789ab",
    ):
        progress.hear(line)

    assert progress.text() == "pulling ubuntu:24.04: 1 of 3 layers"
    progress.hear("aaaaaaaaaaaa: Pull complete")
    assert progress.text() == "pulling ubuntu:24.04: 2 of 3 layers"


def probed(**sections: str) -> image_probe.Probed:
    found = {"libc": "", "passwd": "", "group": "", "pythons": "", "end": "", **sections}
    said = "".join(f"\nmark {name}\n{text}" for name, text in found.items())
    return image_probe._probed("image", image_probe._sections(said, "mark"))


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("glibc 2.36\n", "glibc2.36"),
        ("GNU C Library (Ubuntu GLIBC 2.39-0ubuntu8) stable release version 2.39.\nCopyright\n", "glibc2.39"),
        ("musl\n", "musl"),
        ("glibc 2.36\nmusl\n", "glibc2.36"),
    ],
)
def test_the_c_library_is_known_by_what_it_says_itself_and_an_image_without_one_is_refused(said, expected):
    assert probed(libc=said).libc == expected
    with pytest.raises(Refused, match="no C library"):
        probed()


def test_pythons_are_known_once_each_and_only_those_of_today_and_accounts_as_they_stand():
    accounts = "root:x:0:0::/root:/bin/sh\nme:x:1000:1000::/:/bin/sh\n"
    found = probed(
        libc="musl\n",
        passwd=accounts,
        group="root:x:0:\n",
        pythons="python\t/usr/bin/python3\t3.11.2\t/usr/bin/python3.11\n"
        "noise\npython\t/usr/bin/python3.11\t3.11.2\t/usr/bin/python3.11\n"
        "python\t/usr/bin/python\t2.7.18\t/usr/bin/python2.7\n"
        "python\t/opt/conda/bin/python3\t3.10.4\t/opt/conda/bin/python3.10\n",
    )
    assert found.pythons == [
        ["/usr/bin/python3", "3.11.2", "/usr/bin/python3.11"],
        ["/opt/conda/bin/python3", "3.10.4", "/opt/conda/bin/python3.10"],
    ]
    assert (found.passwd, found.group) == (accounts, "root:x:0:\n")


def test_an_image_without_a_shell_says_so():
    answer = Finished(127, "", 'docker: Error: OCI runtime create failed: exec: "/bin/sh": stat /bin/sh: no such file')
    assert "has no /bin/sh" in image_probe._explained("tiny", answer).message


def test_the_question_for_the_shell_is_understood_by_the_shell_of_this_machine(tmp_path):
    call = Program(
        ["/bin/sh", "-c", image_probe._SCRIPT, "holdfast", "mark", image_probe._QUESTION],
        {"PATH": "/usr/bin:/bin"},
        is_apart=True,
    )
    found = image_probe._sections(call.answer(30.0, None).output, "mark")

    assert "end" in found
    made = image_probe._probed("here", found)
    assert made.libc.startswith(("glibc", "musl"))
    assert made.passwd.startswith(Path("/etc/passwd").read_text().splitlines()[0] + "\n")  # users come and go meanwhile
