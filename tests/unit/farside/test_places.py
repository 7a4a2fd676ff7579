"""Where Holdfast's folder goes when the home is on a network."""

from __future__ import annotations

from pathlib import Path

from holdfast.farside.machine import mounts
from holdfast.farside.operations import account
from holdfast.farside.system.layout import Home


def table(*rows: tuple[Path, str]) -> list[mounts.Mount]:
    return [mounts.Mount(str(point), kind, "x", frozenset()) for point, kind in rows]


def test_the_first_local_disk_that_the_account_may_write_to_is_taken(tmp_path):
    (tmp_path / "scratch" / "me").mkdir(parents=True)
    (tmp_path / "data").mkdir()
    (tmp_path / "var" / "tmp").mkdir(parents=True)
    wanted = account.candidates("me", str(tmp_path))
    assert [Path(each).relative_to(tmp_path).as_posix() for each in wanted] == [
        "scratch/me/holdfast",
        "local/me/holdfast",
        "data/me/holdfast",
        "var/tmp/holdfast-me",
    ]
    on_disk = table((Path("/"), "ext4"))
    assert account.local_place(wanted, on_disk, 1) == wanted[0]
    shared = table((Path("/"), "ext4"), (tmp_path / "scratch", "lustre"))
    assert account.local_place(wanted, shared, 1) == wanted[2], "scratch is on a network, local is not there"
    assert account.local_place(wanted, on_disk, 1 << 60) is None, "no disk has so much room"


def test_a_folder_with_other_files_or_that_another_user_could_have_made_is_not_taken(tmp_path):
    def taken(path: Path) -> str | None:
        return account.local_place([str(path)], table((Path("/"), "ext4")), 1)

    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "holdfast").mkdir()
    assert taken(tmp_path / "link") is None
    assert taken(tmp_path / "holdfast") is not None
    (tmp_path / "holdfast" / "thesis").mkdir()
    assert taken(tmp_path / "holdfast") is None


def test_a_home_on_a_network_is_noticed(tmp_path, monkeypatch):
    mounted = tmp_path / "mounts"
    mounted.write_text(f"1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:9 / {tmp_path}/nas rw - nfs4 nas:/h rw\n")
    monkeypatch.setenv("HOLDFAST_MOUNTS", str(mounted))
    assert account.places(Home(str(tmp_path / "disk"))) == {"network": "", "local": None}
    assert account.places(Home(str(tmp_path / "nas" / "me")))["network"] == "nfs4"
