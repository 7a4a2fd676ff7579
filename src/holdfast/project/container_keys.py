"""What the keys of a `.compute` file about containers may hold: images, volumes, sizes, processors, networks, and
`dockerArguments`, words for `docker run` that are read as Docker would. Pure.

Words that would change where a run's output goes, how its end is known or whose its files are, are refused with the
reason; so is a word that Docker would take for the image, or an option that would swallow it.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from holdfast.project.credentials import looks_secret
from holdfast.project.problems import Mistake
from holdfast.shown_text import pasted

DEFAULT_IMAGE = "ubuntu:24.04"
SHARE = "/azureml-share/"
"""Where a script in a container finds what is shared between runs; the name is as old as the files."""
DEFAULT_NETWORK = "host"

_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::\d+)?|\[[0-9A-Fa-f:]+\](?::\d+)?"
_TAG = r":\w[\w.-]{0,127}"
_DIGEST = r"@sha256:[0-9a-f]{64}"
_IMAGE = rf"(?:(?:{_HOST})/)?{_PART}(?:/{_PART})*(?:{_TAG})?(?:{_DIGEST})?|sha256:[0-9a-f]{{64}}"
_LEAST_MEMORY = 6 << 20
_OWN = ("/etc/passwd", "/etc/group", "/proc", "/sys", "/dev")
"""Mounted by Holdfast or by Docker itself, so that nothing else can be."""


class VolumeLine(NamedTuple):
    """`source` is a path on the machine, which may begin with `~/`; `target` one in the container."""

    source: str
    target: str
    is_writable: bool


def image_mistake(written: str) -> Mistake | None:
    if re.fullmatch(_IMAGE, written, re.ASCII):
        return None
    what, remedy = f"`{written}` is not the name of an image", "Write it as `docker pull` takes it: ubuntu:24.04"
    if "://" in written:
        rest = written.partition("://")[2]
        return Mistake(f"`{written}` is a URL", f"Write the image alone: {rest or DEFAULT_IMAGE}")
    if written != written.lower() and re.fullmatch(_IMAGE, written.lower(), re.ASCII):
        return Mistake(f"{what}: those have small letters only", f"Write `{written.lower()}`, if that is meant.")
    return Mistake(what, remedy)


def parse_volume(written: str) -> VolumeLine | Mistake:
    """Of `SOURCE:TARGET`, `SOURCE:TARGET:ro` or `SOURCE:TARGET:rw`."""
    example = "Write it like `/data/images:/data`; it is read-only unless `:rw` follows."
    if not written.isprintable():
        return Mistake("holds a line break or control character", example)
    source, *rest = written.split(":")
    mode = rest.pop() if len(rest) == 2 else "ro"
    if len(rest) != 1 or mode not in ("ro", "rw"):
        return Mistake(f"`{written}` is not `source:target`", example)
    (target,) = rest
    if not re.match(r"~?/", source):
        remedy = "Begin it with `/` or `~/`."
        if re.fullmatch(r"[A-Za-z0-9][\w.-]*", source, re.ASCII):
            mount = f"--mount=type=volume,source={source},target={target}"
            remedy += f" If a volume of Docker's own is meant, write this below `dockerArguments:`: - {mount}"
        return Mistake(f"`{source}` is no path on the machine", remedy)
    if not target.startswith("/"):
        return Mistake(f"`{target}` is no path in the container", f"Begin it with `/`: {source}:/{target or 'data'}")
    folder = _normal(target)
    if folder == "/" or any(f"{folder}/".startswith(f"{each}/") for each in (*_OWN, _normal(SHARE))):
        return Mistake(f"`{target}` cannot be mounted over", "Choose another folder in the container, such as /data.")
    return VolumeLine(source, folder, mode == "rw")


def memory_mistake(written: str) -> Mistake | None:
    return _size_mistake(written, _LEAST_MEMORY, "memory")


def shm_mistake(written: str) -> Mistake | None:
    return _size_mistake(written, 1 << 20, "shmSize")


def cpus_mistake(written: str) -> Mistake | None:
    if re.fullmatch(r"\d{1,5}(\.\d{1,9})?", written, re.ASCII) and float(written) >= 0.01:
        return None
    return Mistake(f"`{written}` is not a number of processors", "Write it like `cpus: 4` or `cpus: 0.5`.")


def network_mistake(written: str) -> Mistake | None:
    is_truth = written.lower() in ("true", "false", "yes", "no", "on", "off")
    if not is_truth and re.fullmatch(r"(container:)?[A-Za-z0-9][\w.-]*", written, re.ASCII):
        return None
    return Mistake(f"`{written}` is not a network", "Write host, bridge, none, or the name of a Docker network.")


def _size_mistake(written: str, least: int, key: str) -> Mistake | None:
    """As Docker reads sizes: `8g`, `512m`, `1.5g`, `16GiB`; always by 1024; a bare number is bytes."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([kmgtp]?)i?b?", written.lower(), re.ASCII)
    if not found:
        return Mistake(f"`{written}` is not a size", f"Write it like `{key}: 8g` or `{key}: 512m`.")
    count = float(found[1]) * 1024.0 ** " kmgtp".index(found[2] or " ")
    if count >= least:
        return None
    if not found[2]:
        return Mistake(f"`{written}` is a number of bytes", f"Write the unit: `{key}: {found[1]}g`")
    return Mistake(f"`{written}` is too small for a container", f"Write `{key}: {least >> 20}m` or more.")


