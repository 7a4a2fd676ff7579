"""The file of the index, and what disturbs it."""

from __future__ import annotations

import sqlite3

import pytest

from holdfast.errors import StorageError
from holdfast.history import database


@pytest.mark.parametrize(("failures", "is_written"), [(1, True), (3, False)], ids=["once", "always"])
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
