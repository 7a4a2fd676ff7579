"""uv for a place that this machine's own build does not run at: an image with another C library."""

import os
import shutil
import sys

from holdfast.farside.environments import uv
from holdfast.farside.environments.complaints import explain
from holdfast.farside.environments.tools import path_of
from holdfast.farside.environments.workshop import Workshop
from holdfast.farside.layout import Home
from holdfast.farside.refusal import Refused
from holdfast.farside.run.children import inherited_environment


def bring_uv(home: Home, path: str, shop: Workshop) -> None:
    """Fetch the build of uv that runs in an image, with the one of this machine: `path` is where it is wanted."""
    folder = os.path.dirname(path)
    name, architecture, libc = os.path.basename(folder).rsplit("-", 2)
    here = Workshop(shop.owner, {}, [])
    new = "%s.new-%d" % (folder, os.getpid())
    platform = "%s-unknown-linux-%s" % (architecture, "musl" if libc == "musl" else "gnu")
    argv = [path_of(home, name), "pip", "install", "--no-deps", "--only-binary", ":all:", "--target", new]
    argv += ["--python-platform", platform, "--python", sys.executable, name.replace("-", "==", 1)]
    shop.phase("fetching %s for %s" % (name, platform))
    try:
        result = here.run(argv, uv.variables(home, dict(inherited_environment()), uv.CACHE))
        if result.code != 0 or not os.path.exists(os.path.join(new, "bin", "uv")):
            reason = explain(result.output, []).sentence()
            raise Refused("preparation", "uv for %s could not be fetched: %s" % (platform, reason))
        os.makedirs(folder, exist_ok=True)
        os.chmod(os.path.join(new, "bin", "uv"), 0o700)
        os.rename(os.path.join(new, "bin", "uv"), path)  # in one step: whoever finds it can run it
    finally:
        shutil.rmtree(new, ignore_errors=True)
