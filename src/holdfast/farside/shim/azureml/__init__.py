"""Stands in for `azureml` inside runs, for scripts that log with `azureml.logging`. Gives way to a real one.

The folder above is on the path of every run, before the installed packages. So when this module is imported,
it looks for another `azureml`, becomes that one, and lends it `azureml.logging` only if it has none.
"""

import importlib.util
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import List, Optional

_HERE = os.path.dirname(os.path.abspath(__file__))
_ANY_SHIM = os.path.join("holdfast", "farside", "shim")


def _give_way() -> None:
    spec = _find("azureml", _path_without_shims())
    if spec is not None:
        _lend_logging(_become(spec))


def _path_without_shims() -> "List[str]":
    """The path without this shim, and without those of other versions, which a run inside a run has too."""
    own = os.path.realpath(os.path.dirname(_HERE))
    found = []
    for entry in sys.path:
        folder = os.path.realpath(entry)
        if folder != own and not folder.endswith(os.sep + _ANY_SHIM):
            found.append(entry)
    return found


def _find(name: str, path: "List[str]") -> "Optional[ModuleSpec]":
    """What the import system would find on that path; editable installs have finders of their own."""
    for finder in sys.meta_path:
        spec = finder.find_spec(name, path) if hasattr(finder, "find_spec") else None
        if spec is not None and spec.origin != __file__:
            return spec
    return None


def _become(spec: "ModuleSpec") -> "ModuleType":
    """Load the real package in the place of this module. The import system hands out what stands there."""
    real = importlib.util.module_from_spec(spec)
    sys.modules[__name__] = real
    if spec.loader is not None:  # a namespace package has nothing to run
        spec.loader.exec_module(real)
    return sys.modules[__name__]


def _lend_logging(real: "ModuleType") -> None:
    name = __name__ + ".logging"
    path = getattr(real, "__path__", None)
    if path is None or name in sys.modules or _find(name, list(path)) is not None:
        return
    real.__path__ = [*path, _HERE]


_give_way()
