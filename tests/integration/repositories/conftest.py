"""A box whose account may use Docker, for the commands of each repository."""

from __future__ import annotations

from integration.docker.conftest import docker, docker_box, docker_template, shared_docker  # noqa: F401 - fixtures
from integration.remote.conftest import boxes, client, kit_folder  # noqa: F401
