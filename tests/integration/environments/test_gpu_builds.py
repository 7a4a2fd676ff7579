"""A run on a machine with GPUs says before its script starts that the installed packages cannot use them."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.runs.conftest import Bench, bench  # noqa: F401 - a fixture
from kit.nvml import Device, Simulated

VERSION_FILE = "__version__ = '2.13.0+cpu'\ndebug = False\ncuda = None\nhip = None\n"


@pytest.fixture
def gpus(tmp_path: Path, needs: Callable[..., None]) -> Simulated:
    needs("gcc")
    return Simulated(tmp_path / "gpus", [Device(pci="06c3:00:00.0")])


@pytest.fixture
def managed(bench: Bench) -> Bench:  # noqa: F811
    bench.write("aml_config/local.compute", "type: local\nuserManagedEnvironment: false\n")
    bench.write("aml_config/local.runconfig", "Target: local\nFramework: Python\n")
    bench.write("t.py", "import torch\nprint('trained')\n")
    return bench


def wheel(folder: Path, name: str, version: str, files: dict[str, str], needs: str = "") -> str:
    """A wheel of this name with only the files that say how the real one was built."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}"
    texts = {**files, f"{info}/METADATA": metadata, f"{info}/WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\n"}
    record = "".join(f"{each},,\n" for each in (*texts, f"{info}/RECORD"))
    with zipfile.ZipFile(path, "w") as archive:
        for each, text in {**texts, f"{info}/RECORD": record}.items():
            archive.writestr(each, text)
    return path.name


def conda(*lines: str) -> str:
    return "dependencies:\n  - pip:\n" + "".join(f"      - {line}\n" for line in lines)


def test_a_cpu_build_is_named_with_its_remedy_before_the_script_starts(managed: Bench, gpus: Simulated) -> None:
    files = {"torch/__init__.py": "", "torch/version.py": VERSION_FILE}
    name = wheel(managed.root / "wheels", "torch", "2.13.0+cpu", files)
    managed.write("aml_config/conda_dependencies.yml", conda(f"../wheels/{name}"))

    result = managed.submit("-c", "local", "t.py", env=gpus.environment)

    assert result.code == 0, result.err
    assert result.out.endswith("trained\n")
    journal = managed.journal(managed.record()["run_id"])
    notes = [each["text"] for each in journal if each["e"] == "note"]
    assert len(notes) == 1
    assert "PyTorch 2.13.0+cpu was built without CUDA" in notes[0]
    assert [each["e"] for each in journal].index("note") < [each["e"] for each in journal].index("started")
    assert "PyTorch 2.13.0+cpu was built without CUDA" in result.err


def test_without_a_gpu_nothing_is_said(managed: Bench) -> None:
    files = {"torch/__init__.py": "", "torch/version.py": VERSION_FILE}
    name = wheel(managed.root / "wheels", "torch", "2.13.0+cpu", files)
    managed.write("aml_config/conda_dependencies.yml", conda(f"../wheels/{name}"))

    result = managed.submit("-c", "local", "t.py", env={"HOLDFAST_NVML": "/nowhere"})

    assert result.code == 0, result.err
    assert not [each for each in managed.journal(managed.record()["run_id"]) if each["e"] == "note"]


@pytest.mark.parametrize(("driver", "asks"), [("470.57.02", True), ("580.65.06", False)])
def test_uv_is_asked_for_another_build_of_pytorch_only_where_the_driver_is_too_old(
    managed: Bench, gpus: Simulated, driver: str, asks: bool
) -> None:
    gpus.driver, gpus.cuda = driver, (11040 if asks else 13000)
    gpus.write()
    folder = managed.root / "wheels"
    wheel(folder, "torch", "2.13.0", {"torch/__init__.py": ""}, "Requires-Dist: nvidia-cuda-runtime==13.0.48\n")
    wheel(folder, "nvidia-cuda-runtime", "13.0.48", {"nvidia_runtime.py": ""})
    managed.write("aml_config/conda_dependencies.yml", conda("--no-index", "--find-links ../wheels", "torch"))

    managed.submit("-c", "local", "t.py", env={**gpus.environment, "UV_FIND_LINKS": str(folder)})

    run = managed.record()["run_id"]
    control = (managed.far(run) / "control_log").read_text()
    notes = [each["text"] for each in managed.journal(run) if each["e"] == "note"]
    assert ("--torch-backend auto" in control) is asks
    assert any("needs a newer driver than 470.57.02" in note for note in notes) is asks
