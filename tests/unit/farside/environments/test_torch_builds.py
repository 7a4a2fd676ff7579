"""Which build of PyTorch is in a lock, whose choice it was, and what is said of it."""

from __future__ import annotations

import pytest

from holdfast.farside.environments import torch_builds
from holdfast.farside.environments.drivers import EnvironmentMachine
from holdfast.farside.environments.resolve import without_folders
from holdfast.farside.environments.torch_builds import TorchBuild, build_among, is_chosen, is_needless, public_versions

USUAL = ["torch==2.13.0", "nvidia-cuda-runtime-cu12==12.8.90", "nvidia-nccl-cu12==2.27.3", "six==1.17.0"]
NO_GPU = EnvironmentMachine(is_without_gpu=True)
WITH_GPU = EnvironmentMachine(driver="580.65.06")


def test_a_build_is_told_from_its_packages():
    assert build_among(["six==1.17.0", "torchvision==0.2"]) is None
    assert build_among(USUAL) == TorchBuild("2.13.0", "", "12.8", 2)
    assert build_among(["torch==2.7.1+cpu"]) == TorchBuild("2.7.1", "cpu", "", 0)


@pytest.mark.parametrize(
    ("packages", "machine", "expected"),
    [
        (USUAL, NO_GPU, True),
        (USUAL, WITH_GPU, False),
        (USUAL, EnvironmentMachine(), False),
        (["torch==2.7.1+cpu"], NO_GPU, False),
        (["nvidia-nccl-cu12==2.27.3"], NO_GPU, False),
    ],
)
def test_cuda_is_needless_only_where_there_is_surely_no_gpu(packages, machine, expected):
    assert is_needless(build_among(packages), machine) is expected


@pytest.mark.parametrize(
    ("options", "requirements", "variables", "expected"),
    [
        ([], ["torch>=2", "torchvision"], {}, False),
        ([], ["torch==2.3.0+cu121"], {}, True),
        ([], ["torch @ https://x.example/torch-2.3.0%2Bcu121-cp311-cp311-linux_x86_64.whl"], {}, True),
        (["--extra-index-url https://download.pytorch.org/whl/cu121"], ["torch"], {}, True),
        (["--extra-index-url https://x.example/simple"], ["torch"], {"UV_TORCH_BACKEND": ""}, False),
        ([], ["torch"], {"UV_TORCH_BACKEND": "cu126"}, True),
    ],
)
def test_a_build_that_the_user_chose_is_left_alone(options, requirements, variables, expected):
    assert is_chosen(options, requirements, variables) is expected


def test_every_choice_has_its_line():
    build = TorchBuild("2.13.0", "", "12.8", 15)
    assert torch_builds.said_of(build, WITH_GPU).endswith("built for CUDA 12.8, which driver 580.65.06 supports.")
    assert torch_builds.said_of(TorchBuild("2.13.0", "", "", 0), NO_GPU) == ""
    assert "Your files or settings chose it" in torch_builds.said_of_kept(build)
    assert "-d pyproject.toml" in torch_builds.said_of_locked(build)
    assert "has none that fits: no solution" in torch_builds.said_of_unreachable(build, "no solution")


def test_versions_are_shared_without_their_builds():
    given = {"torch": "2.7.1+cpu", "x": "1.0+local", "y": "2+cu126"}
    assert public_versions(given) == {"torch": "2.7.1", "x": "1.0+local", "y": "2"}


def test_folders_of_the_project_are_no_packages_of_a_lock():
    text = "${HOLDFAST_FILES}[x]\n    # via a\nsix==1 \\\n    --hash=sha256:aa\n${HOLDFAST_FILES}/lib\n"
    wheel = "${HOLDFAST_FILES}/w/x-1-py3-none-any.whl \\\n    --hash=sha256:bb\n"
    assert without_folders(text + wheel) == "six==1 \\\n    --hash=sha256:aa\n" + wheel