def _normal(path: str) -> str:
    found = posixpath.normpath(path)
    return found[1:] if found.startswith("//") else found


class _Option(NamedTuple):
    """One option as Docker understands it: its long name, its value, None where it has none; `item` is where."""

    name: str
    value: str | None
    item: int


class Judged(NamedTuple):
    """`words` are for the command line; `errors` and `warnings` each with the number of its item."""

    words: tuple[str, ...]
    errors: tuple[tuple[Mistake, int], ...]
    warnings: tuple[tuple[Mistake, int], ...]


def judge(items: Sequence[str], network: str) -> Judged:
    """Of the items as written. Each may hold several words, quoted as for a shell."""
    words: list[tuple[str, int]] = []
    errors: list[tuple[Mistake, int]] = []
    for at, line in enumerate(items):
        if not line.isprintable():
            errors.append((Mistake("holds a line break or control character", "Write one line of plain text."), at))
            continue
        try:
            words += [(word, at) for word in shlex.split(line)]
        except ValueError:
            errors.append((Mistake("a quote is never closed", "Close it, or write a backslash before it."), at))
    warnings: list[tuple[Mistake, int]] = []
    for option in _options(words, errors):
        refused = _refusal(option.name, option.value)
        if refused is not None:
            errors.append((refused, option.item))
        doubt = _doubt(option.name, option.value, network)
        if doubt is not None and refused is None:
            warnings.append((doubt, option.item))
    return Judged(tuple(word for word, _ in words), tuple(errors), tuple(warnings))


def _options(words: list[tuple[str, int]], errors: list[tuple[Mistake, int]]) -> Iterator[_Option]:
    """Adds to `errors` what is no option."""
    rest = list(words)
    while rest:
        word, at = rest.pop(0)
        if not word.startswith("-") or word in ("-", "--"):
            what = Mistake(f"`{_shown(word)}` is no option: Docker would take it for the image", "Remove it.")
            errors.append((what, at))
            continue
        for name, value in _read(word):
            if value is None and name not in SWITCHES:
                if name not in VALUED:
                    errors.append((_unknown(name), at))
                    if rest and not rest[0][0].startswith("-"):
                        rest.pop(0)  # its value, most likely
                    break
                if not rest:
                    what = Mistake(f"`{name}` has no value", f"Write it in one word: {name}=value")
                    errors.append((what, at))
                    return
                value = rest.pop(0)[0]  # noqa: PLW2901 - the value is the next word
            yield _Option(name, value, at)


