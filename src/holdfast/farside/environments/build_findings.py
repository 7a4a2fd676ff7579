"""Whether what is installed is right for the machine it will run on: pure, over what was read of both.

What is not known is no finding. A finding has a sentence and a remedy, lines as a person would type them
into the environment's file.
"""

import os
import re
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from holdfast.farside.environments import drivers, platforms
from holdfast.farside.environments.drivers import (
    EnvironmentMachine,
    GpuModel,
    machine_of,
    minimum_driver,
    newest_major,
    numbers,
)
from holdfast.farside.environments.fatbin import capability
from holdfast.farside.environments.frameworks import (
    CNTK,
    CUPY,
    JAX,
    ONNXRUNTIME,
    TENSORFLOW,
    TORCH,
    XGBOOST,
    Build,
    framework_of,
    read_environment,
)
from holdfast.farside.environments.installed import WHEEL, InstalledPackage
from holdfast.farside.environments.platforms import platform_name
from holdfast.farside.system.real_paths import real_path

ERROR, WARNING = "error", "warning"
CPU_BUILD = "cpu-build"
OTHER_DEVICE = "other-device"
DRIVER_TOO_OLD = "driver-too-old"
NO_CODE = "no-code-for-gpu"
PLUGIN_MISMATCH = "plugin-mismatch"
OTHER_SYSTEM = "other-system"
OTHER_PYTHON = "other-python"
SHADOWED = "shadowed"
KINDS = (CPU_BUILD, OTHER_DEVICE, DRIVER_TOO_OLD, NO_CODE, PLUGIN_MISMATCH, OTHER_SYSTEM, OTHER_PYTHON, SHADOWED)

_TITLES = {
    TORCH: "PyTorch",
    TENSORFLOW: "TensorFlow",
    JAX: "JAX",
    CNTK: "CNTK",
    CUPY: "CuPy",
    ONNXRUNTIME: "ONNX Runtime",
    XGBOOST: "XGBoost",
}
_SHARED = {
    ONNXRUNTIME: ("onnxruntime", "onnxruntime-gpu", "onnxruntime-directml", "onnxruntime-openvino", "onnxruntime-rocm"),
    TENSORFLOW: ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-intel", "tensorflow-rocm", "tf-nightly"),
    CNTK: ("cntk", "cntk-gpu"),
    XGBOOST: ("xgboost", "xgboost-cpu"),
    "cv2": (
        "opencv-python",
        "opencv-python-headless",
        "opencv-contrib-python",
        "opencv-contrib-python-headless",
    ),
}
"""Packages that write the same module: which one is imported is decided by the order of installation."""
_FRAMEWORKS = {"torch", "jaxlib", "tensorflow", "tensorflow-cpu", "onnxruntime", "onnxruntime-gpu", "xgboost", "cntk"}
_MOST_NAMES = 5


class BuildFinding(NamedTuple):
    """One thing that is wrong, as it is told."""

    kind: str
    package: str
    sentence: str
    remedy: str
    severity: str


def judge(
    packages: Sequence[InstalledPackage], builds: Sequence[Build], machine: EnvironmentMachine, wants_gpu: bool
) -> List[BuildFinding]:
    """Errors first. Without `wants_gpu` no framework is asked whether it can use one."""
    crowds = _crowds(packages, machine)
    found = [_crowded(module, group, builds, wants_gpu) for module, group in crowds.items()]
    found += _twice(packages) + _foreign(packages, machine)
    if wants_gpu:
        for build in builds:
            if build.framework not in crowds:  # else that is the reason, whatever the build is
                found += _unfit(build, builds, machine)
        found += _mismatched_plugins(packages)
    return sorted(found, key=lambda each: each.severity != ERROR)


def _unfit(build: Build, builds: Sequence[Build], machine: EnvironmentMachine) -> List[BuildFinding]:
    """At most one: the first reason for which it will not compute on the GPU."""
    if build.is_cpu:
        return [_cpu_build(build, builds, machine)]
    if build.other:
        return [_other_device(build, machine)] if machine.devices else []
    if build.cuda is not None and drivers.is_too_old(machine, build.cuda):
        return [_driver_too_old(build, build.cuda, machine)]
    return _without_code(build, machine)


def _cpu_build(build: Build, builds: Sequence[Build], machine: EnvironmentMachine) -> BuildFinding:
    """A warning if another framework can use the GPU, since this one may have another purpose; else an error."""
    why = "has no CUDA plugin beside it" if build.framework == JAX else "was built without CUDA"
    sentence = "%s %s: it computes on the CPU and leaves the GPU idle." % (_named(build), why)
    severity = WARNING if any(each.is_cpu is False and not each.other for each in builds) else ERROR
    return BuildFinding(CPU_BUILD, build.package, sentence, _for_gpu(build, machine), severity)


def _other_device(build: Build, machine: EnvironmentMachine) -> BuildFinding:
    devices = " and ".join(sorted({device.name for device in machine.devices}))
    sentence = "%s was built for %s; the machine has %s." % (_named(build), build.other, devices)
    return BuildFinding(OTHER_DEVICE, build.package, sentence, _for_gpu(build, machine), ERROR)


