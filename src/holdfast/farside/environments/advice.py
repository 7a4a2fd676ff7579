"""What a person should know before a script runs on a machine with GPUs: whether what is installed can use them."""

import os
from typing import Any, Dict, List, Tuple

from holdfast.farside.environments.drivers import machine_of
from holdfast.farside.environments.findings import Finding, judge
from holdfast.farside.environments.frameworks import read_environment
from holdfast.farside.environments.platforms import platform_name


def looked_at(prefix: str, python: str, gpus: Dict[str, Any], platform: str = "") -> Tuple[List[Finding], List[str]]:
    """What speaks against it, and the frameworks that are there; nothing where there is no GPU. `platform` is that of
    the place where the script runs, if it is not this machine itself."""
    if not any(device.get("state") == "ok" for device in gpus.get("devices") or []):
        return [], []
    found = read_environment(prefix)
    machine = machine_of(gpus, platform or platform_name(), python)
    findings = judge(found.packages, found.builds, machine, True)
    return findings, sorted({each.framework for each in found.builds})


def prefix_of(python: str) -> str:
    """The folder that a Python's packages are found from: its environment's, or where it was installed."""
    prefix = os.path.dirname(os.path.dirname(python))
    if os.path.exists(os.path.join(prefix, "pyvenv.cfg")) or os.path.exists(os.path.join(prefix, "conda-meta")):
        return prefix
    return os.path.dirname(os.path.dirname(os.path.realpath(python)))
