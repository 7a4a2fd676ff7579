"""What a lock is for: the system, the architecture and the C library of the machine that will run it."""

import os
import re
from typing import Optional, Tuple

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
