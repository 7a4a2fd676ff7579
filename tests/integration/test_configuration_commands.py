"""`project`, `computetarget` and `runconfiguration`, as typed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kit.waiting import wait_for

Run = Callable[..., Any]

REMOTE = ["--name", "gpu1", "--address", "gpu1:2222", "--username", "me"]


def test_samples_are_listed(holdfast: Run) -> None:
    names = [row["name"] for row in json.loads(holdfast("project", "sample", "list").out)]
    assert names == ["blank", "digits"]


def test_a_project_is_created_once_with_an_id_of_its_own(holdfast: Run, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        result = holdfast("project", "create", "mnist", "--path", folder)
        assert (result.code, result.out) == (0, f"{tmp_path / folder / 'mnist'}\n")
    ids = [json.loads((tmp_path / each / "mnist/aml_config/project.json").read_text())["id"] for each in "ab"]
    assert ids[0] != ids[1]
    again = holdfast("project", "create", "-n", "mnist", "--path", "a")
    assert again.code == 242
    assert "is not empty" in again.err


def test_two_projects_of_one_name_share_nothing_on_the_host(holdfast: Run, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder / "mnist").mkdir(parents=True)
        (tmp_path / folder / "mnist" / "t.py").write_text(
            "import os\nprint(open(os.environ['AZUREML_NATIVE_SHARE_DIRECTORY'] + 'x', 'a').tell())\n"
            "open(os.environ['AZUREML_NATIVE_SHARE_DIRECTORY'] + 'x', 'a').write('.')\n"
        )
        assert holdfast("submit", "t.py", cwd=tmp_path / folder / "mnist").out == "0\n"
    assert len(list(Path(os.environ["HOLDFAST_HOME"], "runs").iterdir())) == 2


def test_an_unknown_template_names_the_valid_ones(holdfast: Run) -> None:
    result = holdfast("project", "create", "x", "--template", "digts")
    assert result.code == 240
    assert "Did you mean `digits`?" in result.err


@pytest.mark.parametrize("kind", ["cluster"])
def test_both_spellings_of_attach_say_in_one_sentence_what_does_not_work_yet(
    holdfast: Run, tmp_path: Path, kind: str
) -> None:
    first = holdfast("computetarget", "attach", kind, *REMOTE)
    second = holdfast("computetarget", "attach", *REMOTE, "--type", kind)
    assert first == second
    assert first.code == 243
    assert "do not work in this version yet." in first.err.splitlines()[0]
    assert not (tmp_path / "aml_config").exists(), "nothing is written"


def test_attach_takes_every_option_of_the_original(holdfast: Run) -> None:
    words = ["-k", "--private-key-file", "F", "--private-key-passphrase", "P", "-w", "secret-password"]
    result = holdfast("computetarget", "attach", "cluster", "-n", "g", "-a", "h", "-u", "me", *words)
    assert result.code == 243
    assert "secret-password" not in result.err + result.out


def test_a_local_target_has_no_address(holdfast: Run, tmp_path: Path) -> None:
    result = holdfast("computetarget", "attach", "local", *REMOTE)
    assert result.code == 240
    assert not (tmp_path / "aml_config").exists(), "nothing is written"


def test_this_machine_is_checked_and_shown_with_what_holdfast_has_on_it(holdfast: Run) -> None:
    checked = holdfast("computetarget", "check", "local", "-o", "json")
    assert checked.code == 0, checked.err
    assert json.loads(checked.out)["cores"]["online"] >= 1
    stored = json.loads(holdfast("computetarget", "show", "local").out)["stored"]
    assert stored["home"] == os.environ["HOLDFAST_HOME"]
    assert {each["name"]: each["size"] > 0 for each in stored["folders"]} == {"farside": True, "shipped": True}
    unknown = holdfast("computetarget", "check", "locl")
    assert (unknown.code, "Did you mean `local`?" in unknown.err) == (240, True)


def test_a_local_target_is_attached_listed_shown_and_detached(holdfast: Run, tmp_path: Path) -> None:
    attached = holdfast("computetarget", "attach", "local", "--name", "mine")
    assert attached.out == "aml_config/mine.compute\naml_config/mine.runconfig\n"
    assert holdfast("computetarget", "attach", "local", "--name", "mine").code == 242, "never overwritten"
    listed = holdfast("computetarget", "list", "-o", "tsv", "--query", "[].[name, type]")
    assert listed.out == "local\tlocal\nmine\tlocal\n"
    assert json.loads(holdfast("computetarget", "show", "mine").out)["user_managed_environment"] is True
    (tmp_path / "t.py").write_text("print('ran')")
    assert holdfast("submit", "-c", "mine", "t.py").out == "ran\n"
    holdfast("runconfiguration", "create", "-n", "night", "-t", "mine")
    detached = holdfast("computetarget", "detach", "-n", "mine")
    assert detached.code == 0
    assert "still name `mine`: night" in detached.err
    assert sorted(each.name for each in (tmp_path / "aml_config").iterdir()) == ["night.runconfig"]


def test_run_configurations_are_created_listed_and_deleted(holdfast: Run, tmp_path: Path) -> None:
    assert holdfast("runconfiguration", "create", "-n", "night", "-t", "local").out == "aml_config/night.runconfig\n"
    assert "Framework: Python" in (tmp_path / "aml_config/night.runconfig").read_text()
    listed = holdfast("runconfiguration", "list", "-o", "tsv", "--query", "[].[name, target]")
    assert listed.out == "local\tlocal\nnight\tlocal\n"
    assert holdfast("runconfiguration", "create", "-n", "night", "-t", "local").code == 242
    unknown = holdfast("runconfiguration", "create", "-n", "x", "-t", "locl")
    assert unknown.code == 240
    assert "Did you mean `local`?" in unknown.err
    assert holdfast("runconfiguration", "delete", "-n", "night").code == 0
    assert holdfast("runconfiguration", "delete", "-n", "night").code == 240
    assert holdfast("runconfiguration", "delete", "-n", "local").code == 242, "the built-in one has no file"


def test_a_file_with_problems_is_listed_with_them(holdfast: Run, tmp_path: Path) -> None:
    (tmp_path / "aml_config").mkdir()
    (tmp_path / "aml_config/bad.compute").write_text("type: remotdocker\n")
    result = holdfast("computetarget", "list", "-o", "json")
    assert result.code == 0
    assert "aml_config/bad.compute:1" in result.err
    assert "remotedocker" in result.err
    assert holdfast("computetarget", "show", "bad").code == 241


@pytest.mark.parametrize("name", ["../x", "a/b", "", "-x", "x" * 70, "ä"])
def test_a_name_that_cannot_be_a_file_is_refused(holdfast: Run, tmp_path: Path, name: str) -> None:
    assert holdfast("runconfiguration", "create", f"--name={name}", "-t", "local").code == 240
    assert holdfast("computetarget", "attach", "local", f"--name={name}").code == 240
    assert list(tmp_path.iterdir()) == []


def test_restore_writes_the_code_of_a_run_to_a_new_folder(holdfast: Run, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("print('old')")
    holdfast("submit", "t.py")
    (tmp_path / "t.py").write_text("print('new')")
    result = holdfast("project", "restore", "--run-id", "last")
    assert result.code == 0, result.err
    assert (Path(result.out.strip()) / "t.py").read_text() == "print('old')"
    here = holdfast("project", "restore", "--run-id", "last", "--path", ".")
    assert here.code != 0
    assert (tmp_path / "t.py").read_text() == "print('new')", "nothing is overwritten without a confirmation"
    assert holdfast("project", "restore", "--run-id", "last", "--path", ".", "--overwrite").code == 0
    assert (tmp_path / "t.py").read_text() == "print('old')"


def test_a_purge_of_a_local_target_removes_what_it_has_listed(holdfast: Run, tmp_path: Path) -> None:
    home = tmp_path / "disk" / "holdfast"
    chosen = {"HOLDFAST_HOME": str(home)}
    assert holdfast("computetarget", "attach", "local", "-n", "mine", env=chosen).code == 0
    (tmp_path / "t.py").write_text("print(1)")
    assert holdfast("submit", "-c", "mine", "t.py", env=chosen).code == 0
    show = ("computetarget", "show", "mine", "-o", "table")
    wait_for(lambda: "1 run is there; none alive." in holdfast(*show, env=chosen).out, what="its owners have left it")
    purged = holdfast("computetarget", "detach", "mine", "--purge", "-y", env=chosen)
    assert purged.code == 0, purged.err
    assert "removed Holdfast's folder on this machine" in purged.err
    assert [each.name for each in home.iterdir()] == ["projects"], "which projects are the user's is not the target's"
    assert not (tmp_path / "aml_config" / "mine.compute").exists()


def test_a_purge_names_the_command_that_ends_a_run_of_another_target_in_the_same_folder(
    holdfast: Run, tmp_path: Path
) -> None:
    assert holdfast("computetarget", "attach", "local", "-n", "mine").code == 0
    (tmp_path / "t.py").write_text("import time\ntime.sleep(600)\n")
    assert holdfast("submit", "-a", "-c", "local", "t.py").code == 0
    refused = holdfast("computetarget", "detach", "mine", "--purge", "-y")
    assert refused.code == 246
    named = refused.err.partition("End it first: holdfast ")[2].split()
    assert holdfast(*named).code in (0, 247)
