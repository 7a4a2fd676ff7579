"""Which packages are installed, read from names and small files. Nothing is imported."""

import os
import re
from typing import Iterable, List, NamedTuple, Optional, Tuple

from holdfast.farside.system.files import names_in
from holdfast.farside.system.nofollow import beginning
from holdfast.farside.system.real_paths import real_path

WHEEL, CONDA = "wheel", "conda"
_PYTHON = re.compile(r"python(3\.\d+)\Z")
_METADATA_ENDINGS = (".dist-info", ".egg-info")
_EGG = re.compile(r"-py\d(?:\.\d+)?\Z")
_LONGEST = 1 << 22
_OF_ONE_MACHINE = re.compile(r"-linux_\w+\Z")


class InstalledPackage(NamedTuple):
    """One installed package. What conda installed for Python is there twice: as conda's package and as Python's."""

    name: str
    """As indexes spell it: small letters, `-` between words."""
    version: str
    folder: str
    """Where it is found: a `site-packages`, or the prefix."""
    source: str = WHEEL
    tags: Tuple[str, ...] = ()
    """What its wheel says it is for (`cp311-cp311-manylinux_2_28_x86_64`); none where that is not known."""
    modules: Optional[Tuple[str, ...]] = None
    """How its compiled modules end (`.cpython-311-x86_64-linux-gnu.so`). Looked at only where the tags are not for the
    Python and system whose folder it is in: a wheel's own word about that is sometimes wrong."""
    build: str = ""
    """Conda's word for it, as `cuda126py312h01e8fe5_200`."""


def packages_of_prefix(prefix: str) -> List[InstalledPackage]:
    """All of a prefix: a virtual environment, a Python's own, or one of conda."""
    return conda_packages(prefix) + packages_of_folders(site_folders(prefix), has_conda(prefix))


def packages_of_folders(folders: Iterable[str], beside_conda: bool = False) -> List[InstalledPackage]:
    """Of folders as they stand in `sys.path`, in that order, each sorted by name."""
    return [each for folder in folders for each in _packages(folder, beside_conda)]


def conda_packages(prefix: str) -> List[InstalledPackage]:
    found = []
    for file in names_in(os.path.join(prefix, "conda-meta")):
        parts = file[: -len(".json")].rsplit("-", 2)
        if file.endswith(".json") and len(parts) == 3:
            found.append(InstalledPackage(normalized(parts[0]), parts[1], prefix, CONDA, build=parts[2]))
    return found


def has_conda(prefix: str) -> bool:
    return os.path.isdir(os.path.join(prefix, "conda-meta"))


def site_folders(prefix: str) -> List[str]:
    """Each once, however many names lead to it."""
    found, seen = [], set()
    for library in ("lib", "lib64", "Lib"):
        for python in names_in(os.path.join(prefix, library)):
            if not (_PYTHON.match(python) or python in ("python3", "site-packages")):
                continue
            below = (".",) if python == "site-packages" else ("site-packages", "dist-packages")
            for kind in below:
                folder = os.path.normpath(os.path.join(prefix, library, python, kind))
                if os.path.isdir(folder) and real_path(folder) not in seen:
                    seen.add(real_path(folder))
                    found.append(folder)
    return found


def lines(packages: Iterable[InstalledPackage]) -> List[str]:
    """`name==version` of each, for a record."""
    return sorted({"%s==%s" % (each.name, each.version) for each in packages})


def compiled(packages: Iterable[InstalledPackage]) -> List[str]:
    """Names of those that a compiler of the machine made, with what it found there: by the tags of wheels that are for
    one machine only."""
    return sorted({each.name for each in packages if any(_OF_ONE_MACHINE.search(tag) for tag in each.tags)})


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def read_text(path: str, longest: int = _LONGEST) -> str:
    """Empty if it is not there or cannot be read. A few files are as large as they like: not more than `longest`."""
    try:
        return beginning(path, longest).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def _packages(folder: str, beside_conda: bool) -> List[InstalledPackage]:
    found = []
    for name in sorted(names_in(folder), key=str.lower):
        if not name.endswith(_METADATA_ENDINGS):
            continue
        known = _name_and_version(folder, name)
        if known is None:
            continue
        metadata = os.path.join(folder, name)
        tags = _tags(metadata, beside_conda) if name.endswith(".dist-info") else ()
        modules = _modules(metadata) if tags and _are_odd(tags, folder) else None
        found.append(InstalledPackage(known[0], known[1], folder, WHEEL, tags, modules))
    return found


def _name_and_version(folder: str, name: str) -> Optional[Tuple[str, str]]:
    stem = _EGG.sub("", name.rpartition(".")[0])
    if stem.count("-") == 1 and all(stem.split("-")):
        package, version = stem.split("-")
        return normalized(package), version
    for file in ("METADATA", "PKG-INFO"):
        text = read_text(os.path.join(folder, name, file), 1 << 16)
        head = re.split(r"\r?\n\r?\n", text, maxsplit=1)[0]  # the fields in front of the description
        fields = dict(re.findall(r"^(Name|Version):[ \t]*(\S+)", head, re.MULTILINE))
        if len(fields) == 2:
            return normalized(fields["Name"]), fields["Version"]
    return None


def _tags(metadata: str, beside_conda: bool) -> Tuple[str, ...]:
    """None of a package that conda built: it is for its channel's system, whatever the machine that built it wrote."""
    if beside_conda and read_text(os.path.join(metadata, "INSTALLER"), 100).strip() == "conda":
        return ()
    return tuple(re.findall(r"^Tag:[ \t]*(\S+)", read_text(os.path.join(metadata, "WHEEL"), 1 << 16), re.MULTILINE))


def _are_odd(tags: Tuple[str, ...], folder: str) -> bool:
    """Whether no tag is plainly for a Linux and the Python of this folder."""
    python = _PYTHON.search(os.path.basename(os.path.dirname(folder)))
    own = "cp" + python.group(1).replace(".", "") if python else ""
    for tag in tags:
        version, abi, platform = (tag.split("-", 2) + ["", ""])[:3]
        is_python = "py3" in version.split(".") or abi == "abi3" or own in version.split(".")
        if is_python and (platform == "any" or "linux" in platform):
            return False
    return True


def _modules(metadata: str) -> Tuple[str, ...]:
    """From the list of its files: `a/b.cpython-36m-x86_64-linux-gnu.so,sha256=…,123` on each line."""
    paths = (line.partition(",")[0] for line in read_text(os.path.join(metadata, "RECORD")).splitlines())
    files = (re.split(r"[/\\]", path)[-1] for path in paths if path.endswith((".so", ".pyd")))
    return tuple(sorted({file[file.index(".") :] for file in files}))
