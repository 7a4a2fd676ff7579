"""Look at the GPUs as the sampler does, many times without a pause, for a profile."""

from __future__ import annotations

import os
import sys
import time

from holdfast.farside.gpu.watch.nvml_source import NvmlSource
from holdfast.farside.gpu.watch.process_owner import Belonging
from holdfast.farside.gpu.watch.sampler import Lines, Sampler

origin = NvmlSource(dict(os.environ))
origin.open()
sampler = Sampler(origin, Belonging(int(sys.argv[2]), "18d2721bfe8f"), Lines(os.path.join(sys.argv[1], "lines")))
for _ in range(200):
    sampler.look(time.time(), False)
