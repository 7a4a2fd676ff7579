"""What a lock is for: the system, the architecture and the C library of the machine that will run it."""

import os
import re
from typing import Optional, Sequence, Tuple

_GLIBC = re.compile(r"glibc (\d+)\.(\d+)")


def platform_name() -> str:
    """As `linux-x86_64-glibc2.36` or `linux-aarch64-musl`."""
    system = os.uname()
    version = glibc()
    library = "musl" if version is None else "glibc%d.%d" % version
    return "%s-%s-%s" % (system.sysname.lower(), system.machine, library)


def build_name() -> str:
    """Which build of a program runs here, as `x86_64-glibc`."""
    return "%s-%s" % (os.uname().machine, "musl" if glibc() is None else "glibc")


def glibc() -> Optional[Tuple[int, int]]:
    """None where the C library is another one."""
    try:
        found = _GLIBC.match(os.confstr("CS_GNU_LIBC_VERSION") or "")
    except (ValueError, OSError, AttributeError):
        return None
    return (int(found.group(1)), int(found.group(2))) if found else None


SYSTEM, PYTHON, LIBC = "system", "python", "libc"
_MANYLINUX = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
_SYSTEMS = {"win": "windows", "linux": "linux", "manylinux": "linux", "musllinux": "linux", "macosx": "darwin"}
_SYNONYMS = {"amd64": "x86_64", "arm64": "aarch64", "win32": "i686"}
_BOTH = ("universal2", "universal", "intel", "fat", "fat64", "fat32")


def mismatch(tags: Sequence[str], modules: Optional[Sequence[str]], platform: str, python: str) -> Optional[str]:
    """What the wheel is not for, or None if it fits or it is not known. The modules (see `InstalledPackage`) are asked
    before it is held against a wheel that it is for another Python: some that run on all say one."""
    split = [tuple((tag.split("-", 2) + ["", ""])[:3]) for tag in tags]
    rows = [
        (python_tag, abi, platform_tag)
        for pythons, abi, platforms in split
        for python_tag in pythons.split(".")
        for platform_tag in platforms.split(".")
    ]
    if not rows:
        return None
    problems = [_platform_problem(row[2], platform) for row in rows]
    if all(problems):
        return LIBC if LIBC in problems else SYSTEM
    if any(_is_for_python(row[0], row[1], python) for row in rows):
        return None
    return PYTHON if modules is not None and _are_for_another(modules, python) else None


def _platform_problem(tag: str, platform: str) -> Optional[str]:
    here = (platform.split("-", 2) + ["", ""])[:3]
    found = re.match(r"(manylinux|musllinux|linux|macosx|win)", tag)
    if tag == "any" or found is None or not here[0]:
        return None
    if _SYSTEMS[found.group(1)] != here[0]:
        return SYSTEM
    machine = _machine(tag)
    if here[1] and machine and machine not in _BOTH and machine != _SYNONYMS.get(here[1], here[1]):
        return SYSTEM
    if here[0] == "linux" and here[2] and (found.group(1) == "musllinux") != (here[2] == "musl"):
        return None if found.group(1) == "linux" else SYSTEM  # plain `linux` was built on the spot
    needed, glibc = _glibc_needed(tag), re.match(r"glibc(\d+)\.(\d+)\Z", here[2])
    has_less = needed and glibc and (int(glibc.group(1)), int(glibc.group(2))) < needed
    return LIBC if has_less else None


def _machine(tag: str) -> str:
    found = re.match(r"(?:(?:many|musl)linux_\d+_\d+_|manylinux[12]\d*_|linux_|macosx_\d+_\d+_|win_|win32)(\w*)\Z", tag)
    name = "win32" if tag == "win32" else found.group(1) if found else ""
    return _SYNONYMS.get(name, name)


def _glibc_needed(tag: str) -> Optional[Tuple[int, int]]:
    found = re.match(r"manylinux_(\d+)_(\d+)_", tag)
    return (int(found.group(1)), int(found.group(2))) if found else _MANYLINUX.get(tag.partition("_")[0])


def _is_for_python(tag: str, abi: str, python: str) -> bool:
    """False only if the tag names another CPython; tags of PyPy and others count as fitting."""
    found, here = re.match(r"(py|cp)(\d)(\d*)\Z", tag), re.match(r"(\d+)\.(\d+)", python)
    if found is None or here is None:
        return True
    major, minor = int(here.group(1)), int(here.group(2))
    wanted = int(found.group(3)) if found.group(3) else None
    if int(found.group(2)) != major:
        return False
    if wanted is None:
        return True
    return wanted <= minor if found.group(1) == "py" or abi == "abi3" else wanted == minor


def _are_for_another(modules: Sequence[str], python: str) -> bool:
    """Whether there are modules for other Pythons only: `.cpython-36m-x86_64-linux-gnu.so`, `.cp36-win_amd64.pyd`."""
    named = [re.match(r"\.(?:cpython-|cp)(\d)(\d+)", each) for each in modules]
    versions = {"%s.%s" % found.groups() for found in named if found}
    own = ".".join(python.split(".")[:2])
    return bool(versions) and own not in versions and not any("abi3" in each for each in modules)
