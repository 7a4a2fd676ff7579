"""Boxes with Docker: the account on the far side of a real SSH server may use a daemon of the kit, or may not."""

from __future__ import annotations

import dataclasses

from kit.boxes import Box, Boxes
from kit.docker.daemon import GROUP, Daemon
from kit.sshd import Client, Options


def docker_box(
    kit: Boxes,
    client: Client,
    daemon: Daemon,
    name: str = "gpu1",
    allowed: bool = True,
    options: Options = Options(),  # noqa: B008 - it is frozen
) -> Box:
    """A box whose sessions find `daemon` by DOCKER_HOST. An allowed account is in the group of its socket.
    `box.account.join("docker")` allows another one, from its next login on."""
    account = kit.account()
    if allowed:
        account.join(GROUP)
    environment = {**options.environment, **daemon.environment}
    server = kit.server(dataclasses.replace(options, environment=environment))
    return kit.box(name, client, account, server)
