"""Which folders belong to Holdfast, which it accepts, and which it leaves alone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from holdfast.farside.operations import account
from holdfast.farside.system.layout import MARKER, Home
from holdfast.farside.system.refusal import Refused


def folder(path: Path, *names: str) -> Home:
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in names:
        (path / name).mkdir(parents=True)
    return Home(str(path))


def brought(path: Path, *names: str) -> Home:
    """A folder into which the running far side has just been unpacked."""
    return folder(path, f"farside/{account.running_version()}", *names)


def test_a_folder_that_is_made_is_for_the_account_alone_and_marked(tmp_path):
    home = Home(str(tmp_path / "new" / "holdfast"))
    home.make()
    home.make()
    assert os.stat(home.path).st_mode & 0o777 == 0o700
    assert json.loads((tmp_path / "new" / "holdfast" / MARKER).read_text()) == {"format": 1}


@pytest.mark.parametrize(
    "clients", [[], ["keys", "ssh-0a1b2c3d.config"]], ids=["empty", "what Holdfast has as a client"]
)
def test_a_folder_that_was_there_is_marked_as_found(tmp_path, clients):
    brought(tmp_path / "given", *clients).make()
    assert json.loads((tmp_path / "given" / MARKER).read_text()) == {"format": 1, "found": True}


@pytest.mark.parametrize("names", [["cache", "thesis"], ["cache", "runs"]], ids=["others'", "named as Holdfast's"])
def test_a_folder_that_holds_something_else_is_neither_marked_nor_taken(tmp_path, names):
    home = brought(tmp_path / "scratch", *names)
    home.make()
    with pytest.raises(Refused, match=f"holds what is not Holdfast's: {', '.join(names)}") as refused:
        account.settle(home)
    assert "--home" in refused.value.hint
    assert sorted(os.listdir(home.path)) == sorted([*names, "farside"])


def test_the_usual_place_is_holdfasts_and_a_link_in_its_place_is_not(tmp_path, isolated):
    usual = brought(isolated / ".holdfast", "keys", "notes")
    account.settle(usual)
    (isolated / ".holdfast").rename(isolated / "elsewhere")
    (isolated / ".holdfast").symlink_to(isolated / "elsewhere")
    with pytest.raises(Refused):
        account.settle(usual)


@pytest.mark.parametrize(
    "path", ["/", "//", "{home}", "{home}/", "{home}/.", "{home}/x/..", "{home}/..", "{home}/link"]
)
def test_the_accounts_own_folder_and_what_is_above_it_is_never_taken(isolated, path):
    (isolated / "x").mkdir()
    (isolated / "link").symlink_to(isolated)
    Home(str(isolated)).mark(found=True)
    with pytest.raises(Refused, match="the account's own folder"):
        account.settle(Home(path.format(home=isolated)))


def test_a_folder_of_ours_that_others_may_enter_is_closed_to_them(tmp_path):
    home = brought(tmp_path / "given")
    os.chmod(home.path, 0o755)
    assert account.settle(home)["tightened"] == "755"
    assert os.stat(home.path).st_mode & 0o777 == 0o700
    assert account.settle(home)["tightened"] == ""


def test_nothing_is_closed_through_a_link(tmp_path):
    real = brought(tmp_path / "real")
    os.chmod(real.path, 0o755)
    (tmp_path / "link").symlink_to(real.path)
    with pytest.raises(Refused, match=r"a link to .* \(mode 755\)") as refused:
        account.settle(Home(str(tmp_path / "link")))
    assert f"chmod 700 {real.path}" in refused.value.hint
    assert os.stat(real.path).st_mode & 0o777 == 0o755
