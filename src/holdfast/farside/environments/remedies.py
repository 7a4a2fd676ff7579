"""What to write into the environment's file so that a framework fits the machine: lines as a person would type them."""

from typing import Dict, List, Tuple

from holdfast.farside.environments.drivers import Machine, minimum_driver, newest_major, numbers
from holdfast.farside.environments.fatbin import capability
from holdfast.farside.environments.frameworks import CNTK, CUPY, JAX, ONNXRUNTIME, TENSORFLOW, TORCH, XGBOOST, Build

_TORCH_INDEX = "--extra-index-url https://download.pytorch.org/whl/"
_FOR_CUDA: Dict[Tuple[str, int], str] = {
    (TENSORFLOW, 12): "tensorflow[and-cuda]<2.22",
    (TENSORFLOW, 11): "tensorflow<2.14",
    (JAX, 13): "jax[cuda13]",
    (JAX, 12): "jax[cuda12]",
    (CUPY, 13): "cupy-cuda13x",
    (CUPY, 12): "cupy-cuda12x",
    (CUPY, 11): "cupy-cuda11x",
    (ONNXRUNTIME, 13): "onnxruntime-gpu>=1.27",
    (ONNXRUNTIME, 12): "onnxruntime-gpu>=1.19,<1.27",
    (ONNXRUNTIME, 11): "onnxruntime-gpu<1.19",
    (XGBOOST, 12): "xgboost>=2.1",
    (XGBOOST, 11): "xgboost<2.1",
}
"""What has builds for one major version of CUDA on the package index."""


def for_gpu(build: Build, machine: Machine) -> str:
    """Of a framework that was built without CUDA, or for GPUs of another maker."""
    version = build.version.partition("+")[0]
    same = "==" + version if version else ""
    if build.framework == TORCH:
        kind = "`+rocm`, `+xpu` or an index of such builds" if build.other else "`+cpu`, `cpuonly` or `whl/cpu`"
        return "Take %s out where it stands, and write `%s` above `torch`." % (kind, _torch_index(machine))
    line = {
        TENSORFLOW: _tensorflow_line(version),
        JAX: "jax[cuda12]" + same,
        CNTK: "cntk-gpu" + same,
        ONNXRUNTIME: "onnxruntime-gpu" + same,
        XGBOOST: "xgboost" + same,
        CUPY: _FOR_CUDA[CUPY, newest_major(machine) or 12],
    }[build.framework]
    return "Write `%s` instead of `%s`." % (line, "jax" if build.framework == JAX else build.package)


def for_driver(build: Build, cuda: str, machine: Machine) -> str:
    """Of a framework whose CUDA the driver does not run."""
    needed = minimum_driver(cuda)
    update = "Update the NVIDIA driver of the machine" + (" to %s or newer" % needed if needed else "")
    major = newest_major(machine)
    if build.framework == TORCH and major is not None:
        return "%s, or write `%s` above `torch`." % (update, _torch_index(machine))
    line = _FOR_CUDA.get((build.framework, major or 0))
    if line:
        return "%s, or write `%s` instead of `%s`." % (update, line, build.package)
    return "%s, or take a release of `%s` that was built for an older CUDA." % (update, build.package)


def for_device(build: Build, device: Tuple[int, int], machine: Machine) -> str:
    """Of a framework without code for a GPU."""
    known = [capability(each) or (0, 0) for each in build.architectures]
    age = "newer" if max(known) < device else "older" if device < min(known) else "other"
    index = _torch_index(machine)
    if build.framework == TORCH and device >= (5, 0) and not index.endswith(_cuda_of(build)):
        return "Write `%s` above `torch`: the builds there are for %s GPUs too." % (index, age)
    release = {"newer": "a newer", "older": "an older", "other": "another"}[age]
    return "Take %s release of `%s`, one that was built for `sm_%d%d`." % (release, build.package, *device)


def keep_one(names: List[str], wants_gpu: bool) -> str:
    """Of packages that write the same files."""
    kept = sorted(names, key=lambda name: (_is_for_gpu(name) != wants_gpu, len(name), name))[0]
    others = " and ".join("`%s`" % name for name in names if name != kept)
    return "Keep `%s` and take %s out of the environment's file, then build it again." % (kept, others)


def _torch_index(machine: Machine) -> str:
    """CUDA 12.8 and later have no code for GPUs before 7.5, earlier ones none for those from 10.0 on."""
    major = newest_major(machine)
    if major == 11:
        return _TORCH_INDEX + "cu118"
    known = [device.capability for device in machine.devices if device.capability is not None]
    is_old = bool(known) and min(known) < (7, 5)
    return _TORCH_INDEX + ("cu126" if is_old or not known else "cu128")


def _tensorflow_line(version: str) -> str:
    """Since 2.14 CUDA's libraries are an extra; before 2.0 there was a package of its own."""
    found = numbers(version)
    if found and found < (2,):
        return "tensorflow-gpu==" + version
    extra = "" if found and found < (2, 14) else "[and-cuda]"
    return "tensorflow%s%s" % (extra, "==" + version if version else "")


def _cuda_of(build: Build) -> str:
    return "cu" + "".join(str(each) for each in numbers(build.cuda)[:2])


def _is_for_gpu(name: str) -> bool:
    """By its name: of most frameworks the plain package is the one with CUDA."""
    return name not in ("onnxruntime", "cntk") and "-cpu" not in name
