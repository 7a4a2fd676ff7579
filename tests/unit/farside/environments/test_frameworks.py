"""What a framework was built for is read from untrusted files: nothing is executed, nothing raises."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from holdfast.farside.environments.drivers import (
    EnvironmentMachine,
    GpuModel,
    fitness,
    is_too_old,
    minimum_driver,
    newest_major,
)
from holdfast.farside.environments.frameworks import Build, framework_of, read_environment
from kit.fatbins import cuda_library


def put(site: Path, path: str, content: str | bytes) -> None:
    (site / path).parent.mkdir(parents=True, exist_ok=True)
    (site / path).write_bytes(content.encode() if isinstance(content, str) else content)


def builds(site: Path) -> list[Build]:
    return list(read_environment(str(site.parents[2])).builds)


@pytest.mark.parametrize(
    ("text", "cuda", "is_cpu", "other"),
    [
        ("cuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n", "13.0", False, ""),
        ('cuda = "10.2"\n', "10.2", False, ""),
        ("open('executed', 'w')\ncuda = '12.6'\n", "12.6", False, ""),
        ("cuda = None\nhip = None\n", None, True, ""),
        ("cuda = None\nhip = '6.4.2'\n", None, False, "ROCm"),
        ("cuda: Optional[str] = None\nxpu: Optional[str] = '20250101'\n", None, False, "Intel GPUs"),
        ("cuda = find_cuda()\n", None, None, ""),
        ("# cuda = None\n", None, None, ""),
        ("if x:\n    cuda = None\n", None, None, ""),
        ("", None, None, ""),
        ("\0\xff" * 1000, None, None, ""),
    ],
)
def test_pytorch_says_its_cuda_in_version_py_which_is_not_executed(text, cuda, is_cpu, other, site, tmp_path):
    put(site, "torch/version.py", text.replace("'executed'", repr(str(tmp_path / "executed"))))
    assert builds(site) == [Build("torch", "torch", "", cuda, is_cpu, other=other)]
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    "text",
    [
        "build_info = {'is_cuda_build': True, 'cuda_version': '11.2', "
        "'cuda_compute_capabilities': ['sm_35', 'compute_80']}",
        "build_info = OrderedDict([('cuda_version', '11.2'), ('is_cuda_build', True), "
        "('cuda_compute_capabilities', ['sm_35', 'compute_80'])])",
    ],
)
def test_tensorflow_says_its_architectures_where_its_library_does_not(text, site, tmp_path):
    executed = tmp_path / "executed"
    put(site, "tensorflow/python/platform/build_info.py", f"open({str(executed)!r}, 'w')\n{text}")
    assert builds(site) == [Build("tensorflow", "tensorflow", "", "11.2", False, ("sm_35", "sm_80", "ptx_80"))]
    assert not executed.exists()


@pytest.mark.parametrize(
    ("package", "is_one"),
    [
        *[("tensorflow", True), ("tensorflow-cpu", True), ("tf-nightly", True), ("tf-nightly-gpu", True)],
        *[("tensorflow-io", False), ("tensorflow-io-gcs-filesystem", False), ("tensorflow-datasets", False)],
        *[("tf-nightly-intel", False), ("tensorflow-estimator", False)],
    ],
)
def test_a_package_that_only_begins_like_a_framework_is_none(package, is_one, site):
    put(site, f"{package.replace('-', '_')}-2.0.dist-info/METADATA", f"Name: {package}\nVersion: 2.0\n")
    assert builds(site) == ([Build("tensorflow", package, "2.0")] if is_one else [])
    assert framework_of(package) == ("tensorflow" if is_one else "")


def test_old_jax_has_cuda_inside_and_one_with_parts_of_it_is_unknown(site):
    (site / "jaxlib-0.4.13+cuda11.cudnn86.dist-info").mkdir()
    put(site, "jaxlib/xla_extension.so", cuda_library(["sm_70"]))
    assert [(each.cuda, each.is_cpu, each.architectures) for each in builds(site)] == [("11", False, ("sm_70",))]
    (site / "jaxlib-0.4.13+cuda11.cudnn86.dist-info").rename(site / "jaxlib-0.4.13.dist-info")
    (site / "jaxlib" / "cuda").mkdir()
    assert [each.is_cpu for each in builds(site)] == [None]


def test_a_text_made_to_be_slow_is_read_in_a_moment(site):
    put(site, "tensorflow/python/platform/build_info.py", "'a',[" * 60000)
    put(site, "torch/version.py", "a" * 60000 + ":" * 60000)
    begun = time.process_time()
    assert [each.is_cpu for each in builds(site)] == [None, None]
    assert time.process_time() - begun < 2


def test_files_that_are_folders_pipes_and_links_to_themselves_are_unknown(site):
    (site / "torch" / "version.py").mkdir(parents=True)
    (site / "cntk" / "libs").mkdir(parents=True)
    (site / "onnxruntime" / "capi").mkdir(parents=True)
    os.mkfifo(site / "onnxruntime" / "capi" / "build_and_package_info.py")
    put(site, "xgboost/lib/libxgboost.so", b"\x7fELF")
    (site / "cntk" / "libs" / "libCntk.Math-2.7.so").symlink_to("libCntk.Math-2.7.so")
    assert {each.is_cpu for each in builds(site)} == {None}


def test_the_frameworks_of_several_folders_are_those_that_python_finds_first(tmp_path):
    for name, cuda in (("first", "'12.6'"), ("second", "None")):
        put(tmp_path / name, "torch/version.py", f"cuda = {cuda}\n")
    folders = [str(tmp_path / "first"), str(tmp_path / "second")]
    assert [each.cuda for each in read_environment(str(tmp_path), folders).builds] == ["12.6"]
    assert [each.is_cpu for each in read_environment(str(tmp_path), folders[::-1]).builds] == [True]


OLDEST = {
    "13.1": "580",
    "12.9": "525.60.13",
    "12": "525.60.13",
    "11.8": "450.80.02",
    "11.0": "450.36.06",
    "10.2": "440.33",
    "10": "410.48",
    "9.1": "384.81",
    "8.0": "375.26",
    "14.0": None,
    "": None,
}


def test_each_cuda_has_its_oldest_driver():
    assert {cuda: minimum_driver(cuda) for cuda in OLDEST} == OLDEST


@pytest.mark.parametrize(
    ("driver", "supported", "cuda", "too_old"),
    [
        ("525.60.13", "12.0", "12.9", False),
        ("525.60", None, "12.9", False),
        ("520.61.05", "11.8", "12.0", True),
        ("450.80.02", "11.0", "11.8", False),
        ("450.36.06", "11.0", "11.8", True),
        ("440.33.01", "10.2", "10.2", False),
        ("418.39", "10.1", "10.2", True),
        ("535.104.05", "13.0", "13.0", False),  # a newer library of the driver in front of it
        ("580.65.06", "13.0", "13.2", False),
        ("580.65.06", "13.0", "14.0", True),
        (None, "12.2", "12.9", False),
        (None, "12.2", "13.0", True),
        (None, "10.1", "10.2", True),
        (None, None, "13.0", False),
        ("unknown", "unknown", "13.0", False),
    ],
)
def test_a_driver_is_too_old_only_where_that_is_known(driver, supported, cuda, too_old):
    assert is_too_old(EnvironmentMachine(driver=driver, cuda=supported), cuda) is too_old


def test_the_newest_cuda_of_a_driver():
    drivers = ("580.65.06", "575.57.08", "470.256.02", "390.157", None)
    assert [newest_major(EnvironmentMachine(driver=each)) for each in drivers] == [13, 12, 11, None, None]


@pytest.mark.parametrize(
    ("code", "device", "word"),
    [
        ("sm_80", (8, 9), "runs"),
        ("sm_86", (8, 0), "no-code"),
        ("sm_80", (9, 0), "no-code"),
        ("sm_90a", (9, 0), "runs"),
        ("sm_100a", (10, 3), "no-code"),
        ("sm_100f", (10, 3), "runs"),
        ("ptx_70", (12, 0), "runs"),
        ("ptx_90a", (10, 0), "no-code"),
        ("ptx_100f", (10, 3), "runs"),
        ("ptx_100f", (12, 0), "no-code"),
        ("ptx_90", (8, 9), "no-code"),
        ("sm_101", (11, 0), "runs"),
        ("odd", (8, 0), "no-code"),
        ("sm_80", None, "unknown"),
    ],
)
def test_code_runs_where_nvidia_says_so(code, device, word):
    assert fitness([code], None, GpuModel("a GPU", device), EnvironmentMachine()) == word


def test_ptx_is_compiled_by_a_driver_that_is_not_older_than_it():
    device = GpuModel("a GPU", (12, 0))
    for supported, word in (("12.8", "ptx-too-new"), ("12.9", "runs"), ("13.0", "runs"), (None, "runs")):
        assert fitness(["sm_90", "ptx_90"], "12.9", device, EnvironmentMachine(cuda=supported)) == word
    assert fitness([], "12.9", device, EnvironmentMachine(cuda="12.8")) == "unknown"