def _driver_too_old(build: Build, cuda: str, machine: EnvironmentMachine) -> BuildFinding:
    here = "driver %s" % machine.driver if machine.driver else "driver"
    supported = ", which supports up to CUDA %s" % machine.cuda if machine.cuda else ""
    needed = drivers.minimum_driver(cuda)
    rule = "; CUDA %s needs driver %s or newer" % (cuda, needed) if needed else ""
    sentence = "%s was built for CUDA %s; the machine has %s%s%s." % (_named(build), cuda, here, supported, rule)
    return BuildFinding(DRIVER_TOO_OLD, build.package, sentence, _for_driver(build, cuda, machine), ERROR)


def _without_code(build: Build, machine: EnvironmentMachine) -> List[BuildFinding]:
    fitness = [(drivers.fitness(build.architectures, build.ptx_cuda, each, machine), each) for each in machine.devices]
    unfit = [(word, device) for word, device in fitness if word in (drivers.NO_CODE, drivers.PTX_TOO_NEW)]
    if not unfit:
        return []
    word, device = unfit[0]
    number = device.capability or (0, 0)
    if word == drivers.PTX_TOO_NEW:
        sentence, remedy = _about_ptx(build, device, number, machine)
    else:
        known = ", ".join(build.architectures)
        sentence = "%s has no code for %s (sm_%d%d); it has %s." % (_named(build), device.name, *number, known)
        remedy = _for_device(build, number, machine)
    severity = ERROR if len(unfit) == len(fitness) else WARNING  # it can run on the others
    return [BuildFinding(NO_CODE, build.package, sentence, remedy, severity)]


def _about_ptx(build: Build, device: GpuModel, number: Tuple[int, int], machine: EnvironmentMachine) -> Tuple[str, str]:
    sentence = (
        "%s has no machine code for %s (sm_%d%d), only PTX of CUDA %s, and the driver compiles PTX up to CUDA %s."
    )
    update = "Update the NVIDIA driver of the machine to one that supports CUDA %s" % build.ptx_cuda
    remedy = "%s, or take a release of `%s` that was built for `sm_%d%d`." % (update, build.package, *number)
    return sentence % (_named(build), device.name, *number, build.ptx_cuda, machine.cuda), remedy


def _mismatched_plugins(packages: Sequence[InstalledPackage]) -> List[BuildFinding]:
    """JAX leaves a plugin of another version aside, with a warning in the log, and computes on the CPU."""
    library = next((each for each in packages if each.name == "jaxlib" and each.source == WHEEL), None)
    found = []
    for each in packages:
        is_plugin = each.name in ("jax-cuda12-plugin", "jax-cuda13-plugin")
        if library is None or not is_plugin or drivers.numbers(each.version) == drivers.numbers(library.version):
            continue
        sentence = "JAX will not use `%s` %s: it is not of the same version as `jaxlib` %s, so JAX computes on the CPU."
        line = "jax[%s]==%s" % (each.name.split("-")[1], library.version)
        remedy = "Write `%s` and take the lines of `jaxlib` and `%s` out." % (line, each.name)
        text = sentence % (each.name, each.version, library.version)
        found.append(BuildFinding(PLUGIN_MISMATCH, each.name, text, remedy, ERROR))
    return found


def _foreign(packages: Sequence[InstalledPackage], machine: EnvironmentMachine) -> List[BuildFinding]:
    """One finding per other system or Python: if one package is for it, often all are. Named after a framework if one
    is among them."""
    groups: Dict[str, List[InstalledPackage]] = {}
    for each in sorted(packages, key=lambda one: not framework_of(one.name)):
        what = platforms.mismatch(each.tags, each.modules, machine.platform, machine.python)
        if what is not None:
            groups.setdefault(what, []).append(each)
    return [_foreign_finding(what, groups[what], machine) for what in sorted(groups)]


def _foreign_finding(what: str, packages: List[InstalledPackage], machine: EnvironmentMachine) -> BuildFinding:
    names = ["`%s` %s" % (each.name, each.version) for each in packages[:_MOST_NAMES]]
    more = len(packages) - len(names)
    who = ", ".join(names) + (" and %d more" % more if more else "")
    verb = "was" if len(packages) == 1 else "were"
    tag = packages[0].tags[0]
    if what == platforms.PYTHON:
        sentence = "%s %s built for another Python (`%s`); this one is %s." % (who, verb, tag, machine.python)
        meant = re.match(r"cp(\d)(\d+)-", tag)
        other = ", or write `python=%s.%s`" % meant.groups() if meant else ""
        remedy = "Build the environment again for the Python it is used with%s." % other
        return BuildFinding(OTHER_PYTHON, packages[0].name, sentence, remedy, ERROR)
    sentence = "%s %s built for another system (`%s`); this one is %s." % (who, verb, tag, machine.platform)
    if what == platforms.LIBC:
        remedy = "Use a newer image or system, or a release of `%s` for an older C library." % packages[0].name
        return BuildFinding(OTHER_SYSTEM, packages[0].name, sentence, remedy, WARNING)
    line = "%s==%s" % (packages[0].name, packages[0].version)
    remedy = "Write `%s` instead of the address or file of a wheel: then the right one is chosen." % line
    return BuildFinding(OTHER_SYSTEM, packages[0].name, sentence, remedy, ERROR)


