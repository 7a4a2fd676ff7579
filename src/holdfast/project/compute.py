"""Compute targets: `<name>.compute`, in `aml_config/` or the account's own folder, says where a run runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.frozen import dataclass, replace
from holdfast.project.configuration_folders import BUILTIN, ConfigurationFolders
from holdfast.project.problems import Mistake, Problem, errors_in
from holdfast.shown_text import pasted

if TYPE_CHECKING:  # reading YAML is loaded when there is a file to read: a bare folder has none
    from holdfast.project.documents import Value
    from holdfast.project.fields import Fields

SUFFIX = ".compute"

TYPES = ("local", "docker", "remote", "remotedocker", "cluster")
SPELLINGS = (*TYPES, "localdocker")
REMOTE_TYPES = frozenset(("remote", "remotedocker", "cluster"))
CONTAINER_TYPES = frozenset(("docker", "remotedocker"))
_USER_MANAGED_TYPES = frozenset(("local", "remote"))
"""Types whose Python is the user's own unless `userManagedEnvironment: false` is written."""

AUTO = "auto"
"""The value of `userManagedEnvironment` that leaves it to the project: whether it has a file of packages."""

_OF_EVERY_TYPE = (
    "type",
    "pythonLocation",
    "sparkSubmitLocation",
    "nativeSharedDirectory",
    "userManagedEnvironment",
)
_OF_REMOTE_TYPES = ("address", "username", "password", "privateKey", "holdfastHome")
_OF_CONTAINER_TYPES = (
    "baseDockerImage",
    "nvidiaDocker",
    "sharedVolumes",
    "volumes",
    "shmSize",
    "memory",
    "cpus",
    "network",
    "dockerArguments",
)
_OF_CLUSTERS = ("yarnDeployMode",)
KEYS = (*_OF_EVERY_TYPE, *_OF_REMOTE_TYPES, *_OF_CONTAINER_TYPES, *_OF_CLUSTERS)

_OTHER_NAMES = {
    "baseImage": "Write `baseDockerImage`.",
    "image": "Write `baseDockerImage`.",
    "gpu": "Write `nvidiaDocker: true`.",
    "gpus": "Write `nvidiaDocker: true`.",
    "mounts": "Write `volumes:` with lines like `- /data:/data`.",
    "ports": "The network is the machine's own, ports included; else `network: bridge`, `dockerArguments: -p 80:80`.",
}
"""What people write for a key, and what to write."""

_SECRET_REFERENCE = "AzureMlSecret="  # noqa: S105 - the prefix of a reference, no secret


@dataclass(frozen=True)
class ComputeTarget:
    """`type` is one of `TYPES`; `port` is None for the default, `username` for what ssh's own configuration says;
    `private_key` is a path on this machine, `home` (Holdfast's folder there; None is `~/.holdfast`) and, for a remote
    type, `python_location` are paths on the target; `user_managed_environment` None is `auto`: an environment is built
    where the project has a file of packages; `file` is relative to the project, a whole path for a target of the
    account, and None for the built-in one. Of containers,
    `nvidia_docker` is None where nothing is written; `volumes` and `docker_arguments` are as written, the latter as
    words; None leaves `shm_size`, `memory`, `cpus` and `network` to the defaults."""

    name: str
    type: str
    address: str | None = None
    port: int | None = None
    username: str | None = None
    private_key: str | None = None
    base_docker_image: str | None = None
    nvidia_docker: bool | None = None
    shared_volumes: bool = False
    native_shared_directory: str | None = None
    python_location: str | None = None
    spark_submit_location: str = "spark-submit"
    user_managed_environment: bool | None = False
    yarn_deploy_mode: str = "cluster"
    file: str | None = None
    home: str | None = None
    volumes: tuple[str, ...] = ()
    shm_size: str | None = None
    memory: str | None = None
    cpus: str | None = None
    network: str | None = None
    docker_arguments: tuple[str, ...] = ()


BUILTIN_LOCAL = ComputeTarget(name=BUILTIN, type="local", user_managed_environment=True)


