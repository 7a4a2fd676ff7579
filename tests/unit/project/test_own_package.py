"""Which package a project is itself, by files that are read and never run."""

from __future__ import annotations

import os

import pytest

from holdfast.project.own_package import OwnPackage, own_package

POETRY = '[tool.poetry.dependencies]\nname = "no"\n[tool.poetry]\nname = "by-poetry"\n'
SETUP = "from setuptools import setup\nsetup(\n    name='By.Setup', packages=[])\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, OwnPackage()),
        ({"pyproject.toml": '[project]\ndescription = "x"\nname = "My-Lib"\n'}, OwnPackage("my_lib")),
        ({"pyproject.toml": '[project.urls]\nname = "no"\n'}, OwnPackage()),
        ({"pyproject.toml": POETRY}, OwnPackage("by_poetry")),
        ({"setup.cfg": "[metadata]\nname = mylib\n", "setup.py": SETUP}, OwnPackage("mylib")),
        ({"pyproject.toml": "[build-system]\n", "setup.py": SETUP}, OwnPackage("by_setup")),
        ({"setup.py": SETUP + "from torch.utils.cpp_extension import CUDAExtension\n"}, OwnPackage("by_setup", True)),
        ({"pyproject.toml": '[build-system]\nbuild-backend = "mesonpy"\n'}, OwnPackage("", True)),
        ({"pyproject.toml": "\0[[[", "setup.cfg": "\xff", "setup.py": "def ("}, OwnPackage()),
    ],
)
def test_the_name_is_that_of_the_first_file_that_gives_one(tmp_path, files, expected):
    for name, text in files.items():
        (tmp_path / name).write_bytes(text.encode("latin-1"))
    assert own_package(tmp_path) == expected


def test_a_file_that_is_none_is_left_alone(tmp_path):
    os.mkfifo(tmp_path / "setup.py")
    (tmp_path / "pyproject.toml").symlink_to("/dev/zero")
    assert own_package(tmp_path) == OwnPackage()
