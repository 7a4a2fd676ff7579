"""A daemon for trying things by hand: `python -m kit.docker.serve FILE` writes what to source and runs until ended.

PYTHONPATH=tests .venv/bin/python -m kit.docker.serve /tmp/docker.env &
. /tmp/docker.env
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from kit.docker.gpus import offered
from kit.docker.holding import held
from kit.docker.images import template
from kit.nvml import Device, Simulated


def main(path: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    with held(template=template()) as daemon:
        daemon.start()
        gpus = Simulated(daemon.folder / "machine", [Device()])
        with offered(daemon, gpus):
            path.write_text(
                f"export DOCKER_HOST={daemon.host}\n"
                f"# its log is {daemon.log}, containers on its bridge see this machine as {daemon.gateway}\n"
                f"# {' '.join(daemon.images())}\n"
            )
            print(path.read_text(), flush=True)
            signal.pause()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
