"""What is shipped to a host, and that NVIDIA's module is among it without being imported."""

from __future__ import annotations

from pathlib import Path

from holdfast.hosts.shipping import _pynvml, far_side, install

REAL = b"# Copyright (c) 2011-2025, NVIDIA Corporation.\n\ndef nvmlInitWithFlags(flags):\n    pass\n"


def test_nvidias_module_is_shipped_in_a_folder_that_no_script_looks_into(tmp_path: Path) -> None:
    shipped = far_side()
    root = install(shipped, tmp_path)
    assert (root / "nvml" / "pynvml.py").is_file()
    assert not (root / "pynvml.py").exists()
    assert all(content.decode("utf-8") for name, content in shipped.files if name.startswith("nvml/"))


def test_another_file_of_that_name_is_passed_over(tmp_path: Path) -> None:
    for name, content in (("project", b"print('mine')\n"), ("site-packages", REAL)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pynvml.py").write_bytes(content)
    assert _pynvml([str(tmp_path / "project"), str(tmp_path / "none"), str(tmp_path / "site-packages")]) == REAL
    assert _pynvml([str(tmp_path / "project")]) is None
