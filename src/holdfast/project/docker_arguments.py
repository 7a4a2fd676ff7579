"""`dockerArguments` of a `.compute` file: words for `docker run`, read as Docker would, judged before a run. Pure.

What would change where a run's output goes, how its end is known or whose its files are is refused, with the reason;
so is a word that Docker would take for the image, or an option that would swallow it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from holdfast.project.problems import Mistake
from holdfast.project.secret_names import looks_secret


class Option(NamedTuple):
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


def _options(words: list[tuple[str, int]], errors: list[tuple[Mistake, int]]) -> Iterator[Option]:
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
            yield Option(name, value, at)


def _read(word: str) -> Iterator[tuple[str, str | None]]:
    """`--name=value`, `-it`, `-p80:80` as options by their long names. A value of None may follow as a word."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        yield ALIASES.get(name, name), value if equals else None
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
        return Mistake(what, f"Remove it, set it in your shell and pass it: --secret {_shown(variable)}")
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
_IMAGE = ("the image is what `baseDockerImage` names", "Remove it.")
_HEALTH = ("nobody would ask for it: a run lives as long as its script", "Remove it.")
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
    "--pull": _IMAGE,
    "--platform": _IMAGE,
    "--help": ("it starts nothing", "Remove it."),
    "--gpus": _GPUS,
    "--health-cmd": _HEALTH,
    "--health-interval": _HEALTH,
    "--health-retries": _HEALTH,
    "--health-start-interval": _HEALTH,
    "--health-start-period": _HEALTH,
    "--health-timeout": _HEALTH,
    "--volume": _VOLUMES,
    "--volumes-from": ("it would bring folders that nobody has named here", "Write them below `volumes:`."),
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
ALIASES = {"--net": "--network", "--net-alias": "--network-alias", "--dns-opt": "--dns-option"}
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
