"""The process that watches the GPUs while a run runs: `main.py sample FOLDER GUARDIAN GENERATION` appends a line for
each look to the run's samples.

A sick driver may hold it for ever, so nothing waits for it: it says when it began before it asks the driver anything,
and dies with the process that started it. SIGUSR1 asks for a look at once, from the first line on. On a full disk lines
are left out.
"""

import os
import signal
import sys
import time
from typing import Dict, List, Optional, Set

from holdfast.farside.gpu import samples
from holdfast.farside.gpu.devices import GpuDevice
from holdfast.farside.gpu.watch import source
from holdfast.farside.gpu.watch.process_owner import OTHER, OWN, UNMATCHED, Belonging
from holdfast.farside.machine import gpus
from holdfast.farside.system import kernel
from holdfast.farside.system.clock import WALL, Clock
from holdfast.farside.system.journal import JournalWriter
from holdfast.farside.system.layout import ENTRY, INSIDE, JOURNAL, SAMPLER_NAME, SAMPLES
from holdfast.farside.system.nofollow import open_plain

LOOKS_BETWEEN = 10
"""A lost device is asked again after so many looks at the others."""
_MOST_OWED = 100
_WAKING = (signal.SIGUSR1,)


def command(folder: str, guardian: int, generation: str) -> List[str]:
    return [sys.executable, "-I", "-S", ENTRY, "sample", folder, str(guardian), generation]


def belonging(folder: str, guardian: int, generation: str) -> Belonging:
    """Of the run in `folder`."""
    return Belonging(guardian, generation, os.path.join(folder, INSIDE))


def main(folder: str, guardian: int, generation: str) -> None:
    """Never returns."""
    kernel.set_name(SAMPLER_NAME)
    kernel.die_with_parent(signal.SIGKILL, os.getppid())
    signal.pthread_sigmask(signal.SIG_BLOCK, _WAKING)
    environment = dict(os.environ)
    lines = Lines(os.path.join(folder, SAMPLES))
    kind = source.kind(environment)
    clock = JournalWriter(os.path.join(folder, JOURNAL)).clock()
    lines.write(samples.encode_start(clock.now(), kind), is_owed=True)
    if kind in (source.NVML, source.AMDSMI):
        watch(_origin(kind, environment), belonging(folder, guardian, generation), lines, clock)
    else:
        named = [GpuDevice(number, *each) for number, each in enumerate(gpus.name_others())]
        lines.write(samples.encode_devices(named), is_owed=True)
    os._exit(0)  # unloading a library is one more chance to hang


def watch(origin: source.Source, whose: Belonging, lines: "Lines", clock: Clock = WALL) -> None:
    """Write samples until this process is ended. Returns at once if there is nothing to watch."""
    try:
        origin.open()
    except source.Unusable as problem:
        lines.write(samples.encode_problem(clock.now(), str(problem)), is_owed=True)
        return
    devices = origin.devices()
    lines.write(samples.encode_devices(devices), is_owed=True)
    if not devices:
        return
    sampler = Sampler(origin, whose, lines)
    schedule = Schedule(time.monotonic())
    is_asked, missed = False, 0
    while True:
        now = clock.now()
        if missed and lines.write(samples.encode_skipped(now, missed)):
            missed = 0
        sampler.look(now, is_asked)
        missed += schedule.advance(time.monotonic())
        seconds = max(0.0, schedule.due - time.monotonic())
        is_asked = signal.sigtimedwait(_WAKING, seconds) is not None