def compute_names(folders: ConfigurationFolders) -> list[str]:
    """Every name that `read_compute` reads: those with a file, and `local`."""
    return folders.names(SUFFIX)


def has_compute(folders: ConfigurationFolders, name: str) -> bool:
    return folders.has(name, SUFFIX)


def read_compute(folders: ConfigurationFolders, name: str) -> tuple[ComputeTarget | None, list[Problem]]:
    """The target, None when the file has an error; warnings come with a target."""
    target, problems = examine_compute(folders, name)
    return (None if errors_in(problems) else target), problems


def examine_compute(folders: ConfigurationFolders, name: str) -> tuple[ComputeTarget | None, list[Problem]]:
    """As `read_compute`, but also returns what could be read of a file with errors: to show, not to run."""
    if name == BUILTIN and name not in folders.of_project(SUFFIX):
        return BUILTIN_LOCAL, []
    from holdfast.project.fields import Fields

    document, problems = folders.read(name, SUFFIX, "See `holdfast computetarget list`.")
    if document is None:
        return None, problems
    fields = Fields(document, problems)
    fields.check_keys(KEYS, _OTHER_NAMES)
    target = _target(fields, name, document.file)
    return target, fields.in_order()


def render_compute(target: ComputeTarget) -> str:
    """The text of a new file, with the keys that say something."""
    from holdfast.project.documents import render_scalar

    lines = []
    for key, value in written_keys(target).items():
        if isinstance(value, list):
            lines += [f"{key}:", *(f"  - {render_scalar(each)}" for each in value)]
        else:
            lines.append(f"{key}: {render_scalar(value)}")
    return "".join(f"{line}\n" for line in lines)


def written_keys(target: ComputeTarget) -> dict[str, Value | list[str]]:
    """The keys of a target's file, with their values. Those that the target leaves open are absent."""
    keys: list[tuple[str, Value | list[str] | None]] = [
        ("type", target.type),
        ("address", render_address(target.address, target.port) if target.address is not None else None),
        ("username", target.username),
        ("privateKey", target.private_key),
        ("holdfastHome", target.home),
        ("baseDockerImage", target.base_docker_image),
        ("nvidiaDocker", target.nvidia_docker),
        ("sharedVolumes", target.shared_volumes or None),
        ("volumes", list(target.volumes) or None),
        ("shmSize", target.shm_size),
        ("memory", target.memory),
        ("cpus", target.cpus),
        ("network", target.network),
        ("dockerArguments", _quoted(target.docker_arguments) or None),
        ("nativeSharedDirectory", target.native_shared_directory),
        ("pythonLocation", target.python_location),
        (
            "sparkSubmitLocation",
            target.spark_submit_location if target.spark_submit_location != "spark-submit" else None,
        ),
        (
            "userManagedEnvironment",
            AUTO if target.user_managed_environment is None else target.user_managed_environment,
        ),
        ("yarnDeployMode", target.yarn_deploy_mode if target.type == "cluster" else None),
    ]
    return {key: value for key, value in keys if value is not None}


def _quoted(words: tuple[str, ...]) -> list[str]:
    import shlex  # only where there are any

    return [shlex.quote(each) for each in words]


def render_address(host: str, port: int | None) -> str:
    """`gpu1`, `gpu1:2222`, `[2001:db8::1]:2222`."""
    if port is None:
        return host
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_address(written: str) -> tuple[str, int | None] | Mistake:
    """The host and its port, None for the default, of `HOST[:PORT]`."""
    host, port = _split_port(written)
    if "://" in written:
        rest = written.partition("://")[2].partition("/")[0].rpartition("@")[2]
        return Mistake(f"`{written}` is a URL", f"Write the host alone: {rest or 'gpu1 or gpu1:2222'}")
    if "@" in written:
        return Mistake(f"`{written}` holds a user name", "Write it as `username:`.")
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*|(?=[0-9A-Fa-f.]*:)[0-9A-Fa-f:.]+(%\w+)?", host, re.ASCII):
        return Mistake(f"`{written}` is not a host", "Write a host name or address, such as gpu1 or gpu1:2222.")
    if port is not None and not (re.fullmatch(r"\d{1,5}", port, re.ASCII) and 0 < int(port) < 65_536):
        return Mistake(f"`{port}` is not a port", "Write a number from 1 to 65535 after the colon.")
    return host, int(port) if port is not None else None


