"""Facts and samples of GPUs in short form, for tables: a device is a K80 by default, a look is one second after the one
before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.farside.environments.build_findings import BuildFinding
from holdfast.farside.gpu.devices import GpuDevice
from holdfast.farside.gpu.gpu_facts import NOTHING, End, GpuFacts
from holdfast.farside.gpu.request import GpuRequest
from holdfast.farside.gpu.samples import Row, Samples, Tick
from holdfast.history.gpu_series import Point, Series

START = 1_000_000.0
GIB = 1 << 30
OWN, STRANGER = 4000, 7000
ASKED = GpuRequest(asked=True, by="`--gpus 1`")
CPU_BUILD = BuildFinding(
    *(
        "cpu-build",
        "torch",
        "PyTorch 2.13.0+cpu was built without CUDA: it computes on the CPU and leaves the GPU idle.",
    ),
    *("Take `+cpu` out where it stands.", "error"),
)
TOO_OLD = BuildFinding("driver-too-old", "torch", "PyTorch was built for CUDA 13.", "Update the driver.", "error")
NO_CODE = BuildFinding("no-code-for-gpu", "torch", "PyTorch has no code for Tesla K80.", "Take an older one.", "error")
MISMATCH = BuildFinding("plugin-mismatch", "jax-cuda12-plugin", "JAX will not use it.", "Write `jax[cuda12]`.", "error")


def uuid(number: int) -> str:
    return f"GPU-{number:08x}-0000-4000-8000-000000000000"


def device(number: int = 0, **other: Any) -> GpuDevice:
    return GpuDevice(number, uuid(number), "Tesla K80", 12 * GIB, 12 * GIB)._replace(**other)


def facts(*devices: GpuDevice, **other: Any) -> GpuFacts:
    """By default, one device and a run that asked."""
    known = NOTHING._replace(
        request=ASKED, driver_state="ok", driver="470.82.01", cuda="11.4", devices=devices or (device(),)
    )
    return known._replace(file="my_dsvm.compute", has_machine_pids=True)._replace(**other)


def leasing(count: int, of: int = 0, **other: Any) -> GpuFacts:
    """The first `count` of `of` devices are leased."""
    devices = [device(number) for number in range(of or count)]
    return facts(*devices, leased=tuple(uuid(number) for number in range(count)), **other)


def row(number: int = 0, utilisation: int | None = 0, **other: Any) -> Row:
    return Row(number, utilisation, 0, 60.0, 40, 0, 0, (), (), 0)._replace(**other)


def working(number: int = 0, percent: int = 74, memory: int = 8 * GIB, **other: Any) -> Row:
    values = {"memory": memory, "own_memory": memory, "own_utilisation": percent, "own": (OWN,), **other}
    return row(number, percent, **values)


def holding(number: int = 0, memory: int = GIB, **other: Any) -> Row:
    return row(number, 0, memory=memory, own_memory=memory, own=(OWN,), **other)


def strange(number: int = 0, percent: int = 90) -> Row:
    return row(number, percent, memory=6 * GIB, others=(STRANGER,))


def samples(*looks: Sequence[Row], at: Callable[[int], float] = float, **other: Any) -> Samples:
    """Look number N (from 1) is `at(N)` seconds after the start."""
    ticks = tuple(Tick(START + at(place), tuple(rows)) for place, rows in enumerate(looks, 1))
    known = {each.number: each for rows in looks for each in rows}
    devices = tuple(GpuDevice(number, uuid(number), "Tesla K80", 12 * GIB) for number in sorted(known))
    values: dict[str, Any] = {"began": START, "source": "nvml", "devices": devices, "ticks": ticks, **other}
    return Samples(**values)


def end(seconds: float, code: int | None = 0, **other: Any) -> End:
    values = {"signal": None, "said": (), "left": (), "is_stalled": False, **other}
    return End(started=START, ended=START + seconds, code=code, **values)


def series(*values: tuple[float | None, float | None], total: int | None = 4 * GIB, number: int = 0) -> Series:
    """One look a second."""
    points = tuple(Point(float(at), at + 1.0, busy, memory) for at, (busy, memory) in enumerate(values))
    busiest = max((busy for busy, _ in values if busy is not None), default=None)
    fullest = max((memory for _, memory in values if memory is not None), default=None)
    return Series(number, f"GPU-{number + 1}", "Tesla K80", total, points, busiest, fullest)
