"""What each framework of an environment was built for, read from its own files: nothing is imported or executed.

What cannot be read is unknown (None, or empty), never an error: packages are built in many ways, and only what is known
may be held against one.
"""

import os
import re
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from holdfast.farside.environments.fatbin import Fatbins, capability, cuda_of_ptx, order, read_fatbins
from holdfast.farside.environments.installed import (
    CONDA,
    InstalledPackage,
    conda_packages,
    has_conda,
    packages_of_folders,
    read_text,
    site_folders,
)
from holdfast.farside.system import foreign
from holdfast.farside.system.files import names_in

TORCH, TENSORFLOW, JAX, CNTK = "torch", "tensorflow", "jax", "cntk"
CUPY, ONNXRUNTIME, XGBOOST = "cupy", "onnxruntime", "xgboost"
_JAX_PLUGIN = r"jax-(cuda|rocm)\d+-(plugin|pjrt)"
_DISTRIBUTIONS = {
    TORCH: "torch",
    TENSORFLOW: r"tensorflow(-cpu|-gpu|-intel|-rocm|-macos|-cpu-aws)?|tf-nightly(-cpu|-gpu)?",
    JAX: "jax|jaxlib|" + _JAX_PLUGIN,
    CNTK: "cntk(-gpu)?",
    CUPY: "cupy(-cuda[0-9x]+|-rocm-.*)?",
    ONNXRUNTIME: "onnxruntime(-gpu|-training|-rocm|-directml|-openvino|-migraphx|-qnn)?",
    XGBOOST: "(lib|py-)?xgboost(-cpu)?",
}
_QUOTED = r"""(?:'([^'\n]*)'|"([^"\n]*)")"""
_ASSIGNED = re.compile(r"^(\w+)[ \t]*(?::[^=\n]+)?=[ \t]*(?:(None|True|False)\b|%s)" % _QUOTED, re.MULTILINE)
_PAIR = re.compile(r"""['"](\w+)['"]\s*[,:]\s*(?:(None|True|False)\b|%s|\[([^\]]{0,2000})\])""" % _QUOTED)


class Build(NamedTuple):
    """What one framework was built for."""

    framework: str
    package: str
    """The distribution it came with, as `tensorflow-cpu`."""
    version: str
    cuda: Optional[str] = None
    """`12.6`, or `12` where only that much is known."""
    is_cpu: Optional[bool] = None
    """True: it can compute on no GPU."""
    architectures: Tuple[str, ...] = ()
    """`sm_75`, `sm_90a`, `ptx_90` …; none where that is not known."""
    ptx_cuda: Optional[str] = None
    """What CUDA a driver must support at least to compile its PTX."""
    libraries: Tuple[str, ...] = ()
    """The files that were looked at for that."""
    other: str = ""
    """The devices of another maker that it is for instead, as `ROCm`."""


class EnvironmentContents(NamedTuple):
    """All that is read from one environment."""

    packages: Tuple[InstalledPackage, ...]
    builds: Tuple[Build, ...]


def framework_of(package: str) -> str:
    """What a distribution is, or is a part of; empty for one that is none of the frameworks."""
    found = (name for name, pattern in _DISTRIBUTIONS.items() if re.match("(?:%s)\\Z" % pattern, package))
    return next(found, "")


def read_environment(prefix: str, folders: Optional[Sequence[str]] = None) -> EnvironmentContents:
    """The packages and the builds of a prefix. `folders`: where its Python looks, if not in its own `site-packages`."""
    places = list(site_folders(prefix) if folders is None else folders)
    packages = conda_packages(prefix) + packages_of_folders(places, has_conda(prefix))
    return EnvironmentContents(tuple(packages), tuple(_read_builds(prefix, places, packages)))


def _read_builds(prefix: str, folders: Sequence[str], packages: Sequence[InstalledPackage]) -> List[Build]:
    site = _Site(prefix, folders, packages)
    return [build for build in (read(site) for read in _READERS) if build is not None]


class _Site:
    """Where the framework's files are."""

    def __init__(self, prefix: str, folders: Sequence[str], packages: Sequence[InstalledPackage]) -> None:
        self.prefix = prefix
        self._folders = folders
        self._packages = packages

    def find(self, *names: str) -> str:
        """The first of these paths that exists in the first folder that has one, or an empty one."""
        paths = [os.path.join(folder, name) for folder in self._folders for name in names]
        return next((path for path in paths if os.path.exists(path)), "")

    def package(self, pattern: str, source: Optional[str] = None) -> Optional[InstalledPackage]:
        expression = re.compile(r"(?:%s)\Z" % pattern)
        found = (each for each in self._packages if expression.match(each.name) and source in (None, each.source))
        return next(found, None)

    def cuda_runtime(self, major: str) -> Optional[str]:
        """The version of the CUDA runtime that is installed as a package of this major version."""
        for each in self._packages:
            if each.name in ("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu" + major):
                version = _short(each.version)
                if version is not None and version.split(".")[0] == major:
                    return version
        return None