def user_mistake(written: str) -> Mistake | None:
    """Narrow: ssh's configuration may put the name into a command for a shell (`ProxyCommand … %r`)."""
    if re.fullmatch(r"(?!-)[A-Za-z0-9._-]+\$?", written, re.ASCII):
        return None
    return Mistake(f"`{written}` is not a user name", "Write the name alone: letters, digits, `.`, `_` and `-`.")


def home_mistake(written: str) -> Mistake | None:
    """Holdfast's folder on a host must mean the same in every working directory, and be a folder of its own. Whether an
    existing one may be used, the host checks."""
    remedy = "Write a path that begins with `/` or `~/`."
    if not written:
        return Mistake("no folder is named", f"{remedy} Without it, it is ~/.holdfast.")
    if not written.isprintable() or not re.match(r"~?/", written):
        return Mistake(f"`{written}` means another folder in every folder", remedy)
    parts = [part for part in written.split("/")[1:] if part not in ("", ".")]
    if not parts or ".." in parts:
        remedy = "Write one for Holdfast alone, such as ~/holdfast or /scratch/me/holdfast."
        return Mistake(f"`{written}` is not a folder of its own", remedy)
    return None


def _target(fields: Fields, name: str, relative: str) -> ComputeTarget:
    spelling = fields.choice("type", SPELLINGS)
    kind = "docker" if spelling == "localdocker" else spelling
    if kind is None and fields.lacks("type"):
        fields.error("type", "missing", f"Write `type: local`, or another of {', '.join(SPELLINGS)}.")
    _check_password(fields, name)
    host, port = _address(fields)
    username = _checked(fields, "username", user_mistake)
    target = ComputeTarget(
        name=name,
        type=kind or "local",
        address=host,
        port=port,
        username=username,
        private_key=fields.text("privateKey"),
        base_docker_image=fields.text("baseDockerImage"),
        nvidia_docker=fields.boolean("nvidiaDocker", default=False) if fields.has("nvidiaDocker") else None,
        shared_volumes=fields.boolean("sharedVolumes", default=False),
        native_shared_directory=fields.text("nativeSharedDirectory"),
        python_location=fields.text("pythonLocation"),
        spark_submit_location=fields.text("sparkSubmitLocation") or "spark-submit",
        user_managed_environment=_is_user_managed(fields, kind),
        yarn_deploy_mode=fields.choice("yarnDeployMode", ("cluster", "client")) or "cluster",
        file=relative,
        home=_checked(fields, "holdfastHome", home_mistake),
    )
    if kind is None or kind in CONTAINER_TYPES:
        target = _with_container_keys(fields, target)
    if kind is not None:
        _check_keys_of_type(fields, kind)
    return target


def _is_user_managed(fields: Fields, kind: str | None) -> bool | None:
    """A container has its own packages anyway, so `auto` means `false` there."""
    key, is_usual = "userManagedEnvironment", kind is None or kind in _USER_MANAGED_TYPES
    written = getattr(fields.value(key), "text", "") if fields.has(key) else ""
    if str(written).strip().lower() == AUTO:
        return None if is_usual else False
    return fields.boolean(key, default=is_usual, others=(AUTO,))


def _with_container_keys(fields: Fields, target: ComputeTarget) -> ComputeTarget:
    from holdfast.project import container_keys

    image = target.base_docker_image
    mistake = container_keys.image_mistake(image) if image is not None else None
    if mistake is not None:
        fields.error("baseDockerImage", mistake.message, mistake.remedy)
    network = _checked(fields, "network", container_keys.network_mistake)
    return replace(
        target,
        volumes=_volumes(fields),
        shm_size=_checked(fields, "shmSize", container_keys.shm_mistake),
        memory=_checked(fields, "memory", container_keys.memory_mistake),
        cpus=_checked(fields, "cpus", container_keys.cpus_mistake),
        network=network,
        docker_arguments=_docker_arguments(fields, network or container_keys.DEFAULT_NETWORK),
    )


