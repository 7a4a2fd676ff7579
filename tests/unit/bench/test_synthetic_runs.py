"""The made-up runs for measuring are valid runs to Holdfast, and the same as in the peer's store."""

from __future__ import annotations

import pytest
from synthetic_runs import METRIC, THRESHOLD, accuracy, write_runs

from holdfast.history.index import Index
from holdfast.model import Status
from kit.projects import own_state, project_at

pytestmark = pytest.mark.kit


def test_every_made_up_run_is_read_as_one_that_completed_and_needs_nothing_from_a_host(tmp_path):
    own_state(tmp_path)
    write_runs(tmp_path, 12)
    index = Index(project_at(tmp_path).state_directory)
    listing = index.look()
    assert (listing.unreadable, index.unfinished()) == ((), ())
    assert [run.submission.run_number for run in listing.runs] == list(range(12, 0, -1))
    assert {run.status for run in listing.runs} == {Status.COMPLETED}
    assert [run.metrics[METRIC] for run in listing.runs] == [accuracy(number) for number in range(11, -1, -1)]


def test_one_run_in_a_hundred_is_what_the_query_looks_for():
    assert sum(accuracy(number) > THRESHOLD for number in range(10_000)) == 100
