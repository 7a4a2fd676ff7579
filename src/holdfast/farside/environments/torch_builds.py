"""Which build of PyTorch is among the packages of a lock, and what is said of it.

The usual one brings CUDA, several GB. A machine without a GPU has no use for that: PyTorch's own index has builds for
the CPU. What the user's files or settings choose is left alone."""

import re
from typing import Dict, NamedTuple, Optional, Sequence

from holdfast.farside.environments.drivers import EnvironmentMachine
from holdfast.farside.environments.installer_errors import NETWORK

CPU, AUTO = "cpu", "auto"
INDEX = "download.pytorch.org"
QUICKLY = {"UV_HTTP_RETRIES": "1", "UV_HTTP_CONNECT_TIMEOUT": "5"}
"""An index that may be out of reach is not waited for."""
_TORCH = re.compile(r"torch==([^\s+;]+)(?:\+(\S+))?")
_RUNTIME = re.compile(r"nvidia-cuda-runtime(?:-cu\d+)?==(\d+(?:\.\d+)?)")


class TorchBuild(NamedTuple):
    """`local` is what its version says of the build, as `cpu`; `cuda` the version that it brings, empty for none."""

    version: str
    local: str
    cuda: str
    nvidia: int
    """How many packages of NVIDIA's come with it."""

    def __str__(self) -> str:
        return "PyTorch %s%s" % (self.version, "+" + self.local if self.local else "")


def build_among(packages: Sequence[str]) -> Optional[TorchBuild]:
    """`packages` as a lock has them, without hashes. None without PyTorch."""
    torch = next((found for found in map(_TORCH.match, packages) if found), None)
    if torch is None:
        return None
    runtime = next((found.group(1) for found in map(_RUNTIME.match, packages) if found), "")
    nvidia = sum(each.startswith("nvidia-") for each in packages)
    return TorchBuild(torch.group(1), torch.group(2) or "", runtime, nvidia)


def is_needless(build: Optional[TorchBuild], machine: EnvironmentMachine) -> bool:
    """Whether it brings CUDA to a machine that has no GPU."""
    return build is not None and build.nvidia > 0 and machine.is_without_gpu


def is_chosen(options: Sequence[str], requirements: Sequence[str], variables: Dict[str, str]) -> bool:
    """Whether the user chose a build: by an index of PyTorch's, a version such as `2.3.0+cu121`, or a setting of uv."""
    by_file = any(INDEX in each for each in options) or any(
        re.match(r"torch\s*(?:\[|=|@).*(?:\+cu|\+rocm|\+xpu|%2[bB]cu|://)", each) for each in requirements
    )
    return by_file or bool(variables.get("UV_TORCH_BACKEND"))


def said_of(build: TorchBuild, machine: EnvironmentMachine) -> str:
    """The line about a build that was chosen; empty where there was no choice."""
    if build.local == CPU:
        return "Installing %s, the build for the CPU: this machine has no GPU." % (build,)
    if build.cuda and machine.driver:
        return "Installing %s, built for CUDA %s, which driver %s supports." % (build, build.cuda, machine.driver)
    return ""


def said_of_kept(build: TorchBuild) -> str:
    what = "%s brings %d packages for CUDA, which a machine without a GPU does not use."
    return (what + " Your files or settings chose it.") % (build, build.nvidia)


def said_of_unreachable(build: TorchBuild, why: str) -> str:
    """`why` uv found no other; in short where the index did not answer."""
    reason = "cannot be reached" if any(each in why.lower() for each in NETWORK) else "has none that fits: %s" % why
    what = "This machine has no GPU, but PyTorch's index of builds for the CPU (%s) %s." % (INDEX, reason)
    return "%s Installing %s with %d packages for CUDA." % (what, build, build.nvidia)


def said_of_locked(build: TorchBuild) -> str:
    what = "The lock is exact: it installs %s with %d packages for CUDA, though this machine has no GPU."
    return (what + " To have the build chosen by machine: -d pyproject.toml") % (build, build.nvidia)


def public_versions(versions: Dict[str, str]) -> Dict[str, str]:
    """Without what says of a version which build it is: another machine may need another one."""
    return {name: re.sub(r"\+(?:cpu|cu\d+|rocm[\d.]*|xpu)\Z", "", each) for name, each in versions.items()}
