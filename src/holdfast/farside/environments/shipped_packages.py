"""Packages that were sent for an environment, for a machine that reaches no index."""

import contextlib
import json
import os
import re
from typing import Any, Iterator, List

from holdfast.farside.system.files import remove_tree
from holdfast.farside.system.layout import Home, object_path
from holdfast.farside.system.nofollow import open_folder
from holdfast.farside.system.refusal import Refused

FOLDER = "packages"
"""Among what installers read, while the environment is built."""
OFFLINE = {"UV_OFFLINE": "1"}
_DIRECT = re.compile(r"^(\S+) @ (https?://\S+)", re.MULTILINE)


def require_packages(home: Home, manifest: str) -> None:
    """Refuse, so that they get sent, where one is not here. The others are not removed meanwhile: their manifest is a
    young one again."""
    try:
        os.utime(object_path(home.objects(), manifest))
    except FileNotFoundError:
        raise Refused("packages", "The packages of this environment are not here yet.")
    missing = [name for name, path, size in _files(home, manifest) if not _has(path, size)]
    if missing:
        raise Refused("packages", "%d packages are not here yet." % len(missing))


@contextlib.contextmanager
def laid_out(home: Home, manifest: str, build_folder: str) -> Iterator[str]:
    """A folder with the files under their own names, as long as the block lasts."""
    folder = os.path.join(build_folder, FOLDER)
    remove_tree(folder)
    os.mkdir(folder)
    try:
        descriptor = open_folder(folder)
        try:
            for name, path, _ in _files(home, manifest):
                try:
                    os.link(path, name, dst_dir_fd=descriptor)
                except FileNotFoundError:
                    raise Refused("preparation", "the package `%s` is not here any more; submit again" % name) from None
        finally:
            os.close(descriptor)
        yield folder
    finally:
        remove_tree(folder)


def install_arguments(folder: str) -> List[str]:
    """Of uv: nothing but the folder is looked at, whatever this machine's own settings name."""
    return ["--offline", "--no-index", "--no-config", "--find-links", folder]


def from_folder(requirements: str, folder: str) -> str:
    """The lock with what it has by an address named by its file instead. Hashes stay, and are checked."""
    from urllib.parse import quote, unquote, urlsplit

    def local(found: Any) -> str:
        name = unquote(urlsplit(found.group(2)).path.rpartition("/")[2])
        path = os.path.join(folder, name)
        return "%s @ file://%s" % (found.group(1), quote(path)) if os.path.exists(path) else str(found.group(0))

    return _DIRECT.sub(local, requirements)


def _files(home: Home, manifest: str) -> Iterator[Any]:
    """Name, object and size of each."""
    with open(object_path(home.objects(), manifest)) as source:
        rows = json.load(source)["files"]
    for name, _, digest, size in rows:
        if os.path.basename(name) != name or name in ("", ".", ".."):
            raise Refused("refused", "`%s` is not the name of a package." % name)
        yield name, object_path(home.objects(), digest), int(size)


def _has(path: str, size: int) -> bool:
    try:
        return os.stat(path).st_size == size
    except FileNotFoundError:
        return False
