"""Run folders appear complete or not at all, and are found by what a person types."""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.errors import StorageError, UnknownName, UsageError
from holdfast.history.run_folder import RunFolders
from holdfast.model import Place

NOW = 1_700_000_000.25


@pytest.fixture
def folders(tmp_path):
    return RunFolders(tmp_path / ".holdfast")


def commit(folders, submission, run_id):
    own = replace(submission, run_id=run_id)
    folders.commit(run_id, own, {"format": 1, "run": run_id}, {"Framework": "Python"})
    return own


@pytest.fixture
def run_id(folders, submission):
    """A run that is committed."""
    return commit(folders, submission, folders.reserve("iris", NOW)).run_id


def test_a_committed_run_reads_back_as_it_was_written(folders, submission):
    run_id = folders.reserve("iris", NOW)
    tricky = replace(submission, arguments=("a b", "\udcff\n", "é"), properties={"grid": "1"}, parent_run_id="p_1")
    own = commit(folders, tricky, run_id)
    assert run_id == "iris_1700000000250"
    assert folders.submission(run_id) == own
    assert folders.plan(run_id) == {"format": 1, "run": run_id}
    assert folders.configuration(run_id) == {"Framework": "Python"}
    assert sorted(os.listdir(folders.root)) == [run_id]


def test_reserved_runs_are_not_listed_until_they_are_committed(folders, submission):
    run_id = folders.reserve("iris", NOW)
    assert folders.all_ids() == ()
    commit(folders, submission, run_id)
    assert folders.all_ids() == (run_id,)


def test_ids_taken_at_the_same_moment_differ_whether_reserved_or_committed(folders, run_id):
    ids = [run_id, folders.reserve("iris", NOW), folders.reserve("iris", NOW)]
    assert ids == [f"iris_{1700000000250 + i}" for i in range(3)]


def test_ids_are_unique_when_many_ask_at_once(folders):
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda _: folders.reserve("iris", NOW), range(60)))
    assert len(set(ids)) == 60


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        *(("my project", "my_project"), ("../evil", "evil"), ("日本", "run")),
        *(("-x", "x"), ("a" * 90, "a" * 48), ("", "run")),
    ],
)
def test_a_project_name_becomes_a_prefix_that_is_safe_as_a_folder_name(folders, name, prefix):
    assert folders.reserve(name, NOW) == f"{prefix}_1700000000250"


def test_an_abandoned_run_leaves_nothing_and_a_committed_one_is_not_touched(folders, run_id):
    other = folders.reserve("iris", NOW)
    for _ in ("once", "and again"):
        folders.abandon(other)
        folders.abandon(run_id)
    assert os.listdir(folders.root) == [run_id]


def test_leftovers_are_removed_after_a_day_and_not_before(folders):
    young, old = folders.reserve("iris", NOW), folders.reserve("iris", NOW)
    os.utime(folders.root / f"{young}.new", (NOW, NOW))
    os.utime(folders.root / f"{old}.new", (NOW - 10, NOW - 10))
    folders.reserve("other", NOW + 24 * 3600 - 5)
    assert (folders.root / f"{young}.new").is_dir()
    assert not (folders.root / f"{old}.new").exists()


