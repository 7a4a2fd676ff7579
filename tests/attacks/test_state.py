"""A repository with a `.holdfast/` of its own: after `git clone` it is not used, and no link in it is followed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from holdfast.errors import ProjectError
from holdfast.project.folder import find_project
from kit.planted import CLAIMED, GROUPS, PROJECT, replace_by_link, tree
from kit.projects import home, own_state


def _ordinary(state: Path, home: Path) -> None:
    """Nothing but made-up runs."""


def _runs_elsewhere(state: Path, home: Path) -> None:
    replace_by_link(state / "runs", home / "Docs")


def _index_elsewhere(state: Path, home: Path) -> None:
    replace_by_link(state / "index-1.sqlite", home / "victim")


def _journal_of_the_index_elsewhere(state: Path, home: Path) -> None:
    replace_by_link(state / "index-1.sqlite-journal", home / "victim")


def _link_in_a_run(state: Path, home: Path) -> None:
    (run,) = (state / "runs").iterdir()
    replace_by_link(run / "journal.jsonl", home / "victim")
    replace_by_link(run / "writer.lock", home / "victim")
    replace_by_link(run / "metrics", home / "Docs")


def _state_elsewhere(state: Path, home: Path) -> None:
    replace_by_link(state, home / "Docs")


def _identity_elsewhere(state: Path, home: Path) -> None:
    replace_by_link(state / "project.json", home / "victim")


def _objects_elsewhere(state: Path, home: Path) -> None:
    replace_by_link(state / "objects", home / "Docs")


def _a_token_elsewhere(state: Path, home: Path) -> None:
    replace_by_link(state / "origin.json", home / "victim")


PLANTS = (
    _ordinary,
    _runs_elsewhere,
    _index_elsewhere,
    _journal_of_the_index_elsewhere,
    _link_in_a_run,
    _state_elsewhere,
    _identity_elsewhere,
    _objects_elsewhere,
    _a_token_elsewhere,
)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__.strip("_"))
def test_no_command_adopts_what_a_clone_brought_or_changes_a_file(plant, theirs, clone, isolated, command, monkeypatch):
    plant(theirs / ".holdfast", isolated)
    mine = clone()
    monkeypatch.chdir(mine)
    before = tree(mine, isolated)
    for words in GROUPS:
        done = command(*words)
        assert done.code == PROJECT, (words, done)
        assert ".holdfast" in done.err and ("holdfast project trust" in done.err or "is a link" in done.err), words
        assert "train.py" not in done.out and CLAIMED not in done.out
        assert tree(mine, isolated) == before, words


def test_a_token_that_came_along_is_not_enough(theirs, clone, isolated, command, monkeypatch):
    """The attacker got the user's own project with its token, and sends it back changed."""
    own = isolated / "own"
    own.mkdir()
    (own / "train.py").write_text("print(1)\n")
    monkeypatch.chdir(own)
    own_state(own)
    shutil.copy(own / ".holdfast" / "origin.json", theirs / ".holdfast" / "origin.json")
    mine = clone()
    monkeypatch.chdir(mine)
    before = tree(mine, isolated)
    done = command("history", "list")
    assert (done.code, done.out) == (PROJECT, "")
    assert tree(mine, isolated) == before
    monkeypatch.chdir(own)
    assert command("history", "list").code == 0


@pytest.mark.parametrize("how", ["cp -a", "mv, then cp -a back", "tar"])
def test_a_copy_is_not_the_folder_that_was_made_here(how, isolated, command, monkeypatch):
    own = isolated / "own"
    own.mkdir()
    (own / "train.py").write_text("print(1)\n")
    monkeypatch.chdir(own)
    own_state(own)
    other = isolated / "other"
    if how == "cp -a":
        subprocess.run(["cp", "-a", own, other], check=True)
    elif how == "tar":
        other.mkdir()
        subprocess.run(["sh", "-c", f"tar -C {own} -cf - . | tar -C {other} -xf -"], check=True)
    else:
        own.rename(isolated / "kept")
        subprocess.run(["cp", "-a", isolated / "kept", own], check=True)
        other = own
    monkeypatch.chdir(other)
    done = command("history", "list")
    assert done.code == PROJECT and "holdfast project trust" in done.err
    assert command("project", "trust").code == 240, "without a terminal somebody has to say yes"
    assert command("history", "list").code == PROJECT
    assert command("project", "trust", "--yes").code == 0
    assert command("history", "list").code == 0
    if how != "mv, then cp -a back":
        monkeypatch.chdir(own)
        assert command("history", "list").code == 0, "the original is used as before"
        (isolated / "third").mkdir()
        shutil.copytree(other / ".holdfast", isolated / "third" / ".holdfast")
        monkeypatch.chdir(isolated / "third")
        assert command("history", "list").code == PROJECT, "its token alone takes no other copy over"


def test_a_project_of_two_homes_stays_usable_in_both_after_one_took_it_over(isolated, command, monkeypatch):
    own = isolated / "own"
    own.mkdir()
    (own / "train.py").write_text("print(1)\n")
    monkeypatch.chdir(own)
    homes = [str(isolated / name) for name in ("one", "two")]
    monkeypatch.setenv("HOLDFAST_HOME", homes[0])
    own_state(own)
    monkeypatch.setenv("HOLDFAST_HOME", homes[1])
    assert command("project", "trust", "--yes").code == 0
    for each in homes * 2:
        monkeypatch.setenv("HOLDFAST_HOME", each)
        assert command("history", "list").code == 0, each


