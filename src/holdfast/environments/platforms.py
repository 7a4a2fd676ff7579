"""What uv calls the machines that packages are chosen for, when that is not this one."""

from __future__ import annotations

import re

from holdfast.errors import NotAvailable

_ARCHITECTURES = ("x86_64", "aarch64")
_GLIBC = (17, 28, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40)
"""The minor versions that uv has a name for; there are next to no packages for those between."""


def uv_platform(name: str) -> str:
    """`x86_64-manylinux_2_36` for `linux-x86_64-glibc2.36`: the newest that runs there."""
    found = re.fullmatch(r"linux-(?P<architecture>\w+)-(?:musl|glibc2\.(?P<minor>\d+))", name)
    if found is None or found["architecture"] not in _ARCHITECTURES:
        raise _unknown(name)
    if found["minor"] is None:
        return f"{found['architecture']}-unknown-linux-musl"
    fitting = [minor for minor in _GLIBC if minor <= int(found["minor"])]
    if not fitting:
        raise _unknown(name)
    return f"{found['architecture']}-manylinux_2_{fitting[-1]}"


def _unknown(name: str) -> NotAvailable:
    return NotAvailable(
        f"Packages cannot be chosen here for a machine that is `{name}`.",
        "Leave out --ship-packages where the machine reaches an index, or use its own Python: "
        "`userManagedEnvironment: true` in its .compute file.",
    )