def _read(word: str) -> Iterator[tuple[str, str | None]]:
    """`--name=value`, `-it`, `-p80:80` as options by their long names. A value of None may follow as a word."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        yield _ALIASES.get(name, name), value if equals else None
        return
    letters = word[1:]
    while letters:
        name = SHORT.get(letters[0], f"-{letters[0]}")
        letters = letters[1:]
        if name in SWITCHES:
            yield name, None
            continue
        yield name, letters.removeprefix("=") if letters else None
        return


def _unknown(name: str) -> Mistake:
    what = f"`{_shown(name)}` is an option that this version of Holdfast does not know"
    whole = f"Write it with its value in one word: {_shown(name)}=value"
    return Mistake(what, whole if name.startswith("--") else "Write it by its long name.")


def _refusal(name: str, value: str | None) -> Mistake | None:
    given = value or ""
    if name in REFUSED:
        why, remedy = REFUSED[name]
        return Mistake(f"`{name}` cannot be used: {why}", remedy)
    variable = given.partition("=")[0]
    if (name == "--runtime" and given.startswith("nvidia")) or (name == "--device" and given.startswith("nvidia.com/")):
        return Mistake(f"`{name}` cannot be used: {_GPUS[0]}", _GPUS[1])
    if name == "--env" and variable in ("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"):
        return Mistake(f"`{variable}` cannot be set: {_GPUS[0]}", _GPUS[1])
    if name == "--label" and given.startswith("holdfast."):
        return Mistake("labels that begin with `holdfast.` are Holdfast's own", "Name it differently.")
    return None


def _doubt(name: str, value: str | None, network: str) -> Mistake | None:
    variable, equals, given = (value or "").partition("=")
    if name == "--env" and equals and given and looks_secret(variable):
        what = f"`{_shown(variable)}` looks like a secret: its value stands in this file and in `docker inspect`"
        return Mistake(what, f"Remove it, set it in your shell and pass it: --secret {pasted(_shown(variable))}")
    if name in ("--publish", "--publish-all") and network == "host":
        what = f"`{name}` does nothing on the machine's own network, whose ports the script has anyway"
        return Mistake(what, "Remove it, or write `network: bridge`.")
    return None


def _shown(word: str) -> str:
    return word if len(word) <= 40 else f"{word[:40]}…"


_GPUS = (
    "`nvidiaDocker` says whether the container gets the GPUs",
    "Write `nvidiaDocker: true` for all of them, or `Gpus: 1` in the run configuration (or submit --gpus 1) for one.",
)
_BACKGROUND = ("the run does not depend on Docker's own streams; its output is in its log", "Remove it.")
_OWNER = ("files that the script writes would not be yours", "Remove it: the script runs as you.")
_VOLUMES = (
    "Docker would make a missing folder, as root",
    "Write `- /data:/data` below `volumes:`. A volume of Docker's own: --mount=type=volume,source=NAME,target=/data",
)
_OTHER_IMAGE = ("the image is what `baseDockerImage` names", "Remove it.")
_HEALTH = ("it would not be asked for: a run lives as long as its script", "Remove it.")
REFUSED: Mapping[str, tuple[str, str]] = {
    "--rm": ("how the run ended is read from its container, which is removed afterwards", "Remove it."),
    "--name": ("the container is named after its run", "Remove it; `holdfast history info` shows the name."),
    "--detach": _BACKGROUND,
    "--interactive": _BACKGROUND,
    "--tty": _BACKGROUND,
    "--attach": _BACKGROUND,
    "--sig-proxy": _BACKGROUND,
    "--detach-keys": _BACKGROUND,
    "--log-driver": _BACKGROUND,
    "--log-opt": _BACKGROUND,
    "--entrypoint": ("the script is what runs; entry points are passed over", "Remove it."),
    "--user": _OWNER,
    "--userns": _OWNER,
    "--workdir": ("the script runs in the run's own copy of the project", "Remove it."),
    "--restart": ("a run happens once", "Remove it."),
    "--cidfile": ("the container is named after its run", "Remove it; `holdfast history info` shows the name."),
    "--pull": _OTHER_IMAGE,
    "--platform": _OTHER_IMAGE,
    "--help": ("it starts nothing", "Remove it."),
    "--gpus": _GPUS,
    "--health-cmd": _HEALTH,
    "--health-interval": _HEALTH,
    "--health-retries": _HEALTH,
    "--health-start-interval": _HEALTH,
    "--health-start-period": _HEALTH,
    "--health-timeout": _HEALTH,
    "--volume": _VOLUMES,
    "--volumes-from": ("it would bring folders that are not named here", "Write them below `volumes:`."),
    "--network": ("it has a key of its own", "Write `network: …`."),
    "--shm-size": ("it has a key of its own", "Write `shmSize: …`."),
    "--memory": ("it has a key of its own", "Write `memory: …`."),
    "--cpus": ("it has a key of its own", "Write `cpus: …`."),
}
"""Why an option would break a run, or where it is to be written, and what to do."""

_SWITCHES = """
disable-content-trust detach help init interactive no-healthcheck oom-kill-disable privileged publish-all quiet
read-only rm sig-proxy tty use-api-socket
"""
_VALUED = """
add-host annotation attach blkio-weight blkio-weight-device cap-add cap-drop cgroup-parent cgroupns cidfile cpu-count
cpu-percent cpu-period cpu-quota cpu-rt-period cpu-rt-runtime cpu-shares cpus cpuset-cpus cpuset-mems detach-keys device
device-cgroup-rule device-read-bps device-read-iops device-write-bps device-write-iops dns dns-option dns-search
domainname entrypoint env env-file expose gpus group-add health-cmd health-interval health-retries health-start-interval
health-start-period health-timeout hostname ip ip6 ipc isolation kernel-memory label label-file link link-local-ip
log-driver log-opt mac-address memory memory-reservation memory-swap memory-swappiness mount name network network-alias
oom-score-adj pid pids-limit platform publish pull restart runtime security-opt shm-size stop-signal stop-timeout
storage-opt sysctl tmpfs ulimit user userns uts volume volume-driver volumes-from workdir
"""
SWITCHES = frozenset(f"--{name}" for name in _SWITCHES.split())
"""Options of `docker run` without a value, or with one only after `=`."""
VALUED = frozenset(f"--{name}" for name in _VALUED.split())
"""Those whose value may be the next word."""
_ALIASES = {"--net": "--network", "--net-alias": "--network-alias", "--dns-opt": "--dns-option"}
SHORT = {
    "a": "--attach",
    "c": "--cpu-shares",
    "d": "--detach",
    "e": "--env",
    "h": "--hostname",
    "i": "--interactive",
    "l": "--label",
    "m": "--memory",
    "P": "--publish-all",
    "p": "--publish",
    "q": "--quiet",
    "t": "--tty",
    "u": "--user",
    "v": "--volume",
    "w": "--workdir",
}
