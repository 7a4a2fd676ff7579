"""Which locks may be used on a machine."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.farside.environments.built_environment import Known
from holdfast.farside.environments.locks import make_lock, torch_backend
from holdfast.farside.environments.platforms import platform_name

OLD = {"driver": "470.57.02", "cuda": "11.4", "devices": [{"name": "K80", "capability": [3, 7], "state": "ok"}]}
NEW = {"driver": "580.65.06", "cuda": "13.0", "devices": [{"name": "H100", "capability": [9, 0], "state": "ok"}]}
NONE: dict[str, Any] = {"driver": None, "cuda": None, "devices": []}
NO_GPU = {**NONE, "state": "no-driver"}
TORCH = "torch==2.13.0 \\\n    --hash=sha256:aa\nnvidia-cuda-runtime==13.0.48 \\\n    --hash=sha256:bb\n"
CONDA = [{"name": "python", "version": "3.11.2", "url": "u", "sha256": "s"}]


@pytest.mark.parametrize(
    ("gpus", "lock", "expected"),
    [
        (NONE, {}, True),
        (NONE, {"platform": "linux-aarch64-glibc2.36"}, False),
        (NONE, {"python": "3.12.2"}, False),
        (NEW, {"requirements": TORCH}, True),
        (NONE, {"requirements": TORCH}, True),
        (OLD, {"requirements": TORCH}, False),
        (OLD, {"requirements": TORCH, "backend": "auto"}, True),  # no better one was found for such a driver
        (NO_GPU, {"requirements": TORCH}, False),  # of another machine: one without a GPU gets another build
        (NO_GPU, {"requirements": "torch==2.13.0+cpu \\\n    --hash=sha256:aa\n", "backend": "cpu"}, True),
        (NEW, {"requirements": "torch==2.13.0+cpu \\\n    --hash=sha256:aa\n", "backend": "cpu"}, False),
        (NONE, {"conda": CONDA, "cuda": ""}, True),
        (NEW, {"conda": CONDA, "cuda": ""}, False),
        (NONE, {"conda": CONDA, "cuda": "12.4"}, False),
        (NEW, {"conda": CONDA, "cuda": "12.4"}, True),
        (OLD, {"conda": CONDA, "cuda": "12.4"}, False),
    ],
)
def test_a_lock_is_for_its_platform_python_and_driver(home, gpus, lock, expected):
    given = {"platform": platform_name(), "python": "3.11.2", "requirements": "", **lock}
    assert Known(home, {"python": "3.11", "spec": "spec"}, gpus).fits(make_lock("spec", **given)) is expected


@pytest.mark.parametrize(
    ("text", "backend", "words"),
    [
        ("torch==2.7.1+cu126 \\\n", "auto", ["--torch-backend", "cu126"]),
        ("torch==2.7.1+cu126 \\\n", "", []),
        (TORCH, "auto", []),
    ],
)
def test_a_build_of_pytorch_for_a_driver_is_looked_for_where_it_was_found(text, backend, words):
    assert torch_backend(make_lock("s", "p", "3.11.2", text, backend=backend)) == words
