"""The table of lies: 14 ways in which a run that should compute on a GPU does not, or not as it should, and 8 honest
runs that must not be accused. It is data, for the suite that proves it and for the benchmark row that shows it.

A script is Python text below PRELUDE, which has the words for it:

    looks(3)                        wait until the sampler has looked three more times
    lost()                          wait until it has found a device lost
    happens("device 0 lost 1")      a line of the simulated machine's state, from now on

So nothing waits for a time, and what happens to the machine happens at a known moment of the script. To be on a device
a script has the text that `occupy` of its product makes: the same words for a process on a machine and in a container.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kit.docker.gpu_hook import INSIDE
from kit.docker.gpus import occupying_inside
from kit.nvml import GIB, Device, Instance, occupying

CONTAINED = ("docker", "remotedocker")
PRODUCTS = ("local", "docker", "remote", "remotedocker")

OLD_DRIVER, DRIVER, NEW_DRIVER = ("535.104.05", 12020), ("570.124.06", 12080), ("580.95.05", 13000)
"""With the newest CUDA that each supports."""
NO_PROCESS = 4_194_305
"""One more than the highest number that a process can have."""
Occupy = Callable[..., str]

WATCHED = "/watched"
"""Where a container that waits for the sampler has Holdfast's folder of the machine: a run's own is not in it."""


def watching(home: object) -> str:
    """The line below `volumes:` of a target that gives it to the containers."""
    return f"  - {home}:{WATCHED}:ro"


PRELUDE = f"""\
import json, os, subprocess, sys, time

def watched(key):
    folder = os.environ["HOLDFAST_RUN_DIRECTORY"]
    if os.path.isdir("{WATCHED}"):
        folder = os.path.join("{WATCHED}", "runs", *folder.split("/")[-2:])
    try:
        with open(os.path.join(folder, "gpu.jsonl")) as source:
            return sum(key in json.loads(line) for line in source if line.endswith("\\n"))
    except FileNotFoundError:
        return 0

def wait_for(key, number):
    wanted, deadline = watched(key) + number, time.monotonic() + 180
    while watched(key) < wanted:
        if time.monotonic() > deadline:
            sys.exit("the sampler has not written `%s` %d times more" % (key, number))
        time.sleep(0.1)

def looks(number):
    wait_for("d", number)

def lost():
    wait_for("lost", 1)

def happens(line):
    state = os.environ.get("SIMULATED_NVML_STATE", "/{INSIDE}/nvml-state")
    with open(state + ".processes", "a") as target:
        target.write(line + "\\n")

"""


MACHINES_OWN = "pid:[4026531836]"
"""The namespace of processes that every machine begins with."""


@dataclass(frozen=True)
class Expected:
    """`used` are the numbers of the devices that did something for the run."""

    state: str
    reason: str
    used: tuple[int, ...] = ()


@dataclass(frozen=True)
class Case:
    """`environment` is a folder of `cases/findings`, whose frameworks the script's Python has. `variables` are in the
    run configuration, `container` are lines of a target with containers; `contained` is the expectation there, if it
    differs."""

    name: str
    is_lie: bool
    expected: Expected
    script: Callable[[Occupy], str]
    devices: tuple[Device, ...] = field(default_factory=lambda: (_rtx_4090(),))
    options: tuple[str, ...] = ("--gpus", "1")
    driver: tuple[str, int] = NEW_DRIVER
    environment: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    container: tuple[str, ...] = ()
    contained: Expected | None = None
    products: tuple[str, ...] = PRODUCTS
    is_long: bool = False

    def expected_on(self, product: str) -> Expected:
        """If process ids are not the machine's own, strangers cannot be told apart, and no run is accused."""
        if self.expected.reason == "stranger" and os.readlink("/proc/self/ns/pid") != MACHINES_OWN:
            return Expected("unknown", "no-attribution")
        return self.contained if self.contained is not None and product in CONTAINED else self.expected

    def text(self, product: str) -> str:
        return PRELUDE + textwrap.dedent(self.script(occupy_on(product)))


