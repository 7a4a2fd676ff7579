"""Machines to reach over SSH: accounts behind real servers on loopback, made by the tests' kit, and the near side that
knows them. Commands by hand and ours use the same `ssh`, configuration, key and account."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from children import Place
from measuring import FailedError

from kit.boxes import Box, Boxes, boxes
from kit.sshd import Alias, Client
from kit.waiting import wait_for

HALF_A_TRIP = 0.1
"""Seconds that a slow link takes in each direction: a round trip of 200 ms."""

_NEEDED = ("sshd", "ssh", "rsync", "scp", "tar")


@dataclass(frozen=True)
class FarBox:
    """`port` is the one that the client uses: the server's own, or that of a link that delays and counts. The link is a
    Python process, so only rows that need it use it."""

    box: Box
    port: int

    @property
    def name(self) -> str:
        return self.box.name

    @property
    def compute(self) -> str:
        return self.box.compute.replace(self.box.address, f"127.0.0.1:{self.port}")

    def ssh(self, *options: str) -> str:
        """`ssh` as it is typed, up to the name of the box."""
        return shlex.join([*self.box.client.ssh, *options])


@contextmanager
def far_boxes() -> Iterator[Boxes]:
    """Raises FailedError if no box can be made."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [name for name in _NEEDED if shutil.which(name, path=path) is None]
    if missing:
        raise FailedError(f"not installed: {', '.join(missing)}")
    if os.geteuid() != 0:
        raise FailedError("the accounts of the boxes can only be made by root")
    with boxes() as kit:
        yield kit


def make_box(kit: Boxes, name: str, through_link: bool = False, client: Client | None = None) -> FarBox:
    """A new account on a new server; several boxes of one project have the same `client`."""
    box = kit.box(name, client or kit.client(), kit.account(), kit.server())
    return FarBox(box, box.link.port) if through_link else without_link(box)


def without_link(box: Box) -> FarBox:
    """The client knows the server's own port."""
    box.client.know(Alias(box.name, box.server.port, box.account.name, box.key))
    box.client.trust(box.server)
    return FarBox(box, box.server.port)


def reaching(place: Place, known: Sequence[FarBox]) -> Place:
    """The same place with a target for each box, named as the box is."""
    folder = place.project / "aml_config"
    folder.mkdir(exist_ok=True)
    for far in known:
        (folder / f"{far.name}.compute").write_text(far.compute)
        (folder / f"{far.name}.runconfig").write_text(f"Target: {far.name}\nFramework: Python\n")
    return replace(place, variables=tuple(known[0].box.environment.items()))


def disconnect(place: Place) -> None:
    """End the connections that Holdfast keeps open for this place, so that the next command makes a new one."""
    for socket in kept_connections(place):
        end = ["ssh", "-F", os.devnull, "-o", f"ControlPath={socket}", "-O", "exit", "any"]
        subprocess.run(end, capture_output=True, env=place.environment())
    wait_for(lambda: not kept_connections(place), what="the kept connections are closed")


def kept_connections(place: Place) -> list[Path]:
    """The sockets of their masters; their names are 16 hexadecimal digits. In Holdfast's folder where its path is short
    enough, else in the folder for temporary files."""
    name = "[0-9a-f]" * 16
    found = (*place.home.glob(f".holdfast/run-*/{name}"), *(place.root / "tmp").glob(f"*/{name}"))
    return [path for path in found if path.is_socket()]
