"""`computetarget detach`, `check` and `show` of a machine over SSH."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kit.attaching import PASSWORD, attach, authorized, own_keys, written
from kit.boxes import Box
from kit.waiting import wait_for

Run = Callable[..., Any]
Make = Callable[..., Box]


@pytest.fixture
def gpu1(holdfast: Run, known_box: Make) -> Box:
    """Attached by password, so with a Holdfast key."""
    made = known_box(password=PASSWORD, key=False)
    made.account.write(".ssh/authorized_keys", "# mine\n", 0o600)
    result = attach(holdfast, made, env={"HOLDFAST_PASSWORD": PASSWORD})
    assert result.code == 0, result.err
    return made


def test_detach_takes_the_key_away_on_both_sides(holdfast: Run, gpu1: Box, tmp_path: Path, isolated: Path) -> None:
    result = holdfast("computetarget", "detach", "-n", "gpu1", env=gpu1.environment)
    assert result.code == 0, result.err
    assert authorized(gpu1) == "# mine\n"
    assert (written(tmp_path), own_keys(isolated)) == ([], [])
    assert gpu1.home.is_dir(), "what else is there stays"


def test_a_key_that_another_target_uses_stays(holdfast: Run, gpu1: Box, tmp_path: Path, isolated: Path) -> None:
    folder = tmp_path / "aml_config"
    (folder / "other.compute").write_text((folder / "gpu1.compute").read_text())
    assert holdfast("computetarget", "detach", "-n", "gpu1", env=gpu1.environment).code == 0
    assert "holdfast gpu1" in authorized(gpu1)
    assert len(own_keys(isolated)) == 2


def test_a_machine_that_cannot_be_reached_is_detached_and_the_line_that_stays_is_shown(
    holdfast: Run, gpu1: Box, tmp_path: Path
) -> None:
    line = authorized(gpu1).splitlines()[-1]
    gpu1.server.stop()
    result = holdfast("computetarget", "detach", "-n", "gpu1", env=gpu1.environment)
    assert result.code == 0, result.err
    assert f"This line stays in ~/.ssh/authorized_keys over there: {line}" in result.err
    assert written(tmp_path) == []


def test_a_machine_that_cannot_be_reached_is_not_purged(holdfast: Run, gpu1: Box, tmp_path: Path) -> None:
    gpu1.server.stop()
    result = holdfast("computetarget", "detach", "-n", "gpu1", "--purge", "--yes", env=gpu1.environment)
    assert result.code == 245
    assert written(tmp_path) == ["gpu1.compute", "gpu1.runconfig"]


def test_a_purge_leaves_nothing_there_and_needs_a_confirmation_and_no_living_run(
    holdfast: Run, gpu1: Box, tmp_path: Path
) -> None:
    (tmp_path / "t.py").write_text("import time\nprint('here', flush=True)\ntime.sleep(600)\n")
    assert holdfast("submit", "-a", "-c", "gpu1", "t.py", env=gpu1.environment).code == 0
    purge = ["computetarget", "detach", "-n", "gpu1", "--purge"]

    for words in ([], ["--yes"], ["--yes", "--force"]):
        living = holdfast(*purge, *words, env=gpu1.environment)
        assert living.code == 246
        assert "Nothing is purged: 1 run is still alive" in living.err
        assert "--force" not in living.err, "that does not do it"
    assert written(tmp_path) == ["gpu1.compute", "gpu1.runconfig"]

    named = living.err.partition("End it first: holdfast ")[2].split()
    assert named[:2] == ["cancel", "-r"]
    assert holdfast(*named, env=gpu1.environment).code in (0, 247)
    wait_for(lambda: _living(holdfast, gpu1) == [0], what="the run is over")
    unconfirmed = holdfast(*purge, "--force", env=gpu1.environment)
    assert unconfirmed.code == 240
    assert "1 run is there; none alive. Other projects and laptops that use this account" in unconfirmed.err
    done = holdfast(*purge, "--yes", "--force", env=gpu1.environment)
    assert done.code == 0, done.err
    assert not gpu1.home.exists()
    assert authorized(gpu1) == "# mine\n"
    assert written(tmp_path) == []


def test_check_says_why_a_machine_cannot_be_used_and_writes_nothing(holdfast: Run, gpu1: Box, tmp_path: Path) -> None:
    before = (tmp_path / "aml_config/gpu1.compute").read_text()
    good = holdfast("computetarget", "check", "gpu1", "-o", "json", env=gpu1.environment)
    assert good.code == 0, good.err
    assert json.loads(good.out)["user"] == gpu1.account.name
    gpu1.account.write(".ssh/authorized_keys", "", 0o600)
    closed = holdfast("computetarget", "check", "gpu1", env=gpu1.environment)
    assert closed.code == 245
    gpu1.server.stop()
    assert holdfast("computetarget", "check", "gpu1", env=gpu1.environment).code == 245
    assert (tmp_path / "aml_config/gpu1.compute").read_text() == before


def test_show_lists_what_is_on_the_machine_and_does_without_where_it_cannot_ask(holdfast: Run, gpu1: Box) -> None:
    shown = json.loads(holdfast("computetarget", "show", "gpu1", env=gpu1.environment).out)
    assert shown["stored"]["home"] == str(gpu1.home)
    assert [each["name"] for each in shown["stored"]["folders"]] == ["farside", "tools"]
    gpu1.server.stop()
    silent = holdfast("computetarget", "show", "gpu1", env=gpu1.environment)
    assert silent.code == 0
    assert json.loads(silent.out)["stored"] is None
    assert "What is on the machine is not known" in silent.err


def _living(holdfast: Run, box: Box) -> list[int]:
    """The number of living runs there, by project."""
    shown = holdfast("computetarget", "show", "gpu1", env=box.environment)
    return [each["living"] for each in json.loads(shown.out)["stored"]["runs"]]


def test_runs_that_are_at_home_can_be_read_after_their_target_is_gone(tmp_path: Path, box: Make, holdfast: Run) -> None:
    gpu1 = box()
    attach(holdfast, gpu1)
    (tmp_path / "hello.py").write_text("print('hello')\nopen('outputs/model', 'w').write('weights')\n")
    done = holdfast("submit", "-c", "gpu1", "hello.py", env=gpu1.environment)
    assert done.code == 0, done.err
    assert holdfast("computetarget", "detach", "gpu1", env=gpu1.environment).code == 0
    assert holdfast("logs", "-r", "last").out == "hello\n"
    assert "Completed" in holdfast("status", "-r", "last", "-o", "table").out
    assert holdfast("history", "download", "-r", "last", "-d", str(tmp_path / "got")).code == 0
    assert (tmp_path / "got" / "outputs" / "model").read_text() == "weights"
    refused = holdfast("experiment", "shell", "-r", "last", "--", "true")
    assert refused.code == 241
    assert "gpu1.compute" in refused.err


def test_outputs_that_are_only_there_are_not_left_behind_without_a_confirmation(
    tmp_path: Path, box: Make, holdfast: Run
) -> None:
    gpu1 = box()
    attach(holdfast, gpu1)
    (tmp_path / "big.py").write_text("open('outputs/model', 'w').write('weights')\n")
    assert holdfast("submit", "-c", "gpu1", "--no-outputs", "big.py", env=gpu1.environment).code == 0
    refused = holdfast("computetarget", "detach", "gpu1", "--purge", "--yes", env=gpu1.environment)
    assert refused.code == 246
    assert "are on `gpu1` only" in refused.err
    assert list(gpu1.home.glob("runs/*/*/*/**/outputs/model"))
    assert holdfast("computetarget", "detach", "gpu1", "--purge", "--yes", "--force", env=gpu1.environment).code == 0
    assert not gpu1.home.exists()


def test_a_check_says_that_the_python_of_the_target_is_not_there(holdfast: Run, gpu1: Box, tmp_path: Path) -> None:
    file = tmp_path / "aml_config" / "gpu1.compute"
    file.write_text(file.read_text().replace("pythonLocation: ", "pythonLocation: /opt/nope"))
    checked = holdfast("computetarget", "check", "gpu1", env=gpu1.environment)
    assert checked.code == 245
    assert "there is no Python at `/opt/nope" in checked.err


def test_a_second_laptop_attaches_the_same_account_and_keeps_the_file(
    holdfast: Run, gpu1: Box, tmp_path: Path, isolated: Path
) -> None:
    file = tmp_path / "aml_config" / "gpu1.compute"
    file.write_text(f"# ours\n{file.read_text()}")
    before = file.read_text()
    for key in own_keys(isolated):
        key.unlink()  # as on a laptop that never had it
    denied = holdfast("computetarget", "check", "gpu1", env=gpu1.environment)
    assert "is not on this machine" in denied.err
    again = attach(holdfast, gpu1, env={"HOLDFAST_PASSWORD": PASSWORD})
    assert again.code == 0, again.err
    assert file.read_text() == before
    assert len(own_keys(isolated)) == 2
    assert holdfast("computetarget", "check", "gpu1", env=gpu1.environment).code == 0


def test_the_project_carries_its_id_once_a_machine_is_attached(holdfast: Run, gpu1: Box, tmp_path: Path) -> None:
    shared = json.loads((tmp_path / "aml_config" / "project.json").read_text())
    assert len(shared["id"]) == 32


def test_no_other_machine_is_called_local(holdfast: Run, gpu1: Box) -> None:
    words = ("computetarget", "attach", "remote", "-n", "local", "-a", gpu1.address)
    refused = holdfast(*words, env=gpu1.environment)
    assert (refused.code, "name of its own" in refused.err) == (240, True)
