"""The index: quick, shared by processes, and never the only source of a fact."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from holdfast.errors import StorageError
from holdfast.history import index as history_index
from holdfast.history.database import VERSION
from holdfast.history.index import Filter, Index
from holdfast.history.queries import MetricCondition, run_as_dict
from holdfast.history.records import read_run
from holdfast.model import Status

FILE = f"index-{VERSION}.sqlite"


@pytest.fixture
def index(archive):
    return Index(archive.state)


def dump(state: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(state / FILE)) as connection:
        return sorted(connection.iterdump())


def test_runs_come_newest_first_and_can_be_limited(archive, index):
    ids = [archive.add(created=1000.0 + i) for i in range(5)]
    assert [run.run_id for run in index.list()] == ids[::-1]
    assert [run.run_id for run in index.list(limit=2)] == ids[:2:-1]
    assert index.look(limit=2).total == 5


def test_a_listed_run_is_the_record_without_its_long_lists(archive, index):
    run_id = archive.add(metrics={"accuracy": 0.9, "name": "résumé", "curve": [1, 2]}, properties={"a": "b"})
    whole = read_run(archive.folders, run_id)
    assert index.list() == (replace(whole, packages=(), other_files=()),)


def test_runs_are_filtered_by_script_target_status_and_parent(archive, index):
    a = archive.add(script_name="a.py")
    b = archive.add(archive.failed, target="gpu", parent_run_id=a)
    found = [
        [run.run_id for run in index.list(only=only)]
        for only in (Filter(script="a.py"), Filter(target="gpu"), Filter(status=Status.FAILED), Filter(parent=a))
    ]
    assert found == [[a], [b], [b], [b]]
    assert index.look(only=Filter(script="none")).total == 0


def test_an_untracked_run_is_not_listed_but_counts_as_unfinished(archive, index):
    run_id = archive.add(archive.running, {"loss": 1}, tracked=False)
    assert index.look().total == 0
    assert index.documents().documents == ()
    assert index.unfinished() == ((run_id, "local"),)


def test_an_unfinished_run_is_read_again_until_it_has_ended(archive, index):
    run_id = archive.add(archive.running)
    assert index.unfinished() == ((run_id, "local"),)
    archive.write_metrics(run_id, {"loss": 3.0})
    assert index.list()[0].metrics == {"loss": 3.0}
    archive.write_journal(run_id, archive.completed)
    assert index.unfinished() == ()
    assert index.list()[0].status is Status.COMPLETED


def test_an_ended_run_whose_outputs_are_not_at_home_is_unfinished(archive, index):
    run_id = archive.add(archive.completed)
    mark = archive.folders.path(run_id) / "collected.json"
    mark.unlink()
    assert index.unfinished() == ((run_id, "local"),)
    assert index.list()[0].status is Status.COMPLETED
    mark.write_text("{}")
    assert index.unfinished() == ()


def test_a_removed_run_is_gone_and_its_number_is_not_given_again(archive, index):
    run_id = archive.add()
    assert index.next_run_number("train.py", run_id) == 1
    shutil.rmtree(archive.folders.path(run_id))
    assert index.list() == ()
    assert index.next_run_number("train.py", "iris_2") == 2


def test_numbers_count_per_script_and_a_repeat_gives_the_same(index):
    assert [index.next_run_number("a.py", f"r_{i}") for i in range(3)] == [1, 2, 3]
    assert index.next_run_number("b\udcff.py", "r_9") == 1
    assert index.next_run_number("a.py", "r_1") == 2


def test_numbers_go_on_when_the_index_was_lost(archive, index):
    archive.add(run_number=7)
    assert index.next_run_number("train.py", "iris_1") == 8
    (archive.state / FILE).unlink()
    assert index.next_run_number("train.py", "iris_2") == 8


TAKE_NUMBERS = """
import pathlib, sqlite3, sys
import holdfast.history.metrics
from holdfast.history.index import Index
index = Index(pathlib.Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
print(*(index.next_run_number("train.py", f"{sys.argv[2]}_{i}") for i in range(20)))
"""


@pytest.mark.parametrize("is_damaged", [False, True])
def test_two_processes_never_get_the_same_number(archive, is_damaged):
    if is_damaged:
        archive.state.mkdir()
        (archive.state / FILE).write_bytes(b"not a database" * 400)
    workers = [
        subprocess.Popen([sys.executable, "-c", TAKE_NUMBERS, archive.state, name], stdin=PIPE, stdout=PIPE, text=True)
        for name in "ab"
    ]
    for worker in workers:
        assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
    for worker in workers:  # told at once, so that they meet
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    numbers = [int(number) for worker in workers for number in worker.communicate(timeout=60)[0].split()]
    assert sorted(numbers) == list(range(1, 41))


def test_rebuilding_gives_what_was_written_step_by_step(archive, index):
    for journal, metrics in ((archive.running, {"a": 1}), (archive.failed, {"b": float("inf")}), ((), {"c": "x"})):
        run_id = archive.add(journal, metrics)
        assert index.list()[0].run_id == run_id
    archive.write_journal(run_id, archive.completed)
    assert index.list()[0].status is Status.COMPLETED
    step_by_step = dump(archive.state)
    assert index.rebuild() == 3
    assert dump(archive.state) == step_by_step
    (archive.state / FILE).unlink()
    assert len(index.list()) == 3
    assert dump(archive.state) != []


def test_rebuilding_reads_folders_that_have_not_changed_for_long(archive, index):
    archive.add(archive.completed)
    os.utime(archive.folders.root, (1, 1))
    index.list()
    assert index.rebuild() == 1
    assert len(index.list()) == 1


def test_a_reader_of_old_files_that_comes_late_does_not_undo_the_end_of_a_run(archive, index, monkeypatch):
    run_id = archive.add(archive.running)
    read = read_run

    def outrun(folders: Any, run_id: str) -> Any:
        old = read(folders, run_id)
        monkeypatch.setattr(history_index, "read_run", read)
        archive.write_journal(run_id, archive.completed)
        assert Index(archive.state).list()[0].status is Status.COMPLETED
        return old

    index.list()
    monkeypatch.setattr(history_index, "read_run", outrun)
    assert [(run.run_id, run.status) for run in index.list()] == [(run_id, Status.COMPLETED)]


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b"not a database, but long enough to look like a file of one" * 50),
        lambda path: path.write_bytes(path.read_bytes()[:512] + b"\xff" * 4096 + path.read_bytes()[4608:]),
        lambda path: os.truncate(path, path.stat().st_size // 2),
        lambda path: execute(path, "DROP TABLE metrics"),
        lambda path: execute(path, "ALTER TABLE runs RENAME COLUMN record TO other"),
        lambda path: execute(path, "UPDATE runs SET record = '{}'"),
        lambda path: execute(path, "UPDATE runs SET record = 'x'"),
    ],
    ids=["overwritten", "a page", "cut", "without a table", "without a column", "empty records", "no JSON"],
)
def test_a_damaged_index_is_made_anew(archive, index, damage):
    ids = [archive.add(archive.failed, {f"m{i}": i}) for i in range(6)]
    assert len(index.list()) == 6
    damage(archive.state / FILE)
    assert [run.run_id for run in index.list()] == ids[::-1]
    assert index.rebuild() == 6
    assert index.next_run_number("train.py", "iris_x") == 2


def execute(path: Path, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def test_an_empty_file_in_place_of_the_index_is_filled(archive, index):
    run_id = archive.add()
    (archive.state / FILE).write_bytes(b"")
    assert [run.run_id for run in index.list()] == [run_id]


def test_folders_that_are_no_readable_run_are_named_and_do_not_stop_the_rest(archive, index):
    good, bad = archive.add(), archive.add()
    (archive.folders.path(bad) / "submission.json").write_text("{")
    copy = archive.folders.root / "iris_copy"
    copy.mkdir()
    (copy / "submission.json").write_bytes((archive.folders.path(good) / "submission.json").read_bytes())
    listing = index.look()
    assert [run.run_id for run in listing.runs] == [good]
    assert listing.unreadable == (bad, "iris_copy")


def test_documents_are_narrowed_by_metrics(archive, index):
    values = [0.5, 0.9, "text", float("nan"), 0.7, True]
    ids = [archive.add(metrics={"accuracy": value, "number": number}) for number, value in enumerate(values)]

    def found(*conditions: MetricCondition) -> list[str]:
        return [each["run_id"] for each in index.documents(metrics=conditions).documents]

    assert found(MetricCondition("accuracy", ">", 0.6)) == [ids[4], ids[1]]
    assert found(MetricCondition("accuracy", ">", 0.6), MetricCondition("number", "<", 2)) == [ids[1]]
    assert found(MetricCondition("accuracy")) == ids[::-1]
    assert found(MetricCondition("nothing")) == []


def test_documents_are_the_runs_as_dicts(archive, index):
    for metrics in ({"accuracy": 0.5, "status": 3}, {"loss": float("nan")}, {}):
        archive.add(archive.completed, metrics)
    expected = [run_as_dict(read_run(archive.folders, run_id)) for run_id in reversed(archive.folders.all_ids())]
    assert json.dumps(list(index.documents().documents)) == json.dumps(expected)
    assert len(index.documents(limit=2).documents) == 2


def test_a_folder_that_appears_later_is_found_although_the_listing_is_remembered(archive, index):
    first = archive.add()
    os.utime(archive.folders.root, (1, 1))
    assert [run.run_id for run in index.list()] == [first]
    second = archive.add()
    assert [run.run_id for run in index.list()] == [second, first]
    shutil.rmtree(archive.folders.path(first))
    assert [run.run_id for run in index.list()] == [second]


def test_reading_where_nothing_was_run_makes_no_files(archive, index):
    assert index.list() == ()
    assert index.unfinished() == ()
    assert not archive.state.exists()


@pytest.mark.parametrize(
    "message", ["database or disk is full", "attempt to write a readonly database", "database is locked"]
)
def test_runs_are_listed_and_numbers_refused_where_the_index_cannot_be_written(archive, index, monkeypatch, message):
    first = archive.add()
    index.list()
    second = archive.add(archive.running)

    @contextlib.contextmanager
    def refuse(connection):
        if connection.execute("PRAGMA database_list").fetchone()[2]:
            raise sqlite3.OperationalError(message)
        yield

    monkeypatch.setattr("holdfast.history.index.transaction", refuse)
    assert [run.run_id for run in index.list()] == [second, first]
    with pytest.raises(StorageError) as caught:
        index.next_run_number("train.py", "iris_x")
    assert message in caught.value.message
    assert caught.value.hint
    monkeypatch.undo()
    with contextlib.closing(sqlite3.connect(archive.state / FILE)) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (1,)


@pytest.mark.parametrize("has_index", [True, False])
def test_a_read_only_project_can_be_read(archive, tmp_path, has_index):
    first = archive.add()
    if has_index:
        Index(archive.state).list()
    second = archive.add(archive.running)
    before = sorted(os.listdir(archive.state))
    modes = {Path(folder): 0o555 for folder, _, _ in os.walk(archive.state)}
    if os.getuid() == 0:  # the child is another user then, and has to get through to the project
        modes |= {each: each.stat().st_mode | stat.S_IXOTH for each in (tmp_path, *tmp_path.parents)}
    with changed_modes({path: mode for path, mode in modes.items() if path.stat().st_mode != mode}):
        assert in_child(lambda: _list_without_writing(archive.state, [second, first]))
    assert sorted(os.listdir(archive.state)) == before


@contextlib.contextmanager
def changed_modes(modes: dict[Path, int]):
    old = {path: path.stat().st_mode for path in modes}
    try:
        for path, mode in modes.items():
            path.chmod(stat.S_IMODE(mode))
        yield
    finally:
        for path, mode in old.items():
            path.chmod(stat.S_IMODE(mode))


def _list_without_writing(state: Path, expected: list[str]) -> bool:
    index = Index(state)
    try:
        index.next_run_number("train.py", "iris_x")
    except StorageError as error:
        return [run.run_id for run in index.list()] == expected and "cannot be written" in error.hint
    return False


def in_child(check) -> bool:
    """Whether `check` is true in a process that permissions apply to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child runs no threads of the parent
        pid = os.fork()
    if pid == 0:
        code = 1
        with contextlib.suppress(BaseException):
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            code = 0 if check() else 1
        os._exit(code)
    return os.waitpid(pid, 0)[1] == 0


def test_a_run_that_was_given_up_is_waited_for_no_more_and_can_come_back(archive):
    run_id = archive.add(archive.running, target="gpu1", target_type="remote")
    index = Index(archive.state)
    assert index.look().has_unfinished
    archive.folders.write_abandoned(run_id, "No route to host", 5.0)
    listing = index.look()
    assert ([each.status for each in listing.runs], listing.has_unfinished) == ([Status.ABANDONED], False)
    assert index.unfinished() == ()
    assert index.unfinished(abandoned=(run_id,)) == ((run_id, "gpu1"),)
    archive.folders.take_up_again(run_id)
    assert index.unfinished() == ((run_id, "gpu1"),)
    archive.folders.write_abandoned(run_id, "No route to host", 5.0)
    archive.write_journal(run_id, archive.completed)
    assert [each.status for each in index.look().runs] == [Status.COMPLETED]


def test_what_changed_of_a_run_that_had_ended_is_taken_in_when_that_is_asked_for(archive):
    run_id = archive.add(fetch_outputs=False)
    (archive.folders.path(run_id) / "collected.json").write_text('{"outputs_left": true}')
    index = Index(archive.state)
    assert index.look().runs[0].outputs_left
    (archive.folders.path(run_id) / "collected.json").write_text("{}")
    index.renew(run_id)
    assert not index.look().runs[0].outputs_left
    assert index.documents().documents[0]["notes"] == []
