"""What one look at a device proves about the run."""

from __future__ import annotations

import pytest

from holdfast.farside.gpu.judge.evidence import HELD, UNCLEAR, WAITING, WORKING, work
from holdfast.farside.gpu.samples import Row
from kit.gpu_values import STRANGER, device, holding, row, strange, working


@pytest.mark.parametrize(
    ("seen", "kind"),
    [
        (working(percent=1, others=(STRANGER,)), WORKING),
        (working(percent=1)._replace(own_utilisation=0, others=(STRANGER,)), HELD),
        (working(percent=1)._replace(own_utilisation=None), WORKING),
        (holding(), HELD),
        (row(), WAITING),
        (strange(), WAITING),
        (row(utilisation=1, unmatched=1), UNCLEAR),
        (row(utilisation=1), UNCLEAR),
    ],
    ids=[
        "one per cent is the run's own",
        "all of it is another's",
        "the driver does not say whose it is",
        "only memory",
        "nothing",
        "another's work",
        "a process of unknown owner",
        "work without a named process",
    ],
)
def test_one_per_cent_is_work_and_what_cannot_be_matched_is_unknown(seen: Row, kind: int) -> None:
    assert work(seen, device(), attributed=True)[0] == kind


def test_without_attribution_another_process_may_be_the_runs_own() -> None:
    assert work(strange(), device(), attributed=False)[0] == UNCLEAR
