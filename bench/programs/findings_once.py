"""Read one environment and judge it for a machine with a GPU, once, in a fresh process.

Prints the seconds of that without imports, then with them.
"""

from __future__ import annotations

import sys
import time

begin = time.perf_counter()

from holdfast.farside.environments.build_findings import judge  # noqa: E402
from holdfast.farside.environments.drivers import EnvironmentMachine, GpuModel  # noqa: E402 - imports are measured
from holdfast.farside.environments.frameworks import read_environment  # noqa: E402
from holdfast.farside.environments.platforms import platform_name  # noqa: E402

imported = time.perf_counter()
found = read_environment(sys.argv[1])
python = ".".join(str(each) for each in sys.version_info[:3])
machine = EnvironmentMachine(platform_name(), python, "535.104.05", "12.2", (GpuModel("Tesla K80", (3, 7)),))
findings = judge(found.packages, found.builds, machine, True)
end = time.perf_counter()
assert findings, "an old GPU, and nothing was found"
print(len(found.packages), "packages", end - imported, end - begin)
