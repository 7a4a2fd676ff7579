"""What the keys of a `.compute` file about containers may hold: images, volumes, sizes, processors, networks. Pure."""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple

from holdfast.project.problems import Mistake

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
"""Mounted by Holdfast or by Docker itself, so that nobody else can."""


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
    if folder == "/" or any(_is_below(folder, each) for each in (*_OWN, _normal(SHARE))):
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
    if written.lower() in ("true", "false", "yes", "no", "on", "off"):
        return Mistake(f"`{written}` is not a network", "Write host, bridge, none, or the name of a Docker network.")
    if re.fullmatch(r"(container:)?[A-Za-z0-9][\w.-]*", written, re.ASCII):
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


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")
