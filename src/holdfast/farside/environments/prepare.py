"""The environment of a run: which Python, exactly which packages, found or built. What was asked for before costs a few
looks at the disk."""

import os
import time
from typing import List, NamedTuple

from holdfast.farside.environments.built_environment import Environment, Known
from holdfast.farside.environments.locks import Lock, write_lock
from holdfast.farside.environments.workshop import Workshop
from holdfast.farside.system.layout import ENVIRONMENT
from holdfast.farside.system.ownership import make_private
from holdfast.farside.system.refusal import Refused


class PreparedEnvironment(NamedTuple):
    environment: Environment
    lock: Lock
    packages: List[str]
    python: str
    built: bool
    seconds: float


def prepare(known: Known, shop: Workshop, may_build: bool) -> PreparedEnvironment:
    """The run's folder gets the lock."""
    began = time.monotonic()
    make_private(known.home.locks())
    found = None if known.plan["rebuild"] or known.plan["upgrade"] else known.find()
    built = False
    if found is None:
        if not may_build:
            raise Refused("preparation", "it is not built yet, and `PrepareEnvironment` is false")
        from holdfast.farside.environments.build import Maker  # brings what most runs do not need

        found, built = Maker(known, shop).make()
    mark = found.environment.mark()
    packages = [str(each) for each in mark.get("packages", [])]
    seconds = round(time.monotonic() - began, 3)
    write_lock(os.path.join(shop.folder, ENVIRONMENT), found.lock)
    return PreparedEnvironment(found.environment, found.lock, packages, str(mark.get("python", "")), built, seconds)