def _torch(site: _Site) -> Optional[Build]:
    package, file = site.package("torch"), site.find("torch/version.py")
    if package is None and not file:
        return None
    said = _assigned(read_text(file, 1 << 16))
    version = said.get("__version__") or (package.version if package else "")
    build = Build(TORCH, "torch", version)
    if "cuda" not in said:
        return build
    if said["cuda"] is None:
        other = "ROCm" if said.get("hip") or said.get("rocm") else "Intel GPUs" if said.get("xpu") else ""
        return build._replace(is_cpu=not other, other=other)
    folder = os.path.join(os.path.dirname(file), "lib")
    names = ["libtorch_cuda.so", "libtorch_cuda_cu.so", "libtorch.so"]  # one, two and none of its own, over the years
    libraries = [os.path.join(folder, name) for name in names]
    return _with_code(build._replace(cuda=_short(said["cuda"]), is_cpu=False), libraries)


def _tensorflow(site: _Site) -> Optional[Build]:
    package = site.package(_DISTRIBUTIONS[TENSORFLOW])
    below = ("tensorflow", "tensorflow_core")  # the second is where releases 1.15 to 2.1 really are
    file = site.find(*[each + "/python/platform/build_info.py" for each in below])
    if package is None and not file:
        return None
    build = Build(TENSORFLOW, package.name if package else "tensorflow", package.version if package else "")
    text = read_text(file, 1 << 16)
    said = dict(_pairs(text), **_assigned(text))
    if "is_cuda_build" not in said:
        return build
    if said["is_cuda_build"] != "True":
        other = "ROCm" if said.get("is_rocm_build") == "True" else ""
        return build._replace(is_cpu=not other, other=other)
    cuda = _short(said.get("cuda_version") or said.get("cuda_version_number"))
    root = os.path.dirname(os.path.dirname(os.path.dirname(file)))
    names = ["libtensorflow_cc.so.2", "python/_pywrap_tensorflow_internal.so"]
    found = _with_code(build._replace(cuda=cuda, is_cpu=False), [os.path.join(root, name) for name in names])
    if found.architectures:
        return found
    return found._replace(architectures=_capabilities(said.get("cuda_compute_capabilities") or ""))


def _jax(site: _Site) -> Optional[Build]:
    package = site.package("jaxlib", "wheel") or site.package("jaxlib")
    if package is None:
        return None
    build = Build(JAX, package.name, package.version)
    by_conda = site.package("jaxlib", CONDA)
    inside = re.search(r"\+cuda(\d+)", package.version) or re.match(r"cuda(\d\d)", by_conda.build if by_conda else "")
    plugin = site.package(_JAX_PLUGIN)
    if plugin is None and inside is None:
        unclear = site.find("jaxlib/cuda", "jaxlib/rocm", "jax_plugins") or (by_conda and by_conda.build[:3] != "cpu")
        return build._replace(is_cpu=None if unclear else True)
    if plugin is not None and "rocm" in plugin.name:
        return build._replace(is_cpu=False, other="ROCm")
    major = inside.group(1) if plugin is None and inside else re.sub(r"\D", "", plugin.name if plugin else "")
    library = site.find("jax_plugins/xla_cuda%s/xla_cuda_plugin.so" % major, "jaxlib/xla_extension.so")
    found = _with_code(build._replace(is_cpu=False), [library] if library else [])
    by_ptx = found.ptx_cuda if found.ptx_cuda and found.ptx_cuda.split(".")[0] == major else None
    return found._replace(cuda=site.cuda_runtime(major) or by_ptx or major)


def _cntk(site: _Site) -> Optional[Build]:
    package, folder = site.package(_DISTRIBUTIONS[CNTK]), site.find("cntk/libs")
    if package is None and not folder:
        return None
    build = Build(CNTK, package.name if package else "cntk", package.version if package else "")
    names = names_in(folder)
    libraries = [os.path.join(folder, each) for each in names if re.match(r"(lib)?Cntk\.Math-.*\.so\Z", each)]
    if not libraries:
        return build
    runtimes = [found.group(1) for found in (re.match(r"libcudart\.so\.(\d+\.\d+)", each) for each in names) if found]
    found = _with_code(build, libraries)
    if found.is_cpu is None and not runtimes:
        return found
    return found._replace(cuda=runtimes[0] if runtimes else found.ptx_cuda, is_cpu=not runtimes and found.is_cpu)


def _cupy(site: _Site) -> Optional[Build]:
    package, file = site.package(_DISTRIBUTIONS[CUPY]), site.find("cupy/.data/_wheel.json")
    folder = site.find("cupy/cuda")
    if package is None and not folder:
        return None
    name = package.name if package else "cupy"
    build = Build(CUPY, name, package.version if package else "")
    if "rocm" in name:
        return build._replace(is_cpu=False, other="ROCm")
    names = names_in(folder)
    found = _with_code(build, [os.path.join(folder, each) for each in names if re.match(r"(cub|thrust)\..*so\Z", each)])
    return found._replace(cuda=_short(_in_json(read_text(file, 1 << 16), "cuda")), is_cpu=False if file else None)


