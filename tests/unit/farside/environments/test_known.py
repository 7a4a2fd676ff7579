"""Which locks may be used on a machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.environments.known import Known
from holdfast.farside.environments.locks import is_honest, is_lock, make_lock, torch_backend
from holdfast.farside.environments.platforms import platform_name
from holdfast.farside.layout import Home

OLD = {"driver": "470.57.02", "cuda": "11.4", "devices": [{"name": "K80", "capability": [3, 7], "state": "ok"}]}
NEW = {"driver": "580.65.06", "cuda": "13.0", "devices": [{"name": "H100", "capability": [9, 0], "state": "ok"}]}
NONE: dict[str, Any] = {"driver": None, "cuda": None, "devices": []}
TORCH = "torch==2.13.0 \\\n    --hash=sha256:aa\nnvidia-cuda-runtime==13.0.48 \\\n    --hash=sha256:bb\n"
CONDA = [{"name": "python", "version": "3.11.2", "url": "u", "sha256": "s"}]


def fits(tmp_path: Path, gpus: dict[str, Any], python: str = "3.11", **lock: Any) -> bool:
    given = {"platform": platform_name(), "python": "3.11.2", "requirements": "", **lock}
    return Known(Home(str(tmp_path)), {"python": python}, gpus).fits(make_lock("spec", **given))


def test_a_lock_is_for_its_platform_and_python(tmp_path) -> None:
    assert fits(tmp_path, NONE)
    assert not fits(tmp_path, NONE, platform="linux-aarch64-glibc2.36")
    assert not fits(tmp_path, NONE, python="3.12")


def test_a_build_of_pytorch_that_the_driver_cannot_run_is_resolved_again(tmp_path) -> None:
    assert fits(tmp_path, NEW, requirements=TORCH)
    assert fits(tmp_path, NONE, requirements=TORCH)
    assert not fits(tmp_path, OLD, requirements=TORCH)
    assert fits(tmp_path, OLD, requirements=TORCH, backend="auto"), "no better one was found for such a driver"


@pytest.mark.parametrize(
    ("gpus", "cuda", "expected"),
    [(NONE, "", True), (NEW, "", False), (NONE, "12.4", False), (NEW, "12.4", True), (OLD, "12.4", False)],
)
def test_conda_packages_are_for_machines_with_such_a_driver(tmp_path, gpus, cuda: str, expected: bool) -> None:
    assert fits(tmp_path, gpus, conda=CONDA, cuda=cuda) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TORCH, True),
        ("mine @ https://host/mine-1-py3-none-any.whl \\\n    --hash=sha256:aa\n", True),
        ("${HOLDFAST_FILES}/w/x-1-py3-none-any.whl \\\n    --hash=sha256:aa\n", True),
        ("--index-url https://evil/simple\nsix==1 \\\n    --hash=sha256:aa\n", False),
        ("-r /etc/passwd\n", False),
        ("six @ https://evil/six-1-py3-none-any.whl \\\n    --hash=sha256:aa\n", False),
        ("${HOLDFAST_FILES}/../x.whl\n", False),
    ],
)
def test_a_lock_from_elsewhere_may_say_which_packages_and_nothing_else(text: str, expected: bool) -> None:
    asked = ["mine @ https://host/mine-1-py3-none-any.whl", "${HOLDFAST_FILES}/w/x-1-py3-none-any.whl", "six"]

    lock = make_lock("spec", "p", "3.11.2", text)
    assert (is_lock(lock) and is_honest(lock, asked)) is expected


def test_a_build_of_pytorch_for_a_driver_is_looked_for_where_it_was_found() -> None:
    assert torch_backend(make_lock("s", "p", "3.11.2", "torch==2.7.1+cu126 \\\n", backend="auto")) == [
        "--torch-backend",
        "cu126",
    ]
    assert torch_backend(make_lock("s", "p", "3.11.2", "torch==2.7.1+cu126 \\\n")) == []
    assert torch_backend(make_lock("s", "p", "3.11.2", TORCH, backend="auto")) == []