def test_a_project_that_is_moved_stays_its_owners(isolated, command, monkeypatch):
    own = isolated / "own"
    own.mkdir()
    (own / "train.py").write_text("print(1)\n")
    monkeypatch.chdir(own)
    own_state(own)
    (isolated / "deep" / "er").mkdir(parents=True)
    moved = own.rename(isolated / "deep" / "er" / "moved")
    monkeypatch.chdir(moved)
    assert command("history", "list").code == 0


def test_what_holds_links_cannot_be_taken_over(theirs, clone, isolated, command, monkeypatch):
    for plant in (_runs_elsewhere, _index_elsewhere):
        plant(theirs / ".holdfast", isolated)
    mine = clone()
    monkeypatch.chdir(mine)
    before = tree(mine, isolated)
    done = command("project", "trust", "--yes")
    assert done.code == PROJECT
    assert "`index-1.sqlite`" in done.err and "`runs`" in done.err
    assert tree(mine, isolated) == before


def test_links_among_outputs_may_stay_if_they_stay_inside(theirs, clone, isolated, command, monkeypatch):
    (run,) = (theirs / ".holdfast" / "runs").iterdir()
    (run / "outputs" / "latest").symlink_to("model")
    mine = clone()
    monkeypatch.chdir(mine)
    done = command("project", "trust", "--yes")
    assert done.code == 0 and "1 run: 1 on local" in done.err
    assert "iris" in command("history", "list").out
    inside = next((mine / ".holdfast" / "runs").iterdir()) / "files" / "latest"
    inside.parent.mkdir()
    inside.symlink_to("checkpoints/a.pt")
    (mine / ".holdfast" / "origin.json").unlink()
    assert command("project", "trust", "--yes").code == 0
    outside = next((mine / ".holdfast" / "runs").iterdir()) / "outputs" / "outside"
    outside.symlink_to("../../../../../../victim")
    (mine / ".holdfast" / "origin.json").unlink()
    assert command("project", "trust", "--yes").code == PROJECT


def test_a_home_of_another_folder_is_no_witness(theirs, clone, isolated, command, monkeypatch):
    """The record is Holdfast's own, outside the project; one that the project brings is none."""
    (theirs / ".holdfast" / "projects").mkdir()
    record = {"format": 1, "inode": 1, "owner": os.getuid()}
    (theirs / ".holdfast" / "projects" / f"{CLAIMED}.json").write_text(json.dumps(record))
    (theirs / ".holdfast" / "origin.json").write_text(json.dumps({"format": 1, "token": CLAIMED}))
    monkeypatch.chdir(clone())
    assert command("history", "list").code == PROJECT


@pytest.mark.parametrize("token", ["../../mine/claim", "", None, 7, "A" * 32, "a" * 31 + "/"])
def test_a_token_is_no_path(token, theirs, clone, isolated, command, monkeypatch):
    (theirs / ".holdfast" / "origin.json").write_text(json.dumps({"format": 1, "token": token}))
    monkeypatch.chdir(clone())
    assert command("history", "list").code == PROJECT


@pytest.mark.parametrize("name", ["aml_config", ".holdfast"])
def test_a_project_above_that_another_account_made_is_not_taken(name, tmp_path, command, monkeypatch, needs):
    """In /tmp anyone can make a project of all that lies below."""
    needs(root=True)
    inside = tmp_path / "me" / "work"
    inside.mkdir(parents=True)
    (inside / "train.py").write_text("print(1)\n")
    (tmp_path / name).mkdir()
    (tmp_path / name / "project.json").write_text(json.dumps({"format": 1, "id": CLAIMED}))
    for path in (tmp_path / name, tmp_path / name / "project.json"):
        os.chown(path, 12345, 12345)
    monkeypatch.chdir(inside)
    done = command("submit", "--dry-run", "train.py")
    assert done.code == PROJECT and "belongs to another account" in done.err


@pytest.mark.parametrize("mode", [0o755, 0o2775, 0o2777, 0o1777])
def test_a_project_above_is_taken_where_the_owner_of_its_folder_made_it_and_others_cannot(mode, tmp_path, needs):
    """A group's project: a member stands in a folder of it. Who owns a folder decides about all below anyway."""
    needs(root=True)
    project = tmp_path / "project"
    inside = project / "sub"
    inside.mkdir(parents=True)
    (project / "aml_config").mkdir()
    for path in (project, project / "aml_config"):
        os.chown(path, 12345, 12345)
    project.chmod(mode)
    if not mode & 0o002:
        assert find_project(inside, home()).root == project
        return
    with pytest.raises(ProjectError) as caught:
        find_project(inside, home())
    assert caught.value.hint.splitlines() == [
        f"If it is the project you mean: cd {project}",
        "If not, make this folder a project of its own: mkdir aml_config",
    ]


def test_what_is_taken_over_is_shown_in_lines_of_its_own(command, recorded, monkeypatch):
    recorded.add()
    (recorded.root / ".holdfast" / "origin.json").unlink()
    code, out, err = command("project", "trust", "-y")
    assert (code, out, err.splitlines()) == (
        0,
        "",
        [
            f"{recorded.root}/.holdfast holds 1 run: 1 on local.",
            "Holdfast will show them as yours. New runs will prefer the package versions in their locks.",
            "Of a copy, they are the runs of the original: `cancel` and `clean` act there, too.",
            f"Holdfast now uses {recorded.root}/.holdfast.",
        ],
    )
