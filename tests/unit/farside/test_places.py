"""Where Holdfast's folder goes when the home is on a network, how much is in it, and removing it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.farside import mounts, places, sizes
from holdfast.farside.layout import Home


def table(*rows: tuple[Path, str]) -> list[mounts.Mount]:
    return [mounts.Mount(str(point), kind, "x", frozenset()) for point, kind in rows]


def test_the_first_local_disk_that_the_account_may_write_to_is_taken(tmp_path: Path) -> None:
    (tmp_path / "scratch" / "me").mkdir(parents=True)
    (tmp_path / "data").mkdir()
    (tmp_path / "var" / "tmp").mkdir(parents=True)
    wanted = places.candidates("me", str(tmp_path))
    assert [Path(each).relative_to(tmp_path).as_posix() for each in wanted] == [
        "scratch/me/holdfast",
        "local/me/holdfast",
        "data/me/holdfast",
        "var/tmp/holdfast-me",
    ]
    on_disk = table((Path("/"), "ext4"))
    assert places.local_place(wanted, on_disk, 1) == wanted[0]
    shared = table((Path("/"), "ext4"), (tmp_path / "scratch", "lustre"))
    assert places.local_place(wanted, shared, 1) == wanted[2], "scratch is on a network, local is not there"
    assert places.local_place(wanted, on_disk, 1 << 60) is None, "no disk has so much room"


def test_a_folder_that_somebody_else_could_have_made_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "holdfast-me").symlink_to(tmp_path)
    assert places.local_place([str(tmp_path / "holdfast-me")], table((Path("/"), "ext4")), 1) is None


def test_a_home_on_a_network_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounted = tmp_path / "mounts"
    mounted.write_text(f"1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:9 / {tmp_path}/nas rw - nfs4 nas:/h rw\n")
    monkeypatch.setenv("HOLDFAST_MOUNTS", str(mounted))
    assert places.places(Home(str(tmp_path / "disk"))) == {"network": "", "local": None}
    assert places.places(Home(str(tmp_path / "nas" / "me")))["network"] == "nfs4"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    root = tmp_path / "home"
    for name, content in {"farside/a/x.py": "12345", "objects/ab/c": "1", "runs/p1/r1/driver_log": "123"}.items():
        path = root / name
        path.parent.mkdir(parents=True)
        path.write_text(content)
    os.link(root / "objects/ab/c", root / "runs/p1/r1/copy")
    return Home(str(root))


def test_what_is_there_is_listed_with_sizes_and_links_count_once(home: Home) -> None:
    assert sizes.sizes(home) == {
        "home": home.path,
        "folders": [["farside", 5], ["objects", 1], ["runs", 3]],
        "runs": [["p1", 1, 0]],
    }


def test_a_purge_leaves_nothing_and_can_be_repeated(home: Home) -> None:
    assert sizes.purge(home)["removed"] == 9
    assert not os.path.exists(home.path)
    assert sizes.purge(home)["removed"] == 0


def test_a_folder_is_left_only_where_it_holds_the_far_side_alone(home: Home, tmp_path: Path) -> None:
    other = Home(str(tmp_path / "other"))
    assert sizes.leave(other, home.path) == {"left": False}
    assert sizes.leave(home, home.path) == {"left": False}
    (tmp_path / "fresh" / "farside").mkdir(parents=True)
    assert sizes.leave(other, str(tmp_path / "fresh")) == {"left": True}
    assert not (tmp_path / "fresh").exists()
    assert sizes.leave(other, str(tmp_path / "fresh")) == {"left": False}
