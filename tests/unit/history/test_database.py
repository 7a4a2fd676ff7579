"""The file of the index, and damage to it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

import pytest

from holdfast.errors import StorageError
from holdfast.history import database
from holdfast.history.index import Filter, Index
from holdfast.history.queries import MetricCondition
from holdfast.model import Status


@pytest.mark.parametrize(("failures", "is_written"), [(1, True), (4, False)], ids=["once", "always"])
def test_a_write_that_was_disturbed_is_tried_again_and_a_failing_disk_is_said(archive, failures, is_written):
    tried = []

    def operation(connection):
        tried.append(connection)
        if len(tried) <= failures:
            raise sqlite3.OperationalError("disk I/O error")
        return "written"

    file = database.Database(archive.state)
    if is_written:
        assert file.write(operation) == "written"
    else:
        with pytest.raises(StorageError, match="disk I/O error"):
            file.write(operation)


@pytest.mark.parametrize("name", ["index-1.sqlite", "index-1.sqlite-journal", "index-1.sqlite-wal"])
def test_a_link_in_the_place_of_the_file_is_neither_written_nor_read_through(archive, tmp_path, name):
    run_id = archive.add()
    (tmp_path / "victim").write_bytes(b"precious")
    (archive.state / name).symlink_to(tmp_path / "victim")
    with pytest.raises(StorageError, match=f"{name}` is a link"):
        database.Database(archive.state).write(lambda connection: None)
    assert [run.run_id for run in Index(archive.state).list()] == [run_id]
    assert (tmp_path / "victim").read_bytes() == b"precious"


def test_tables_of_another_version_are_another_file(archive, monkeypatch):
    run_id = archive.add()
    Index(archive.state).list()
    before = database.Database(archive.state).path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(database, "VERSION", 99)
        assert [run.run_id for run in Index(archive.state).list()] == [run_id]
    assert database.Database(archive.state).path.read_bytes() == before


BLOCK = 4096
LOST: Mapping[str, Callable[[bytes, Random], bytes]] = {
    "cut": lambda data, random: data[: random.randrange(len(data))],
    "zeros": lambda data, random: _with_block(data, random, bytes(BLOCK)),
    "random bytes": lambda data, random: _with_block(data, random, random.randbytes(BLOCK)),
}


def _with_block(data: bytes, random: Random, block: bytes) -> bytes:
    """As disks lose blocks: whole, and at a multiple of their size."""
    at = random.randrange(len(data) // BLOCK) * BLOCK
    return data[:at] + block + data[at + BLOCK :]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", LOST)
def test_where_a_part_of_the_file_is_lost_every_answer_is_as_from_a_new_one(many, kind, seed):
    path, data, expected = many
    path.write_bytes(LOST[kind](data, Random(seed)))
    assert answers(path) == expected


@pytest.mark.parametrize("seed", range(8))
def test_bytes_that_change_inside_a_block_stop_nothing_and_rebuilding_removes_them(many, seed):
    path, data, expected = many
    random = Random(seed)
    at, new = random.randrange(len(data)), random.randbytes(random.choice((1, 4, 64, 512)))
    path.write_bytes(data[:at] + new + data[at + len(new) :])
    answers(path)
    Index(path.parent).rebuild()
    assert answers(path) == expected


@pytest.fixture(scope="module")
def many(made_archive, tmp_path_factory):
    """The file of an index of some runs, its bytes, and what is asked of it."""
    archive = made_archive(tmp_path_factory.mktemp("many") / ".holdfast")
    for number in range(30):
        journal = (archive.completed, archive.failed, archive.running)[number % 3]
        archive.add(journal, {"accuracy": number / 30}, script_name=f"{number % 2}.py", run_number=number + 1)
    os.utime(archive.folders.root, (1, 1))  # so that only the index says which runs exist
    path = database.Database(archive.state).path
    expected = answers(path)
    return path, path.read_bytes(), expected


def answers(path: Path) -> list[object]:
    path.with_name(f"{path.name}-journal").unlink(missing_ok=True)
    index = Index(path.parent)
    good = MetricCondition("accuracy", ">", 0.5)
    return [
        index.look(limit=5),
        index.look(),
        index.look(only=Filter(script="0.py", status=Status.COMPLETED)),
        index.documents(),
        index.documents(metrics=(good,)),
        index.unfinished(),
        index.next_run_number("0.py", "iris_x"),
    ]