def _onnxruntime(site: _Site) -> Optional[Build]:
    package = site.package(_DISTRIBUTIONS[ONNXRUNTIME], "wheel")
    file = site.find("onnxruntime/capi/build_and_package_info.py")
    if package is None and not file:
        return None
    said = _assigned(read_text(file, 1 << 16))
    name = said.get("package_name") or (package.name if package else ONNXRUNTIME)
    build = Build(ONNXRUNTIME, name, said.get("__version__") or (package.version if package else ""))
    if not said:
        return build
    library = os.path.join(os.path.dirname(file), "libonnxruntime_providers_cuda.so")
    if said.get("cuda_version") or name == "onnxruntime-gpu":
        found = _with_code(build, [library])
        return found._replace(cuda=_short(said.get("cuda_version")) or found.ptx_cuda, is_cpu=False)
    if os.path.exists(library):  # left over from the package for GPUs, or a build of the user's own
        return build._replace(is_cpu=True if site.package("onnxruntime-gpu", "wheel") else None)
    other = {"rocm": "ROCm", "migraphx": "ROCm", "directml": "DirectML", "qnn": "Qualcomm", "openvino": "OpenVINO"}
    device = other.get(name.rpartition("-")[2], "")
    return build._replace(other=device, is_cpu=False if device else True if name == ONNXRUNTIME else None)


def _xgboost(site: _Site) -> Optional[Build]:
    package = site.package("xgboost(-cpu)?", "wheel") or site.package(_DISTRIBUTIONS[XGBOOST])
    library = site.find("xgboost/lib/libxgboost.so", "xgboost/libxgboost.so")
    if package is None and not library:
        return None
    build = Build(XGBOOST, package.name if package else XGBOOST, package.version if package else "")
    found = _with_code(build, [library or os.path.join(site.prefix, "lib", "libxgboost.so")])
    return found._replace(cuda=found.ptx_cuda)


_READERS: Tuple[Callable[[_Site], Optional[Build]], ...] = (
    _torch,
    _tensorflow,
    _jax,
    _cntk,
    _cupy,
    _onnxruntime,
    _xgboost,
)


def _with_code(build: Build, libraries: Sequence[str]) -> Build:
    """The build with what these libraries have code for, and `is_cpu` by that where it is not known yet."""
    read = [(path, read_fatbins(path)) for path in libraries]
    known: List[Tuple[str, Fatbins]] = [(path, found) for path, found in read if found is not None]
    if not known:
        return build
    architectures = {name for _, found in known for name in found.architectures}
    versions = [found.ptx for _, found in known if found.ptx is not None]
    has_code = any(found.number for _, found in known)
    return build._replace(
        architectures=tuple(sorted(architectures, key=order)),
        ptx_cuda=cuda_of_ptx(min(versions)) if versions else None,
        libraries=tuple(path for path, _ in known),
        is_cpu=not has_code if build.is_cpu is None else build.is_cpu,
    )


def _assigned(text: str) -> Dict[str, Optional[str]]:
    """Constants that a module of Python assigns at its beginning of lines; the first time counts."""
    found: Dict[str, Optional[str]] = {}
    for name, word, single, double in _ASSIGNED.findall(text):
        found.setdefault(name, None if word == "None" else word or single or double)
    return found


def _pairs(text: str) -> Dict[str, Optional[str]]:
    """Keys and constants of the one dictionary in a module; a list as its own text."""
    found: Dict[str, Optional[str]] = {}
    for name, word, single, double, row in _PAIR.findall(text):
        found.setdefault(name, None if word == "None" else word or single or double or row)
    return found


def _in_json(text: str, key: str) -> Optional[str]:
    try:
        value = foreign.parsed(text)[key]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return None
    return value if isinstance(value, str) else None


def _short(version: Optional[str]) -> Optional[str]:
    """`12.5` of `12.5.1`, `12` of `12.x`, None of what is no version."""
    found = re.match(r"(\d+)(?:\.(\d+))?", version or "")
    return None if found is None else found.group(1) if found.group(2) is None else ".".join(found.groups())


def _capabilities(row: str) -> Tuple[str, ...]:
    """`sm_60 sm_90 ptx_90` of what TensorFlow calls `'sm_60', 'compute_90'`: the second is both."""
    found = set()
    for word in re.findall(r"[\w.]+", row):
        number = re.sub(r"\D", "", word)
        found.add("sm_" + number)
        if not word.startswith("sm_"):
            found.add("ptx_" + number)
    return tuple(sorted((each for each in found if capability(each) is not None), key=order))
