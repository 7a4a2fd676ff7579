"""Read the samples of a run of two weeks on eight GPUs, of which every value changes from look to look; then draw them.

Prints the seconds of CPU time for each, and the most memory that the process had, in bytes.
"""

from __future__ import annotations

import random
import resource
import sys
import time
from pathlib import Path

from holdfast.cli.gpu_plot import plot
from holdfast.farside.gpu.devices import GpuDevice
from holdfast.farside.gpu.samples import Row, Tick, encode_devices, encode_start, encode_tick, read
from holdfast.history.gpu_series import FILE, read_series

LOOKS, DEVICES = 31_000, 8
GIB = 1 << 30


def row(number: int, look: int, chance: random.Random) -> Row:
    turn = look % 4
    return Row(
        number=number,
        utilisation=chance.randint(0, 100),
        memory=chance.randint(0, 80 * GIB) if turn == 0 else None,
        power=chance.randint(600, 4000) / 10 if turn == 1 else None,
        temperature=chance.randint(30, 80) if turn == 2 else None,
        own_memory=chance.randint(0, 80 * GIB),
        own_utilisation=chance.randint(0, 100),
        own=(40_000 + number, 50_000 + number),
        others=(),
        unmatched=0,
    )


def write(path: Path) -> None:
    chance = random.Random(1)
    with path.open("wb") as target:
        target.write(encode_start(0.0, "nvml"))
        target.write(encode_devices([GpuDevice(each, f"GPU-{each}", "A100", 80 * GIB) for each in range(DEVICES)]))
        for look in range(LOOKS):
            target.write(encode_tick(Tick(60.0 * look, tuple(row(each, look, chance) for each in range(DEVICES)))))


folder = Path(sys.argv[1])
if not folder.exists():
    folder.mkdir()
    write(folder / FILE)
else:
    begin = time.process_time()
    assert len(read((folder / FILE).read_bytes()).ticks) == LOOKS
    middle = time.process_time()
    assert len(list(plot(read_series(folder, 0.0), None, 100, has_blocks=True))) == 2 * DEVICES + 1
    end = time.process_time()
    print(middle - begin, end - middle, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
