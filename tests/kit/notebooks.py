"""Notebooks as Jupyter writes them, and a Python that runs them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from holdfast.workbench.submitting.tools import find_uv
from kit.docker.holding import locked

PACKAGES = ("nbclient==0.11.0", "ipykernel==7.4.0")
_CACHE = Path(__file__).resolve().parents[2] / ".cache" / "notebooks"


def notebook(*cells: str, tagged: str = "") -> str:
    """The file's text. `tagged` is the source of a first cell with the tag `parameters`."""
    sources: list[tuple[str, list[str]]] = [(each, []) for each in cells]
    tags = [(tagged, ["parameters"]), *sources] if tagged else sources
    made = [
        {
            "cell_type": "code",
            "id": f"cell-{number}",
            "metadata": {"tags": tag},
            "source": source.splitlines(keepends=True),
            "execution_count": None,
            "outputs": [],
        }
        for number, (source, tag) in enumerate(tags)
    ]
    kernel = {"name": "another-machine", "display_name": "Python 3", "language": "python"}
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": made})


def active_python(path: str = "") -> dict[str, str]:
    """Variables of a shell in which the environment with a kernel is active. It is made once, and kept. `path` is the
    PATH before."""
    name = hashlib.sha256(" ".join((sys.version, *PACKAGES)).encode()).hexdigest()[:16]
    place = _CACHE / name
    _CACHE.mkdir(parents=True, exist_ok=True)
    with locked(_CACHE / "lock"):
        if not (place / "complete").exists():
            shutil.rmtree(place, ignore_errors=True)
            variables = {
                **os.environ,
                "VIRTUAL_ENV": str(place),
                "UV_CACHE_DIR": str(_CACHE.parent / "packages" / "uv"),
            }
            for words in (("venv", "-q", "--python", sys.executable, str(place)), ("pip", "install", "-q", *PACKAGES)):
                subprocess.run([find_uv(), *words], env=variables, check=True)
            (place / "complete").touch()
    return {"VIRTUAL_ENV": str(place), "PATH": f"{place / 'bin'}{os.pathsep}{path or os.environ['PATH']}"}