class Lines:
    """The file of samples. Each line is one write. If the disk is full, a line is left out, unless it is owed: then it
    is written before the next one. A line that was cut off is ended by the one that follows."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._owed: List[bytes] = []
        self._is_torn = False
        self._descriptor: Optional[int] = None

    def write(self, line: bytes, is_owed: bool = False) -> bool:
        data = (b"\n" if self._is_torn else b"") + b"".join(self._owed) + line
        written = self._append(data)
        if written == len(data):
            self._owed, self._is_torn = [], False
            return True
        self._is_torn = self._is_torn or written > 0
        if is_owed and len(self._owed) < _MOST_OWED:
            self._owed.append(line)
        return False

    def _append(self, data: bytes) -> int:
        try:
            if self._descriptor is None:
                self._descriptor = open_plain(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            return os.write(self._descriptor, data)
        except OSError:
            return 0


class Schedule:
    """When to look: sooner while a run is young. A look that is late is left out, not made up for."""

    def __init__(self, now: float) -> None:
        self._began = self.due = now

    def advance(self, now: float) -> int:
        """After a look: `due` is that of the next one; returns how many there was no time for. One that was asked for
        in between changes nothing."""
        missed = -1
        while self.due <= now:
            self.due += samples.period(self.due - self._began)
            missed += 1
        return max(0, missed)


class Sampler:
    """Looks at all devices and writes a line; remembers which are lost, and how long ago they were asked."""

    def __init__(self, origin: source.Source, belonging: Belonging, lines: Lines) -> None:
        self._origin, self._belonging, self._lines = origin, belonging, lines
        self._lost: Dict[int, int] = {}

    def look(self, now: float, is_asked: bool) -> None:
        rows = []
        for device in self._origin.devices():
            if self._lost.get(device.number, 0) > 0:
                self._lost[device.number] -= 1
                continue
            try:
                found = self._origin.look(device.number, is_asked)
            except source.Lost as problem:
                self._lose(now, device.number, str(problem))
                continue
            self._find(now, device.number)
            rows.append(make_row(device.number, found, self._belonging))
        if rows:
            self._lines.write(samples.encode_tick(samples.Tick(now, tuple(rows))))

    def _lose(self, now: float, number: int, problem: str) -> None:
        if number not in self._lost:
            self._lines.write(samples.encode_loss(now, number, problem), is_owed=True)
        self._lost[number] = LOOKS_BETWEEN - 1

    def _find(self, now: float, number: int) -> None:
        if self._lost.pop(number, None) is not None:
            self._lines.write(samples.encode_found(now, number), is_owed=True)
            self._lines.write(samples.encode_devices(self._origin.devices()), is_owed=True)


def make_row(number: int, found: source.DeviceLook, belonging: Belonging) -> samples.Row:
    named = {} if found.processes is None else found.processes
    whose = {pid: belonging.of(pid) for pid in sorted(set(named) | set(found.shares or ()))}
    own = tuple(pid for pid in sorted(named) if whose[pid] == OWN)
    return samples.Row(
        number=number,
        utilisation=found.utilisation,
        memory=found.memory,
        power=found.power,
        temperature=found.temperature,
        own_memory=None if found.processes is None else _sum([named[pid] for pid in own]),
        own_utilisation=_share(found, {pid for pid in whose if whose[pid] == OWN}),
        own=own,
        others=tuple(pid for pid in sorted(named) if whose[pid] == OTHER),
        unmatched=sum(whose[pid] == UNMATCHED for pid in named),
        processes=tuple((pid, named[pid], _computed(found, pid)) for pid in sorted(named)),
    )


def _sum(memory: List[Optional[int]]) -> Optional[int]:
    """The sum of the known ones; None if there are some and none is known."""
    known = [each for each in memory if each is not None]
    return sum(known) if known or not memory else None


def _computed(found: source.DeviceLook, pid: int) -> Optional[int]:
    return None if found.shares is None else found.shares.get(pid, 0)


def _share(found: source.DeviceLook, own: Set[int]) -> Optional[int]:
    if found.shares is None:
        return None
    return min(100, sum(share for pid, share in found.shares.items() if pid in own))


def _origin(kind: str, environment: Dict[str, str]) -> source.Source:
    if kind == source.NVML:
        from holdfast.farside.gpu.watch.nvml_source import NvmlSource

        return NvmlSource(environment)
    from holdfast.farside.gpu.watch.amd_source import AmdSource

    return AmdSource(source.amdsmi_folder(environment))