def occupy_on(product: str) -> Occupy:
    """`occupy(device, memory=…, utilization=…, instance=…, stays=…, is_given=…)`: text after which a process is on the
    device. The instance of a container is the one that it was given."""

    def bare(device: int = 0, is_given: bool = True, **rest: Any) -> str:
        return occupying(device, **rest)

    def contained(device: int = 0, instance: int | None = None, **rest: Any) -> str:
        return occupying_inside(device, **rest)

    return contained if product in CONTAINED else bare


def _rtx_4090() -> Device:
    return Device(name="NVIDIA GeForce RTX 4090", total=24 * GIB, capability=(8, 9))


def _v100() -> Device:
    return Device(name="Tesla V100-SXM2-16GB", total=16 * GIB, capability=(7, 0))


def _mig() -> Device:
    return Device(
        name="NVIDIA A100-SXM4-40GB",
        total=40 * GIB,
        capability=(8, 0),
        mig=True,
        instances=[Instance(slices=3, total=20 * GIB), Instance(slices=3, total=20 * GIB)],
    )


# ---- what the scripts do ----


def _computes_on_the_cpu(occupy: Occupy) -> str:
    return "looks(4)"


def _computes(occupy: Occupy) -> str:
    return occupy(0) + "looks(4)"


def _ends_without_code_for_the_gpu(occupy: Occupy) -> str:
    said = "torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device"
    return occupy(0, utilization=0) + f"looks(3)\nsys.exit({said!r})"


def _loses_the_device(occupy: Occupy) -> str:
    said = "RuntimeError: CUDA error: unspecified launch failure"
    return occupy(0) + f"looks(3)\nhappens('device 0 lost 1')\nlost()\nsys.exit({said!r})"


def _computes_on_another(occupy: Occupy) -> str:
    return occupy(1, is_given=False) + "looks(4)"


def _is_joined_by_a_stranger(occupy: Occupy) -> str:
    """The process that runs the table is not one of its runs."""
    return f"happens('device 0 process {os.getpid()} compute {2 * GIB} 80 40 -1 0')\nlooks(4)"


def _holds_memory_only(occupy: Occupy) -> str:
    return occupy(0, utilization=0) + "looks(7)"


def _leaves_memory(occupy: Occupy) -> str:
    return occupy(0, stays=True) + "looks(4)"


def _runs_out_of_memory(occupy: Occupy) -> str:
    said = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 24 GiB"
    )
    return occupy(0, memory=23 * GIB) + f"looks(3)\nsys.exit({said!r})"


def _computes_for_two_seconds(occupy: Occupy) -> str:
    return occupy(0) + "looks(2)"


def _computes_in_a_grandchild(occupy: Occupy) -> str:
    grandchild = PRELUDE + occupy(0) + "looks(4)"
    child = f"import subprocess, sys\nsys.exit(subprocess.call([sys.executable, '-c', {grandchild!r}]))"
    return f"sys.exit(subprocess.call([sys.executable, '-c', {child!r}]))"


def _computes_in_a_forked_loader(occupy: Occupy) -> str:
    loader = textwrap.indent(occupy(0) + "looks(4)\nos._exit(0)\n", "    ")
    return f"loader = os.fork()\nif loader == 0:\n{loader}os.waitpid(loader, 0)"


def _computes_on_two(occupy: Occupy) -> str:
    return occupy(0) + occupy(1) + "looks(4)"


def _computes_on_an_instance(occupy: Occupy) -> str:
    return occupy(0, instance=0) + "looks(4)"


def _computes_late(occupy: Occupy) -> str:
    """After this many looks, a share of the whole time would make it partly used."""
    return "looks(24)\n" + occupy(0) + "looks(2)"


def _computes_under_unknown_numbers(occupy: Occupy) -> str:
    return f"happens('device 0 process {NO_PROCESS} compute {2 * GIB} 80 40 -1 0')\nlooks(4)"


def _outlives_the_driver(occupy: Occupy) -> str:
    """What it does with the GPU after that is not seen."""
    return "looks(4)\nhappens('device 0 stall *')\n" + occupy(0)


# ---- the table ----

_lie, _honest = partial(Case, is_lie=True), partial(Case, is_lie=False)