def _volumes(fields: Fields) -> tuple[str, ...]:
    from holdfast.project.container_keys import parse_volume

    seen: dict[str, str] = {}
    for item in fields.texts("volumes", "/data/images:/data") or ():
        found = parse_volume(item.text)
        if isinstance(found, Mistake):
            fields.error("volumes", found.message, found.remedy, item)
        elif found.target in seen:
            fields.error("volumes", f"`{found.target}` is named twice", "Remove one of the two.", item)
        else:
            seen[found.target] = item.text
    return tuple(seen.values())


def _docker_arguments(fields: Fields, network: str) -> tuple[str, ...]:
    """A list of words, or one line of them: what people copy from a command line."""
    if not fields.has("dockerArguments"):
        return ()
    from holdfast.project.container_keys import judge
    from holdfast.project.nodes import Scalar

    written = fields.value("dockerArguments")
    items = (written,) if isinstance(written, Scalar) else fields.texts("dockerArguments", "--ulimit=memlock=-1") or ()
    judged = judge([each.text for each in items], network)
    for mistake, number in judged.errors:
        fields.error("dockerArguments", mistake.message, mistake.remedy, items[number])
    for mistake, number in judged.warnings:
        fields.warn("dockerArguments", mistake.message, mistake.remedy, items[number])
    return judged.words


def _check_keys_of_type(fields: Fields, kind: str) -> None:
    if kind in REMOTE_TYPES and fields.lacks("address"):
        fields.error("address", f"missing, and a `{kind}` target needs it", "Write `address: …`.")
    groups = (
        (_OF_REMOTE_TYPES, kind in REMOTE_TYPES),
        (_OF_CONTAINER_TYPES, kind in CONTAINER_TYPES),
        (_OF_CLUSTERS, kind == "cluster"),
    )
    for keys, belongs in groups:
        for key in keys:
            if not belongs and key != "password" and _says_something(fields, key):
                fields.warn(key, f"has no meaning for a target of type `{kind}`", "Remove the line.")


def _says_something(fields: Fields, key: str) -> bool:
    """Old files name `localhost` or `false` where nothing was meant."""
    if not fields.has(key):
        return False
    written = getattr(fields.value(key), "text", "")
    return str(written).lower() not in ("localhost", "127.0.0.1", "false", "no", "off")


def _check_password(fields: Fields, name: str) -> None:
    """The value is never repeated, neither here nor in any message."""
    if not fields.has("password"):
        return
    again = f"Remove the line and run `holdfast computetarget attach … --name {pasted(name)}`, which asks for it once."
    written = getattr(fields.value("password"), "text", "")
    if written.startswith(_SECRET_REFERENCE):
        fields.warn("password", "refers to a secret in a service that no longer exists", again)
    else:
        fields.error("password", "a password in a file is never used", again)


def _address(fields: Fields) -> tuple[str | None, int | None]:
    written = fields.text("address")
    if written is None:
        return None, None
    found = parse_address(written)
    if isinstance(found, Mistake):
        fields.error("address", found.message, found.remedy)
        return None, None
    return found


def _checked(fields: Fields, key: str, mistake_in: Callable[[str], Mistake | None]) -> str | None:
    written = fields.text(key)
    mistake = mistake_in(written) if written is not None else None
    if mistake is not None:
        fields.error(key, mistake.message, mistake.remedy)
    return written


def _split_port(written: str) -> tuple[str, str | None]:
    bracketed = re.fullmatch(r"\[([^\]]*)\](?::(.*))?", written)
    if bracketed:
        return bracketed[1], bracketed[2]
    if written.count(":") == 1:
        host, _, port = written.partition(":")
        return host, port
    return written, None