@pytest.mark.parametrize("failing_write", [0, 1, 2])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_leaves_no_half_written_record(folders, submission, monkeypatch, failing_write, code):
    run_id = folders.reserve("iris", NOW)
    synced = os.fsync
    calls = []

    def fsync(descriptor):
        calls.append(descriptor)
        if len(calls) == failing_write + 1:
            raise OSError(code, os.strerror(code))
        synced(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(StorageError) as caught:
        commit(folders, submission, run_id)
    assert run_id in caught.value.message and caught.value.hint
    assert os.listdir(folders.root) == []


def test_a_folder_that_cannot_be_made_is_a_storage_error_with_a_remedy(tmp_path, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(StorageError, match="Read-only file system") as caught:
        RunFolders(tmp_path / ".holdfast").reserve("iris", NOW)
    assert "mounted read-only" in caught.value.hint


def test_runs_are_sorted_by_age_whatever_their_prefix(folders, submission):
    for prefix, offset in (("z", 0), ("a", 1), ("m", 2)):
        commit(folders, submission, folders.reserve(prefix, NOW + offset))
    assert [each[0] for each in folders.all_ids()] == ["z", "a", "m"]


def test_a_run_is_found_by_its_id_its_beginning_its_end_and_last(folders, submission, run_id):
    second = commit(folders, submission, folders.reserve("wine", NOW + 7)).run_id
    assert [folders.resolve(text) for text in (run_id, "ir")] == [run_id] * 2
    assert [folders.resolve(text) for text in ("7250", "last")] == [second] * 2


def test_an_ambiguous_id_lists_the_newest_candidates(folders, submission):
    ids = [commit(folders, submission, folders.reserve("iris", NOW + i)).run_id for i in range(7)]
    with pytest.raises(UsageError) as caught:
        folders.resolve("iris")
    assert caught.value.message == "`iris` could be any of 7 runs."
    assert caught.value.hint == f"Give more of the id: {', '.join(ids[:1:-1])} …"


def test_an_unknown_run_names_the_nearest(folders, run_id):
    with pytest.raises(UnknownName) as caught:
        folders.resolve("iris_1700000000251")
    assert caught.value.message == "There is no run `iris_1700000000251`."
    assert f"Did you mean `{run_id}`?" in caught.value.hint


@pytest.mark.parametrize("text", ["last", "", "x"])
def test_without_any_run_the_remedy_is_to_submit_one(folders, text):
    with pytest.raises(UnknownName) as caught:
        folders.resolve(text)
    assert caught.value.hint.endswith(": holdfast experiment submit SCRIPT")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{", "it is not JSON"),
        (b"[" * 100_000, "it is not JSON"),
        (b"[]", "it is not a JSON object"),
        (b"{}", "`run_id` is missing or not what it should be"),
        (None, "it is missing"),
    ],
)
def test_a_damaged_submission_names_the_file_and_what_is_wrong(folders, run_id, content, why):
    path = folders.path(run_id) / "submission.json"
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(StorageError) as caught:
        folders.submission(run_id)
    assert caught.value.message == f"`{path}` cannot be read: {why}."


def test_a_record_of_a_later_version_says_to_update(folders, run_id):
    (folders.path(run_id) / "submission.json").write_text('{"format": 9}')
    with pytest.raises(StorageError, match=r"A later version of Holdfast wrote it \(format 9, not 1\)"):
        folders.submission(run_id)


def test_keys_of_a_later_version_are_ignored(folders, run_id):
    own = folders.submission(run_id)
    path = folders.path(run_id) / "submission.json"
    path.write_text(path.read_text().replace('"run_number"', '"verdict": {}, "run_number"'))
    assert folders.submission(run_id) == own


def test_reading_a_run_that_is_not_there_is_an_unknown_name(folders):
    with pytest.raises(UnknownName):
        folders.plan("iris_1")


def test_where_a_run_may_start_and_the_clock_there_stand_beside_each_other(folders, run_id):
    assert (folders.place(run_id), folders.clock_offset(run_id)) == (None, None)
    place = Place("ab" * 16, "/home/\udcff/.holdfast", "node1")
    folders.write_place(run_id, "me@gpu1", place)
    folders.write_clock(run_id, "me@gpu1", 1.5, 0.01)
    assert (folders.place(run_id), folders.clock_offset(run_id)) == (place, 1.5)
    folders.write_place(run_id, "me@gpu1", replace(place, machine="cd" * 16))
    assert (folders.place(run_id).machine, folders.clock_offset(run_id)) == ("cd" * 16, 1.5)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"format": 1, "host": "gpu1", "clock_offset": 0.5}', '{"machine": 7}']
)
def test_a_place_that_was_not_written_down_or_cannot_be_read_is_not_known(folders, run_id, text):
    (folders.path(run_id) / "host.json").write_text(text)
    assert folders.place(run_id) is None


def test_a_place_that_cannot_be_written_down_is_an_error(folders, run_id):
    (folders.path(run_id) / "host.json").mkdir()
    with pytest.raises(StorageError, match=run_id):
        folders.write_place(run_id, "me@gpu1", Place("ab", "/home", "node1"))
    folders.write_clock(run_id, "me@gpu1", 1.5, 0.01)
