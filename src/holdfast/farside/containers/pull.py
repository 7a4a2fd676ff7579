"""Fetching an image with the host's own Docker and its own logins: what is told meanwhile, and why it did not work."""

import re
import time
from typing import Callable, Dict, Optional, Tuple

from holdfast.farside.containers.daemon import DockerClient
from holdfast.farside.containers.docker_errors import NO_ROOM, UNREACHABLE, explain
from holdfast.farside.system.harmless import pasted
from holdfast.farside.system.programs import Finished, Listener
from holdfast.farside.system.refusal import Refused

UNKNOWN, LOGIN, OFFLINE, UNFIT = "image-unknown", "image-login", "image-unreachable", "image-unfit"
"""Kinds of refusals by a registry, beside those of Docker itself."""
EVERY = 1.0
_WITHOUT_END = float("inf")
"""An image takes as long as it takes; the user hears how far it is."""
_LONGEST = 300
_LAYER = re.compile(r"\s*([0-9a-f]{12}): (.+)")
_DONE = ("Pull complete", "Already exists")
_CPU, _GPU = "ubuntu:24.04", "nvidia/cuda:12.9.1-cudnn-runtime-ubuntu24.04"
_PREFIXES = ("docker.io/library/", "index.docker.io/", "docker.io/")

_GONE: Tuple[Tuple[str, str, str], ...] = (
    (r"microsoft/mmlspark:.*gpu", _GPU, "its maker took it away in 2019"),
    (r"microsoft/mmlspark(:|$)", _CPU, "its maker took it away in 2019"),
    (r"microsoft/(cntk|cntk-.*):.*gpu", _GPU, "its maker took it away in 2019, and CNTK is not developed any more"),
    (r"microsoft/cntk", _CPU, "its maker took it away in 2019, and CNTK is not developed any more"),
    (r"microsoft/", _CPU, "its maker moved all images to mcr.microsoft.com in 2019, and few of the old ones"),
    (r"mcr\.microsoft\.com/azureml/base-gpu", _GPU, "it is not offered any more"),
    (r"mcr\.microsoft\.com/azureml/base", _CPU, "it is not offered any more"),
    (r"nvidia/cuda(:latest|$)", _GPU, "NVIDIA offers no image of that name without a version"),
    (r"nvidia/cuda:(?:[6-9]|10|11)[.-]", _GPU, "NVIDIA takes images of old versions of CUDA away"),
    (r"nvidia/cuda:", _GPU, "NVIDIA takes images away when a newer patch is out"),
    (r"(?:gcr|b\.gcr)\.io/tensorflow/.*gpu", "tensorflow/tensorflow:latest-gpu", "it moved to the Docker Hub"),
    (r"(?:gcr|b\.gcr)\.io/tensorflow/", "tensorflow/tensorflow:latest", "it moved to the Docker Hub"),
    (r"jupyter/(.+)", r"quay.io/jupyter/\1", "it moved to quay.io in 2023"),
    (r"(?:caffe2ai|caffe2)/caffe2", "pytorch/pytorch:latest", "Caffe2 became a part of PyTorch"),
)
"""Names that people still have in their files, what stands for them today, and why. The first that matches counts."""


_REASONS: Tuple[Tuple[Tuple[str, ...], str, str, str], ...] = (
    (
        ("toomanyrequests", "rate limit"),
        LOGIN,
        "The registry lets the machine fetch no more images for now, `%s` neither.",
        "Log in there, on the machine itself: docker login; or wait some hours.",
    ),
    (
        ("no basic auth credentials", "authentication required", "unauthorized", "incorrect username or password"),
        LOGIN,
        "The registry wants a login for the image `%s`.",
        "Log in on the machine itself, as the user of the runs: docker login %s",
    ),
    (
        ("no matching manifest", "image operating system", "does not match the specified platform"),
        UNFIT,
        "The image `%s` is not made for machines like this one.",
        "Choose one that is: docker manifest inspect %s lists what it is made for.",
    ),
    (
        ("schema 1 support", "image format v1", "media type", "schema1"),
        UNFIT,
        "The image `%s` is so old that today's Docker does not read it.",
        "Choose a newer one.",
    ),
    (("invalid reference format", "invalid repository name"), UNKNOWN, "`%s` is not the name of an image.", ""),
    (
        ("manifest unknown", "not found", "does not exist", "access denied", "denied:", "name unknown"),
        UNKNOWN,
        "The registry has no image `%s`, or does not show it to the machine.",
        "Check the name. If it is a private one, log in on the machine itself: docker login %s",
    ),
    (
        ("dial tcp", "no such host", "timeout", "deadline exceeded", "refused", "proxyconnect", "tls", "x509", "eof"),
        OFFLINE,
        "The registry of the image `%s` cannot be reached from the machine.",
        "Does the Docker daemon reach it? It has proxy settings of its own. Or bring the image in a file: "
        "docker save -o image.tar %s where it is, docker load -i image.tar on the machine.",
    ),
)


