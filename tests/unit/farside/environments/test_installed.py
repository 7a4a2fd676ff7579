"""Packages are known by the names of their metadata, each folder once, with what their wheels say they are for."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.farside.environments.installed import InstalledPackage, compiled, lines, packages_of_prefix, site_folders
from holdfast.farside.environments.platforms import mismatch

HERE = "linux-x86_64-glibc2.36"


@pytest.fixture
def site(site: Path) -> Path:
    (site.parents[2] / "lib64").symlink_to("lib")
    return site


def add(site: Path, name: str, **files: str) -> None:
    (site / name).mkdir()
    for file, text in files.items():
        (site / name / file).write_text(text)


def test_names_are_spelled_as_indexes_do_and_versions_kept_whole(site, tmp_path):
    for name in ("Foo_Bar-1.0.dist-info", "zope.interface-7.2.dist-info", "torch-2.1.0+cu121.dist-info"):
        add(site, name)
    add(site, "old-0.3-py3.11.egg-info")
    (site / "debian-1.2.egg-info").write_text("Metadata-Version: 1.1\n")
    found = packages_of_prefix(str(tmp_path))
    assert lines(found) == ["debian==1.2", "foo-bar==1.0", "old==0.3", "torch==2.1.0+cu121", "zope-interface==7.2"]


def test_a_name_that_says_too_little_is_read_from_inside(site, tmp_path):
    add(site, "odd.dist-info", METADATA="Metadata-Version: 2.1\nName: Odd_One\nVersion: 4\n\nName: not this\n")
    add(site, "develop.egg-info", **{"PKG-INFO": "Name: develop\r\nVersion: 0.1.dev0\r\n\r\ntext"})
    add(site, "empty.dist-info")
    add(site, "-.dist-info")
    assert lines(packages_of_prefix(str(tmp_path))) == ["develop==0.1.dev0", "odd-one==4"]
    assert packages_of_prefix(str(tmp_path / "none")) == []


def test_a_folder_with_two_names_counts_once_and_a_package_in_two_folders_twice(site, tmp_path):
    add(site, "torch-2.13.0.dist-info")
    (site.parent / "dist-packages").mkdir()
    add(site.parent / "dist-packages", "torch-1.13.1.dist-info")
    assert site_folders(str(tmp_path)) == [str(site), str(site.parent / "dist-packages")]
    assert [(each.version, each.folder) for each in packages_of_prefix(str(tmp_path))] == [
        ("2.13.0", str(site)),
        ("1.13.1", str(site.parent / "dist-packages")),
    ]


def test_conda_packages_are_read_from_their_names(site, tmp_path):
    (tmp_path / "conda-meta").mkdir()
    for name in ("history", "jaxlib-0.6.2-cuda126py311h3a2e5e5_0.json", "_libgcc_mutex-0.1-main.json", "odd.json"):
        (tmp_path / "conda-meta" / name).touch()
    prefix = str(tmp_path)
    assert packages_of_prefix(prefix) == [
        InstalledPackage("-libgcc-mutex", "0.1", prefix, "conda", build="main"),
        InstalledPackage("jaxlib", "0.6.2", prefix, "conda", build="cuda126py311h3a2e5e5_0"),
    ]


def test_modules_are_looked_at_only_where_the_tags_are_odd(site, tmp_path):
    record = "a/b.cpython-36m-x86_64-linux-gnu.so,sha256=x,1\na/c.abi3.so,,\na/libd.so,,\nwin\\e.cp36-win_amd64.pyd,,\n"
    add(site, "right-1.dist-info", WHEEL="Tag: cp311-cp311-manylinux_2_28_x86_64\n", RECORD=record)
    add(site, "stable-1.dist-info", WHEEL="Tag: cp37-abi3-linux_x86_64\n", RECORD=record)
    add(site, "wrong-1.dist-info", WHEEL="Tag: cp36-cp36m-manylinux1_x86_64\n", RECORD=record)
    right, stable, wrong = packages_of_prefix(str(tmp_path))
    assert (right.tags, right.modules) == (("cp311-cp311-manylinux_2_28_x86_64",), None)
    assert stable.modules is None
    assert wrong.modules == (".abi3.so", ".cp36-win_amd64.pyd", ".cpython-36m-x86_64-linux-gnu.so", ".so")


MUSL, MAC = "linux-x86_64-musl", "darwin-arm64"


@pytest.mark.parametrize(
    ("tag", "platform", "what"),
    [
        ("py3-none-any", HERE, None),
        ("py2.py3-none-any", HERE, None),
        ("cp311-cp311-linux_x86_64", HERE, None),
        ("cp311-cp311-manylinux1_x86_64", HERE, None),
        ("cp311-cp311-manylinux2014_x86_64", HERE, None),
        ("cp311-cp311-manylinux_2_36_x86_64", HERE, None),
        ("cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64", HERE, None),
        ("cp37-abi3-manylinux_2_28_x86_64", HERE, None),
        ("py311-none-manylinux_2_28_x86_64", HERE, None),
        ("pp39-pypy39_pp73-manylinux_2_28_x86_64", HERE, None),
        ("odd", HERE, None),
        ("", HERE, None),
        ("cp311-cp311-win_amd64", HERE, "system"),
        ("py3-none-win32", HERE, "system"),
        ("cp311-cp311-macosx_11_0_arm64", HERE, "system"),
        ("cp311-cp311-manylinux2014_aarch64", HERE, "system"),
        ("cp311-cp311-musllinux_1_2_x86_64", HERE, "system"),
        ("cp311-cp311-manylinux_2_28_x86_64", MUSL, "system"),
        ("cp311-cp311-linux_x86_64", MUSL, None),
        ("cp311-cp311-musllinux_1_2_x86_64", MUSL, None),
        ("cp311-cp311-manylinux_2_39_x86_64", HERE, "libc"),
        ("cp311-cp311-macosx_11_0_arm64", MAC, None),
        ("cp311-cp311-macosx_10_9_universal2", MAC, None),
        ("cp311-cp311-macosx_10_9_x86_64", MAC, "system"),
        ("cp311-cp311-manylinux2014_aarch64", "linux-aarch64-glibc2.36", None),
        ("cp311-cp311-win_amd64", "", None),
        ("cp310-cp310-manylinux_2_28_x86_64", HERE, "python"),
        ("cp36-cp36m-manylinux1_x86_64", HERE, "python"),
        ("cp312-abi3-manylinux_2_28_x86_64", HERE, "python"),
        ("cp310-cp310-manylinux_2_28_x86_64", "", "python"),
    ],
)
def test_a_wheel_for_another_system_or_python_is_told_and_one_that_cannot_be_judged_is_not(tag, platform, what):
    assert mismatch([tag], (".cpython-310-x86_64-linux-gnu.so",), platform, "3.11.9") == what


def test_one_tag_that_fits_is_enough_and_modules_speak_before_a_tag_does():
    other = "cp39-cp39-manylinux2014_x86_64"
    foreign, own = ".cpython-39-x86_64-linux-gnu.so", ".cpython-311-x86_64-linux-gnu.so"
    assert mismatch([other, "cp311-cp311-manylinux2014_x86_64"], (foreign,), HERE, "3.11") is None
    assert mismatch([other], (foreign,), HERE, "3.11") == "python"
    for modules in (None, (), (".so",), (foreign, own), (foreign, ".abi3.so")):
        assert mismatch([other], modules, HERE, "3.11") is None
    assert mismatch([], None, HERE, "3.11") is None


def test_what_a_compiler_of_the_machine_made_is_known_by_its_tag():
    tags = {"plain": "py3-none-any", "wheel": "cp311-cp311-manylinux_2_28_x86_64", "built": "cp311-cp311-linux_x86_64"}
    packages = [InstalledPackage(name, "1", "/", tags=(tag,)) for name, tag in tags.items()] + [
        InstalledPackage("none", "1", "/")
    ]

    assert compiled(packages) == ["built"]
