"""Packages are known by the names of their metadata, each folder once, with what their wheels say they are for."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.farside.environments.installed import Package, compiled, lines, packages_of_prefix, site_folders
from holdfast.farside.environments.wheel_tags import mismatch

HERE = "linux-x86_64-glibc2.36"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "lib" / "python3.11" / "site-packages"
    folder.mkdir(parents=True)
    (tmp_path / "lib64").symlink_to("lib")
    return folder


def add(site: Path, name: str, **files: str) -> None:
    (site / name).mkdir()
    for file, text in files.items():
        (site / name / file).write_text(text)


def test_names_are_spelled_as_indexes_do_and_versions_kept_whole(site: Path, tmp_path: Path) -> None:
    for name in ("Foo_Bar-1.0.dist-info", "zope.interface-7.2.dist-info", "torch-2.1.0+cu121.dist-info"):
        add(site, name)
    add(site, "old-0.3-py3.11.egg-info")
    (site / "debian-1.2.egg-info").write_text("Metadata-Version: 1.1\n")
    found = packages_of_prefix(str(tmp_path))
    assert lines(found) == ["debian==1.2", "foo-bar==1.0", "old==0.3", "torch==2.1.0+cu121", "zope-interface==7.2"]


def test_a_name_that_says_too_little_is_read_from_inside(site: Path, tmp_path: Path) -> None:
    add(site, "odd.dist-info", METADATA="Metadata-Version: 2.1\nName: Odd_One\nVersion: 4\n\nName: not this\n")
    add(site, "develop.egg-info", **{"PKG-INFO": "Name: develop\r\nVersion: 0.1.dev0\r\n\r\ntext"})
    add(site, "empty.dist-info")
    add(site, "-.dist-info")
    assert lines(packages_of_prefix(str(tmp_path))) == ["develop==0.1.dev0", "odd-one==4"]


def test_a_folder_with_two_names_counts_once_and_a_package_in_two_folders_twice(site: Path, tmp_path: Path) -> None:
    add(site, "torch-2.13.0.dist-info")
    (site.parent / "dist-packages").mkdir()
    add(site.parent / "dist-packages", "torch-1.13.1.dist-info")
    assert site_folders(str(tmp_path)) == [str(site), str(site.parent / "dist-packages")]
    assert [(each.version, each.folder) for each in packages_of_prefix(str(tmp_path))] == [
        ("2.13.0", str(site)),
        ("1.13.1", str(site.parent / "dist-packages")),
    ]


def test_a_prefix_that_is_not_there_has_no_packages(tmp_path: Path) -> None:
    assert packages_of_prefix(str(tmp_path / "none")) == []


def test_conda_packages_are_read_from_their_names(site: Path, tmp_path: Path) -> None:
    (tmp_path / "conda-meta").mkdir()
    for name in ("history", "jaxlib-0.6.2-cuda126py311h3a2e5e5_0.json", "_libgcc_mutex-0.1-main.json", "odd.json"):
        (tmp_path / "conda-meta" / name).touch()
    prefix = str(tmp_path)
    assert packages_of_prefix(prefix) == [
        Package("-libgcc-mutex", "0.1", prefix, "conda", build="main"),
        Package("jaxlib", "0.6.2", prefix, "conda", build="cuda126py311h3a2e5e5_0"),
    ]


def test_modules_are_looked_at_only_where_the_tags_are_odd(site: Path, tmp_path: Path) -> None:
    record = "a/b.cpython-36m-x86_64-linux-gnu.so,sha256=x,1\na/c.abi3.so,,\na/libd.so,,\nwin\\e.cp36-win_amd64.pyd,,\n"
    add(site, "right-1.dist-info", WHEEL="Tag: cp311-cp311-manylinux_2_28_x86_64\n", RECORD=record)
    add(site, "stable-1.dist-info", WHEEL="Tag: cp37-abi3-linux_x86_64\n", RECORD=record)
    add(site, "wrong-1.dist-info", WHEEL="Tag: cp36-cp36m-manylinux1_x86_64\n", RECORD=record)
    right, stable, wrong = packages_of_prefix(str(tmp_path))
    assert (right.tags, right.modules) == (("cp311-cp311-manylinux_2_28_x86_64",), None)
    assert stable.modules is None
    assert wrong.modules == (".abi3.so", ".cp36-win_amd64.pyd", ".cpython-36m-x86_64-linux-gnu.so", ".so")


@pytest.mark.parametrize(
    "tag",
    [
        "py3-none-any",
        "py2.py3-none-any",
        "cp311-cp311-linux_x86_64",
        "cp311-cp311-manylinux1_x86_64",
        "cp311-cp311-manylinux2014_x86_64",
        "cp311-cp311-manylinux_2_36_x86_64",
        "cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64",
        "cp37-abi3-manylinux_2_28_x86_64",
        "py311-none-manylinux_2_28_x86_64",
        "pp39-pypy39_pp73-manylinux_2_28_x86_64",
        "odd",
        "",
    ],
)
def test_a_wheel_that_fits_or_cannot_be_judged_is_not_accused(tag: str) -> None:
    assert mismatch([tag], (".cpython-36m-x86_64-linux-gnu.so",), HERE, "3.11.9") is None


@pytest.mark.parametrize(
    ("tag", "platform", "what"),
    [
        ("cp311-cp311-win_amd64", HERE, "system"),
        ("py3-none-win32", HERE, "system"),
        ("cp311-cp311-macosx_11_0_arm64", HERE, "system"),
        ("cp311-cp311-manylinux2014_aarch64", HERE, "system"),
        ("cp311-cp311-musllinux_1_2_x86_64", HERE, "system"),
        ("cp311-cp311-manylinux_2_28_x86_64", "linux-x86_64-musl", "system"),
        ("cp311-cp311-linux_x86_64", "linux-x86_64-musl", None),
        ("cp311-cp311-musllinux_1_2_x86_64", "linux-x86_64-musl", None),
        ("cp311-cp311-manylinux_2_39_x86_64", HERE, "libc"),
        ("cp311-cp311-macosx_11_0_arm64", "darwin-arm64", None),
        ("cp311-cp311-macosx_10_9_universal2", "darwin-arm64", None),
        ("cp311-cp311-macosx_10_9_x86_64", "darwin-arm64", "system"),
        ("cp311-cp311-manylinux2014_aarch64", "linux-aarch64-glibc2.36", None),
        ("cp311-cp311-win_amd64", "", None),
        ("cp310-cp310-manylinux_2_28_x86_64", HERE, "python"),
        ("cp36-cp36m-manylinux1_x86_64", HERE, "python"),
        ("cp312-abi3-manylinux_2_28_x86_64", HERE, "python"),
        ("cp310-cp310-manylinux_2_28_x86_64", "", "python"),
    ],
)
def test_a_wheel_for_another_system_or_python_is_told(tag: str, platform: str, what: str | None) -> None:
    modules = (".cpython-310-x86_64-linux-gnu.so",)
    assert mismatch([tag], modules, platform, "3.11.9") == what


def test_one_tag_that_fits_is_enough_and_modules_speak_before_a_tag_does() -> None:
    other = "cp39-cp39-manylinux2014_x86_64"
    foreign, own = ".cpython-39-x86_64-linux-gnu.so", ".cpython-311-x86_64-linux-gnu.so"
    assert mismatch([other, "cp311-cp311-manylinux2014_x86_64"], (foreign,), HERE, "3.11") is None
    assert mismatch([other], (foreign,), HERE, "3.11") == "python"
    for modules in (None, (), (".so",), (foreign, own), (foreign, ".abi3.so")):
        assert mismatch([other], modules, HERE, "3.11") is None
    assert mismatch([], None, HERE, "3.11") is None


def test_what_a_compiler_of_the_machine_made_is_known_by_its_tag() -> None:
    tags = {"plain": "py3-none-any", "wheel": "cp311-cp311-manylinux_2_28_x86_64", "built": "cp311-cp311-linux_x86_64"}
    packages = [Package(name, "1", "/", tags=(tag,)) for name, tag in tags.items()] + [Package("none", "1", "/")]

    assert compiled(packages) == ["built"]
