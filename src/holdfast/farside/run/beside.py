"""The user's own Python: its version and the packages that it finds, read from its folders."""

import os
import re
from typing import List, Tuple

from holdfast.farside.environments.installed import lines, packages_of_prefix


def beside(python: str) -> Tuple[str, List[str]]:
    """The version of a Python that is the user's own, and the packages that it finds, read from its folders."""
    prefix = os.path.dirname(os.path.dirname(python))
    version, real = "", os.path.realpath(python)
    try:
        with open(os.path.join(prefix, "pyvenv.cfg")) as source:
            settings = dict(line.split("=", 1) for line in source.read().replace(" ", "").splitlines() if "=" in line)
        version = settings.get("version") or settings.get("version_info", "")
    except OSError:
        prefix = os.path.dirname(os.path.dirname(real))
    named = re.search(r"python(3\.[0-9]+)", os.path.basename(real))
    found = set(lines(packages_of_prefix(prefix)))
    if prefix == "/usr":
        found.update(lines(packages_of_prefix("/usr/local")))
    return version or (named.group(1) if named else ""), sorted(found, key=str.lower)