CASES: tuple[Case, ...] = (
    _lie(
        "CPU-only build of PyTorch",
        expected=Expected("not-used", "cpu-build"),
        script=_computes_on_the_cpu,
        driver=DRIVER,
        environment="cpu-build-of-torch",
    ),
    _lie(
        "CPU-only build of TensorFlow",
        expected=Expected("not-used", "cpu-build"),
        script=_computes_on_the_cpu,
        driver=DRIVER,
        environment="cpu-build-of-tensorflow",
    ),
    _lie(
        "driver too old",
        expected=Expected("not-used", "driver-too-old"),
        script=_computes_on_the_cpu,
        driver=OLD_DRIVER,
        environment="driver-too-old-for-torch",
    ),
    _lie(
        "`CUDA_VISIBLE_DEVICES` empty",
        expected=Expected("not-used", "hidden"),
        script=_computes_on_the_cpu,
        environment="silent-right-build-of-torch",
        variables={"CUDA_VISIBLE_DEVICES": ""},
    ),
    _lie(
        "container without GPUs",
        expected=Expected("not-used", "container-without-gpus"),
        script=_computes_on_the_cpu,
        options=(),
        environment="silent-right-build-of-torch",
        products=CONTAINED,
    ),
    _lie(
        "no kernel image for the capability",
        expected=Expected("not-used", "no-code-for-gpu"),
        script=_ends_without_code_for_the_gpu,
        devices=(_v100(),),
        environment="no-code-in-torch-for-an-old-gpu",
    ),
    _lie(
        "device lost mid-run",
        expected=Expected("partly-used", "device-lost", (0,)),
        script=_loses_the_device,
        environment="silent-right-build-of-torch",
    ),
    _lie(
        "work on another GPU than leased",
        expected=Expected("partly-used", "other-device", (1,)),
        script=_computes_on_another,
        devices=(_rtx_4090(), _rtx_4090()),
    ),
    _lie(
        "stranger on the GPU",
        expected=Expected("not-used", "stranger"),
        script=_is_joined_by_a_stranger,
        environment="silent-right-build-of-torch",
    ),
    _lie(
        "idle",
        expected=Expected("not-used", "idle"),
        script=_holds_memory_only,
        environment="silent-right-build-of-torch",
    ),
    _lie(
        "partly used",
        expected=Expected("partly-used", "partly", (0,)),
        script=_computes,
        devices=(_rtx_4090(), _rtx_4090()),
        options=("--gpus", "2"),
    ),
    _lie(
        "no GPU",
        expected=Expected("not-available", "no-gpu"),
        script=lambda occupy: "",
        devices=(),
    ),
    _lie(
        "memory leaked after the end",
        expected=Expected("used", "memory-left", (0,)),
        script=_leaves_memory,
    ),
    _lie(
        "GPU memory exhausted",
        expected=Expected("used", "out-of-gpu-memory", (0,)),
        script=_runs_out_of_memory,
        environment="silent-right-build-of-torch",
    ),
    _honest("a run of 2 s", expected=Expected("used", "ok", (0,)), script=_computes_for_two_seconds),
    _honest("use by a grandchild", expected=Expected("used", "ok", (0,)), script=_computes_in_a_grandchild),
    _honest("use by a forked data loader", expected=Expected("used", "ok", (0,)), script=_computes_in_a_forked_loader),
    _honest(
        "two devices",
        expected=Expected("used", "ok", (0, 1)),
        script=_computes_on_two,
        devices=(_rtx_4090(), _rtx_4090()),
        options=("--gpus", "2"),
    ),
    _honest("MIG", expected=Expected("used", "ok", (0,)), script=_computes_on_an_instance, devices=(_mig(),)),
    _honest("late first use", expected=Expected("used", "ok", (0,)), script=_computes_late, is_long=True),
    _honest(
        "PIDs that cannot be matched",
        expected=Expected("unknown", "no-attribution"),
        script=_computes_under_unknown_numbers,
        options=(),
        environment="silent-right-build-of-torch",
        container=("nvidiaDocker: true",),
        contained=Expected("used", "ok", (0,)),
    ),
    _honest(
        "NVML that stalls",
        expected=Expected("unknown", "nvml-stalled"),
        script=_outlives_the_driver,
        environment="silent-right-build-of-torch",
    ),
)
LIES, HONEST = (tuple(each for each in CASES if each.is_lie is kind) for kind in (True, False))