def pull(
    docker: DockerClient, name: str, tell: Callable[[str], None], log: Optional[Callable[[str], None]] = None
) -> None:
    """Fetch `name`, or raise Refused: the kinds are above. `tell` hears how far it is, about once a second. `log` gets
    each line that docker says."""
    progress = PullProgress(name, tell)

    def hear(line: str) -> None:
        progress.hear(line)
        if log is not None:
            log(line)

    answer = docker.call(["pull", name], _WITHOUT_END, Listener(hear, progress.tick))
    if not answer.is_good and not docker.call(["image", "inspect", "--format", "{{.Id}}", name]).is_good:
        raise why(name, answer)


def why(name: str, answer: Finished) -> Refused:
    """From what `docker pull` said when it failed."""
    last = complaint(answer.output + "\n" + answer.errors)
    known = explain(Finished(answer.code, "", last))
    if known.kind == NO_ROOM:
        return Refused(NO_ROOM, "There is no room for the image `%s`. %s" % (name, known.message), known.hint)
    if known.kind == UNREACHABLE:
        return known
    low = last.lower()
    for words, kind, sentence, remedy in _REASONS:
        if any(word in low for word in words):
            where = registry(name) if "docker login" in remedy else name
            hint = (remedy % pasted(where) if "%s" in remedy else remedy).strip()
            text = sentence % name
            if kind in (UNKNOWN, UNFIT):
                text, hint = _with_replacement(name, text, hint)
            return Refused(kind, "%s Docker says: %s" % (text, last), hint)
    return Refused(OFFLINE, "The image `%s` could not be fetched. Docker says: %s" % (name, last), "")


def replacement(name: str) -> Optional[Tuple[str, str]]:
    """What stands today for a name that is gone, and why it is gone."""
    short = name
    for prefix in _PREFIXES:
        if short.startswith(prefix):
            short = short[len(prefix) :]
    for pattern, instead, reason in _GONE:
        found = re.match(pattern, short)
        if found:
            return found.expand(instead), reason
    return None


def registry(name: str) -> str:
    """The registry's name as `docker login` takes it; empty for Docker's own."""
    first, slash, _ = name.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else ""


def complaint(said: str) -> str:
    """The line that tells what is wrong, in docker's own words."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith(("error", "failed", "unauthorized", "denied"))] or lines
    text = re.sub(r"^error(?: response from daemon)?:\s*", "", errors[-1], flags=re.IGNORECASE) if errors else "nothing"
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"


class PullProgress:
    """Layers of an image as they come, from the lines of `docker pull`."""

    def __init__(self, name: str, tell: Callable[[str], None]) -> None:
        self._name, self._tell = name, tell
        self._layers: Dict[str, str] = {}
        self._began = self._told = time.monotonic()
        tell(self.text())

    def hear(self, line: str) -> None:
        found = _LAYER.match(line)
        if found:
            self._layers[found.group(1)] = found.group(2).strip()

    def tick(self) -> None:
        if time.monotonic() - self._told >= EVERY:
            self._told = time.monotonic()
            self._tell(self.text())

    def text(self) -> str:
        text = "pulling %s" % self._name
        if self._layers:
            done = sum(1 for state in self._layers.values() if state.startswith(_DONE))
            text += ": %d of %d layers" % (done, len(self._layers))
        seconds = time.monotonic() - self._began
        return text + (", %d s" % seconds if seconds >= 1 else "")


def _with_replacement(name: str, text: str, hint: str) -> Tuple[str, str]:
    instead = replacement(name)
    if instead is None:
        return text, hint
    return "The image `%s` is gone: %s." % (name, instead[1]), "Use a modern one instead: %s" % instead[0]