def _crowds(packages: Sequence[InstalledPackage], machine: EnvironmentMachine) -> Dict[str, List[InstalledPackage]]:
    """Packages that write the same module, by that module, where there are several."""
    groups: Dict[str, Dict[str, InstalledPackage]] = {}
    for each in packages:
        module = next((module for module, names in _SHARED.items() if each.name in names), "")
        if each.name.startswith(("cupy-cuda", "cupy-rocm")) or each.name == CUPY:
            module = CUPY
        is_part = each.name == "tensorflow-intel" and machine.platform.startswith("windows")  # of `tensorflow` there
        if module and each.source == WHEEL and not is_part:
            groups.setdefault(module, {}).setdefault(each.name, each)
    return {module: list(group.values()) for module, group in groups.items() if len(group) > 1}


def _crowded(module: str, group: Sequence[InstalledPackage], builds: Sequence[Build], wants_gpu: bool) -> BuildFinding:
    """An error only if the build that is imported is known to be the wrong one."""
    shown = " and ".join("`%s` %s" % (each.name, each.version) for each in group)
    is_cpu = wants_gpu and any(each.framework == module and each.is_cpu for each in builds)
    what = "what was installed last is what runs" + (", here the build without CUDA" if is_cpu else "")
    sentence = "%s are installed together and write the same module `%s`: %s." % (shown, module, what)
    remedy = _keep_one([each.name for each in group], wants_gpu)
    return BuildFinding(SHADOWED, group[0].name, sentence, remedy, ERROR if is_cpu else WARNING)


def _twice(packages: Sequence[InstalledPackage]) -> List[BuildFinding]:
    """A framework in two versions: in one folder that is a broken installation, in two the first is used."""
    found = []
    first: Dict[str, InstalledPackage] = {}
    for each in packages:
        if each.source != WHEEL or each.name not in _FRAMEWORKS:
            continue
        other = first.setdefault(each.name, each)
        if other is each or other.version == each.version:
            continue
        if other.folder == each.folder:
            sentence = "`%s` is installed twice in one folder, as %s and %s: its files are a mixture."
            text = sentence % (each.name, other.version, each.version)
            remedy = "Build the environment again: `holdfast experiment prepare --rebuild`."
            found.append(BuildFinding(SHADOWED, each.name, text, remedy, ERROR))
        else:
            sentence = "`%s` is installed twice: %s in `%s` is used, %s in `%s` is not."
            text = sentence % (each.name, other.version, other.folder, each.version, each.folder)
            found.append(BuildFinding(SHADOWED, each.name, text, "Uninstall the one that is not wanted.", WARNING))
    return found


def _named(build: Build) -> str:
    return ("%s %s" % (_TITLES[build.framework], build.version)).strip()


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


def _for_gpu(build: Build, machine: EnvironmentMachine) -> str:
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


def _for_driver(build: Build, cuda: str, machine: EnvironmentMachine) -> str:
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


def _for_device(build: Build, device: Tuple[int, int], machine: EnvironmentMachine) -> str:
    """Of a framework without code for a GPU."""
    known = [capability(each) or (0, 0) for each in build.architectures]
    age = "newer" if max(known) < device else "older" if device < min(known) else "other"
    index = _torch_index(machine)
    own = "cu" + "".join(str(each) for each in numbers(build.cuda)[:2])
    if build.framework == TORCH and device >= (5, 0) and not index.endswith(own):
        return "Write `%s` above `torch`: the builds there are for %s GPUs too." % (index, age)
    release = {"newer": "a newer", "older": "an older", "other": "another"}[age]
    return "Take %s release of `%s`, one that was built for `sm_%d%d`." % (release, build.package, *device)


def _keep_one(names: List[str], wants_gpu: bool) -> str:
    """Of packages that write the same files."""
    kept = sorted(names, key=lambda name: (_is_for_gpu(name) != wants_gpu, len(name), name))[0]
    others = " and ".join("`%s`" % name for name in names if name != kept)
    return "Keep `%s` and take %s out of the environment's file, then build it again." % (kept, others)


def _torch_index(machine: EnvironmentMachine) -> str:
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


def _is_for_gpu(name: str) -> bool:
    """By its name: of most frameworks the plain package is the one with CUDA."""
    return name not in ("onnxruntime", "cntk") and "-cpu" not in name


def looked_at(
    prefix: str, python: str, gpus: Dict[str, Any], platform: str = ""
) -> Tuple[List[BuildFinding], List[str]]:
    """Returns the findings and the frameworks in the environment; both empty if no GPU works. `platform` is where the
    script runs, if that is not this machine itself."""
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
    return os.path.dirname(os.path.dirname(real_path(python)))
