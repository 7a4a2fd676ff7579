"""A refused attach leaves nothing new on the machine; and which folders attach accepts."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from integration.remote.test_attach_refusals import BY_PASSWORD, LINGERING, UNIT, box_with_programs, mounted  # noqa: F401
from integration.runs.conftest import until_left
from kit.attaching import PASSWORD, attach, authorized, compute, everything, own_keys, written
from kit.boxes import Box, Boxes
from kit.sshd import Client, Options

Run = Callable[..., Any]
Make = Callable[..., Box]


@pytest.fixture
def refused(holdfast: Run, tmp_path: Path, isolated: Path) -> Callable[..., str]:
    """Attach, check that it is refused and that both sides are unchanged. Returns its output."""

    def check(box: Box, *words: str, code: int = 245, env: dict[str, str] | None = None) -> str:
        before = everything(box.account.home)
        result = attach(holdfast, box, *words, env=env)
        assert result.code == code, result.err
        assert everything(box.account.home) == before
        assert own_keys(isolated) == []
        assert not (tmp_path / ".holdfast").exists()
        return str(result.err)

    return check


class TestNothingIsLeft:
    def test_where_runs_would_not_outlive_the_login(self, refused: Callable[..., str], box: Make) -> None:
        gpu1 = box("gpu1", options=Options(kills_at_logout=True))
        assert "It has no `loginctl`" in refused(gpu1)

    def test_where_the_account_does_not_linger(
        self,
        refused: Callable[..., str],
        box_with_programs: Make,  # noqa: F811
    ) -> None:
        programs = {"loginctl": "#!/bin/sh\necho Linger=no\n", "systemd-run": "#!/bin/sh\nexit 1\n"}
        assert "enable-linger" in refused(box_with_programs(programs, kills_at_logout=True))

    def test_where_user_units_are_ended_too(
        self,
        refused: Callable[..., str],
        box_with_programs: Make,  # noqa: F811
    ) -> None:
        """Neither the tried setting nor the far side stays."""
        unit = UNIT.replace("HOLDFAST_TEST_SPARED=1 ", "")
        gpu1 = box_with_programs({"loginctl": LINGERING, "systemd-run": unit}, kills_at_logout=True)
        assert "Processes of user units are ended too" in refused(gpu1)

    def test_where_a_key_had_been_put(self, refused: Callable[..., str], box: Make) -> None:
        """Not even the folder that was made for it stays."""
        gpu1 = box(password=PASSWORD, key=False, options=Options(kills_at_logout=True))
        assert not (gpu1.account.home / ".ssh").exists()
        refused(gpu1, env=BY_PASSWORD)

    def test_where_the_server_takes_no_keys(self, refused: Callable[..., str], box: Make) -> None:
        gpu1 = box(password=PASSWORD, key=False, options=Options(keys=False))
        assert "does not take keys" in refused(gpu1, env=BY_PASSWORD)

    def test_where_the_disk_has_no_room_for_runs(self, refused: Callable[..., str], box: Make) -> None:
        gpu1 = box("gpu1")
        with mounted(gpu1.account.home / "scratch", f"size=20m,mode=700,uid={gpu1.account.uid}"):
            said = refused(gpu1, "--home", str(gpu1.account.home / "scratch" / "holdfast"))
        assert "There is little room" in said

    def test_where_the_project_takes_no_files(self, refused: Callable[..., str], box: Make, tmp_path: Path) -> None:
        (tmp_path / "aml_config").write_text("a file where the folder should be")
        refused(box("gpu1"), code=244)

    def test_where_the_home_is_on_a_network(self, refused: Callable[..., str], boxes: Boxes, client: Client) -> None:
        """Neither there nor on the local disk that was chosen instead."""
        account = boxes.account()
        rows = f"1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:9 / {account.home} rw - nfs4 nas:/h rw\n"
        table = account.write("mounts", rows)
        options = Options(environment={"HOLDFAST_MOUNTS": str(table)}, kills_at_logout=True)
        gpu1 = boxes.box("gpu1", client, account, boxes.server(options))
        local = Path("/var/tmp") / f"holdfast-{account.name}"
        try:
            assert str(local) in refused(gpu1)
            assert not local.exists()
        finally:
            shutil.rmtree(local, ignore_errors=True)

    def test_and_what_another_target_uses_stays(
        self, holdfast: Run, box: Make, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        gpu1 = box("gpu1")
        (tmp_path / "t.py").write_text("print('here')")
        assert attach(holdfast, gpu1).code == 0
        assert holdfast("submit", "-c", "gpu1", "t.py", env=gpu1.environment).code == 0
        until_left(gpu1.home)
        before = everything(gpu1.account.home)
        other = tmp_path_factory.mktemp("other")
        (other / "aml_config").write_text("a file where the folder should be")
        words = ["attach", "remote", "-n", "gpu1", "-a", "gpu1"]
        assert holdfast("computetarget", *words, cwd=other, env=gpu1.environment).code == 244
        assert everything(gpu1.account.home) == before


class TestWhichFolderIsTaken:
    def test_one_with_other_files_is_not(self, refused: Callable[..., str], box: Make, tmp_path: Path) -> None:
        gpu1 = box("gpu1")
        gpu1.account.write("scratch/thesis.tex", "years")
        gpu1.account.write("scratch/cache/wheel", "mine")
        scratch = gpu1.account.home / "scratch"
        said = refused(gpu1, "--home", str(scratch))
        assert f"`{scratch}`" in said and ": cache, thesis.tex." in said
        assert f"--home {scratch}/holdfast" in said
        assert written(tmp_path) == []

    def test_the_accounts_own_is_not(self, refused: Callable[..., str], box: Make) -> None:
        gpu1 = box("gpu1")
        assert "the account's own folder" in refused(gpu1, "--home", str(gpu1.account.home))

    def test_an_empty_one_is_and_it_is_closed_to_others(self, holdfast: Run, box: Make, tmp_path: Path) -> None:
        gpu1 = box("gpu1")
        scratch = gpu1.account.write("scratch/holdfast/x", "").parent
        (scratch / "x").unlink()
        scratch.chmod(0o755)
        result = attach(holdfast, gpu1, "--home", str(scratch))
        assert result.code == 0, result.err
        assert "could be entered by others (mode 755)" in " ".join(result.err.split())
        assert scratch.stat().st_mode & 0o777 == 0o700
        assert json.loads((scratch / ".holdfast-home").read_text())["format"] == 1
        assert f"holdfastHome: {scratch}\n" in compute(tmp_path)


def test_a_purge_takes_what_is_holdfasts_and_leaves_the_rest(holdfast: Run, box: Make, tmp_path: Path) -> None:
    gpu1 = box("gpu1")
    scratch = gpu1.account.home / "scratch"
    assert attach(holdfast, gpu1, "--home", str(scratch)).code == 0
    gpu1.account.write("scratch/thesis.tex", "years")
    done = holdfast("computetarget", "detach", "-n", "gpu1", "--purge", "--yes", env=gpu1.environment)
    assert done.code == 0, done.err
    assert "No run is there." in done.err
    assert "What is not Holdfast's own stays there: thesis.tex" in done.err
    assert everything(scratch) == ["thesis.tex"]


def test_a_file_of_keys_that_the_account_may_only_append_to(holdfast: Run, box: Make, tmp_path: Path) -> None:
    """As administrators keep them: in a folder that root owns. `detach` names the key that stays."""
    gpu1 = box(password=PASSWORD, key=False)
    keys = gpu1.account.home / "managed" / "authorized_keys"
    keys.parent.mkdir(mode=0o755)
    keys.write_text("# of the administrator\n")
    os.chown(keys, gpu1.account.uid, -1)
    keys.chmod(0o600)
    gpu1.account.write(".ssh/x", "").unlink()
    gpu1.account.run(["ln", "-s", str(keys), f"{gpu1.account.home}/.ssh/authorized_keys"])
    gpu1.account.run(["chmod", "700", f"{gpu1.account.home}/.ssh"])
    inode = keys.stat().st_ino
    result = attach(holdfast, gpu1, env=BY_PASSWORD)
    assert result.code == 0, result.err
    assert authorized(gpu1).startswith("# of the administrator\nssh-ed25519 ")
    assert keys.stat().st_ino == inode
    done = holdfast("computetarget", "detach", "-n", "gpu1", env=gpu1.environment)
    assert done.code == 0, done.err
    assert f"The key stays in `{keys}`" in done.err
    assert written(tmp_path) == []
