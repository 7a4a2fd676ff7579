"""Lease and give back a GPU 200 times while 100 runs wait for others, with the far side of this installation."""

import os
import time

from holdfast.farside.gpu.lease import leases, registry
from holdfast.farside.gpu.request import GpuRequest


def device(number: int, mark: str) -> dict[str, object]:
    known = {"index": number, "state": "ok", "name": "K80", "uuid": f"GPU-{number}-{mark}", "mig": False}
    return {**known, "memory_total": 1, "memory_free": 1, "instances": [], "processes": []}


def main() -> None:
    mark = os.urandom(6).hex()
    report = {"state": "ok", "problem": "", "devices": [device(number, mark) for number in range(4)]}
    others = [registry.queue_up(1, [f"GPU-{number}-other-{mark}" for number in range(4)]) for _ in range(100)]
    who = leases.LeaseHolder(os.getuid(), "profiled", os.getpid())
    for _ in range(200):
        found = leases.lease(GpuRequest(gpus=1), report, lambda: report, print, time.sleep, who)
        registry.close(found.sockets)
    print(len(others), "waited")


main()
