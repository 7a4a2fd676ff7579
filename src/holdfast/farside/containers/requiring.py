"""What a compute target asks of the machine and of its image, looked at before a container is made: Docker's own words
for it name neither file nor key. Said alike to whoever checks a target and to whoever submits."""

import os
from typing import Dict

from holdfast.farside.containers.complaints import DOCKER
from holdfast.farside.containers.options import Wanted
from holdfast.farside.machine import gpus as machine_gpus
from holdfast.farside.refusal import Refused


def require_sources(wanted: Wanted) -> None:
    """An old Docker makes a folder that is missing, as root."""
    for place, volume in enumerate(wanted.volumes):
        if not os.path.exists(volume.source):
            raise Refused(
                DOCKER,
                "`volumes[%d]` in %s names `%s`, which is not on the machine `%s`."
                % (place, wanted.file, volume.source, os.uname().nodename),
                "Make the folder there, or correct the line.",
            )


def require_gpus(wanted: Wanted, environment: Dict[str, str], asked_by: str = "") -> None:
    """`asked_by` says where GPUs are asked for, if it is not the target."""
    if wanted.gpus and not machine_gpus.is_present(environment):
        raise Refused(
            DOCKER,
            "%s asks for GPUs, and the machine `%s` has no NVIDIA driver."
            % (asked_by or "`nvidiaDocker: true` in %s" % wanted.file, os.uname().nodename),
            "%s, or have the driver installed."
            % ("Submit without it" if asked_by else "Write `nvidiaDocker: false` there"),
        )


def require_python(wanted: Wanted, found: str) -> None:
    """`found`: what the image has of it, empty for nothing."""
    if not found:
        raise Refused(
            DOCKER,
            "The image `%s` has no Python `%s`, and `userManagedEnvironment: true` in %s wants the image's own."
            % (wanted.known_as, wanted.python or "python3", wanted.file),
            "Name it under `pythonLocation`, choose another `baseDockerImage`, or write "
            "`userManagedEnvironment: false`.",
        )


def traced(refusal: Refused, wanted: Wanted) -> Refused:
    """Of what Docker itself refused: with the file and the key where the cause is written."""
    for place, volume in enumerate(wanted.volumes):
        if "`%s`" % volume.source in refusal.message:
            return Refused(
                refusal.kind, "`volumes[%d]` in %s: %s" % (place, wanted.file, refusal.message), refusal.hint
            )
    return Refused(refusal.kind, refusal.message, refusal.hint.replace("the compute target", wanted.file))
