"""Whose a `.holdfast/` is: made at once by many, in a home that cannot be written, and where the machine's own is."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import threading
import time
from pathlib import Path

import pytest

from holdfast.errors import ProjectError, StorageError
from holdfast.frozen import replace
from holdfast.project import provenance
from kit.projects import home, own_state, project_at

MARKED = "a folder that a machine's Holdfast marked"


def records() -> list[Path]:
    return sorted((home() / provenance.RECORDS).iterdir())


def is_used(state: Path, by: Path) -> bool:
    try:
        return provenance.is_made(state, by)
    except ProjectError:
        return False


def test_nothing_there_is_nothing_made(tmp_path):
    assert not provenance.is_made(tmp_path / ".holdfast", home())
    assert not provenance.is_made(tmp_path / "no" / ".holdfast", home())
    assert not home().exists()


def test_what_is_made_is_known_by_a_random_token_and_its_inode(tmp_path):
    state = own_state(tmp_path)
    assert provenance.is_made(state, home())
    (record,) = records()
    values = json.loads(record.read_bytes())
    assert values == {
        "format": 1,
        "path": str(state),
        "inode": state.lstat().st_ino,
        "owner": os.getuid(),
        "tracked": False,
    }
    token = json.loads((state / "origin.json").read_bytes())["token"]
    assert record.name == f"{token}-{state.lstat().st_ino}.json"
    for path in (record, state / "origin.json"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(home().stat().st_mode) == 0o700


@pytest.mark.parametrize("has_links", [True, False])
def test_many_at_once_make_one_folder(tmp_path, monkeypatch, has_links):
    if not has_links:
        monkeypatch.setattr(os, "link", _refuse)
    together = threading.Barrier(12)
    failures: list[BaseException] = []

    def make() -> None:
        together.wait()
        try:
            own_state(tmp_path)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=make) for _ in range(12)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failures
    assert sorted(os.listdir(tmp_path / ".holdfast")) == [".gitignore", "origin.json"]
    assert len(records()) == 1
    assert provenance.is_made(tmp_path / ".holdfast", home())


def test_a_token_that_another_process_is_writing_is_waited_for(tmp_path, monkeypatch):
    """Without hard links its file is there, and empty, for a moment."""
    state = own_state(tmp_path)
    path = state / provenance.ORIGIN
    token = path.read_bytes()
    path.write_bytes(b"")
    with monkeypatch.context() as patch:
        patch.setattr(time, "sleep", lambda _: path.write_bytes(token))
        assert provenance.is_made(state, home())
    path.write_bytes(b"")
    monkeypatch.setattr(provenance, "_HALF_WRITTEN_SECONDS", 0.0)
    with pytest.raises(ProjectError):
        provenance.is_made(state, home())


def _refuse(*_: object, **__: object) -> None:
    raise OSError(38, "Function not implemented")


def test_what_a_killed_process_began_is_finished(tmp_path):
    state = tmp_path / ".holdfast"
    state.mkdir()
    (state / ".origin.json.0123456789abcdef").write_text("")
    assert not provenance.is_made(state, home())
    own_state(tmp_path)
    assert provenance.is_made(state, home())


@pytest.mark.parametrize("name", ["runs", "project.json", "locks"])
def test_a_folder_with_anything_in_it_is_not_new(tmp_path, name):
    (tmp_path / ".holdfast" / name).mkdir(parents=True)
    with pytest.raises(ProjectError, match="Holdfast does not know") as caught:
        own_state(tmp_path)
    assert "holdfast project trust" in caught.value.hint


def test_a_home_that_cannot_be_written_is_said_in_a_sentence(tmp_path):
    home().write_text("a file")
    with pytest.raises(StorageError, match="note that this project is yours") as caught:
        own_state(tmp_path)
    assert str(home()) in caught.value.message and caught.value.hint
    home().unlink()
    own_state(tmp_path)


def test_a_record_that_is_damaged_is_none(tmp_path):
    state = own_state(tmp_path)
    (record,) = records()
    for text in ("", "[]", "{}", '{"inode": null, "owner": 0}', '{"inode": "1e400", "owner": []}', "[" * 50_000):
        record.write_text(text)
        with pytest.raises(ProjectError):
            provenance.is_made(state, home())
    provenance.trust(state, home())
    assert provenance.is_made(state, home())
    assert records() == [record]


def test_a_home_that_takes_a_folder_over_leaves_it_to_the_other(tmp_path):
    """A project on a disk that two workstations share, or used with two homes."""
    state = own_state(tmp_path)
    first, second = home(), tmp_path / "second-home"
    assert not is_used(state, second)
    for _ in range(2):
        provenance.trust(state, second)
        assert provenance.is_made(state, second)
        assert provenance.is_made(state, first)


def test_the_original_and_a_copy_that_was_taken_over_are_both_used_and_a_second_copy_is_not(tmp_path):
    (tmp_path / "original").mkdir()
    state = own_state(tmp_path / "original")
    copies = [tmp_path / name / ".holdfast" for name in ("copy", "again")]
    for copy in copies:
        shutil.copytree(state, copy)
        assert not is_used(copy, home())
    provenance.trust(copies[0], home())
    assert provenance.is_made(state, home()) and provenance.is_made(copies[0], home())
    assert not is_used(copies[1], home())
    provenance.forget(copies[0], home())
    assert provenance.is_made(state, home())


@pytest.mark.parametrize("text", [None, "", "[]", '{"token": "../../x"}', '{"token": 7}'])
def test_a_folder_without_a_valid_token_gets_one_when_it_is_taken_over(tmp_path, text):
    state = tmp_path / ".holdfast"
    (state / "runs").mkdir(parents=True)
    if text is not None:
        (state / "origin.json").write_text(text)
    provenance.trust(state, home())
    assert provenance.is_made(state, home())
    assert re.fullmatch(r"[0-9a-f]{32}", json.loads((state / "origin.json").read_bytes())["token"])


def test_a_token_that_cannot_be_read_is_not_replaced(tmp_path, monkeypatch):
    """It may be a colleague's, whose records would then be void."""
    state = own_state(tmp_path)
    before = (state / "origin.json").read_bytes()

    def refuse(path: Path, *_: object, **__: object) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(provenance, "read_json", refuse)
    with pytest.raises(StorageError, match="take the project's own folder over"):
        provenance.trust(state, home())
    assert (state / "origin.json").read_bytes() == before


def test_a_token_leads_to_no_record_elsewhere(tmp_path):
    """Not even to one that says of this very folder that it is ours."""
    (tmp_path / "mine").mkdir()
    state = own_state(tmp_path / "mine")
    (record,) = records()
    token, _, inode = record.stem.partition("-")
    record.rename(tmp_path / f"claim-{inode}.json")
    elsewhere = os.path.relpath(tmp_path / "claim", record.parent)
    for each in (elsewhere, str(tmp_path / "claim"), token):
        (state / provenance.ORIGIN).write_text(json.dumps({"format": 1, "token": each}))
        with pytest.raises(ProjectError):
            provenance.is_made(state, home())
    (tmp_path / f"claim-{inode}.json").rename(record)
    assert provenance.is_made(state, home())


@pytest.mark.parametrize("how", ["named by HOLDFAST_HOME", MARKED])
def test_the_machines_own_folder_is_no_projects(tmp_path, monkeypatch, how):
    state = tmp_path / ".holdfast"
    (state / "runs" / "0123").mkdir(parents=True)
    if how == MARKED:
        (state / ".holdfast-home").write_text("{}")
    else:
        monkeypatch.setenv("HOLDFAST_HOME", str(state))
    project = project_at(tmp_path)
    with pytest.raises(ProjectError, match="own folder on this machine"):
        _ = project.state_directory
    with pytest.raises(ProjectError, match="own folder on this machine"):
        provenance.require_plain(state, home())


def test_a_link_that_comes_later_is_named(tmp_path):
    state = own_state(tmp_path)
    (state / "locks").symlink_to(tmp_path)
    with pytest.raises(ProjectError, match=r"`.*/locks` is a link"):
        _ = project_at(tmp_path).state_directory


def test_what_is_taken_over_has_no_special_files(tmp_path):
    (tmp_path / ".holdfast" / "runs" / "iris_1").mkdir(parents=True)
    os.mkfifo(tmp_path / ".holdfast" / "runs" / "iris_1" / "journal.jsonl")
    with pytest.raises(ProjectError, match=r"`runs/iris_1/journal\.jsonl`"):
        provenance.trust(tmp_path / ".holdfast", home())


def test_what_is_forgotten_can_be_made_anew(tmp_path):
    state = own_state(tmp_path)
    provenance.forget(state, home())
    assert records() == []
    (state / ".gitignore").unlink()
    state.rmdir()
    own_state(tmp_path)
    assert len(records()) == 1


def test_a_command_looks_once_whose_the_folder_is(tmp_path, monkeypatch):
    looked = list[Path]()

    def is_made(state: Path, _: Path) -> bool:
        looked.append(state)
        return False

    monkeypatch.setattr(provenance, "is_made", is_made)
    again = project_at(tmp_path)
    assert [again.state_directory, again.state_directory] == [tmp_path / ".holdfast"] * 2
    assert looked == [tmp_path / ".holdfast"]
    again = again.with_identity("0" * 32, "another")
    assert (again.state_directory, len(looked)) == (tmp_path / ".holdfast", 1)
    assert again == replace(again) and repr(again) == repr(replace(again))
