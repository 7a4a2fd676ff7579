"""`clean` removes from a machine only what was fetched, or what the user gave up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.farside.system.working_tree import tree_of
from holdfast.workbench.following.mirror import writer_lock
from holdfast.workbench.following.outputs import Collector
from holdfast.workbench.reach import events
from holdfast.workbench.records.clean import Rubbish, clean
from kit.waiting import wait_for


def cleaned(laptop, run: str) -> list[events.Removed]:
    happened = clean(laptop.project, Rubbish((run,)), laptop.context)
    return [each for each in happened if isinstance(each, events.Removed)]


def there(boxes, run: str) -> Path:
    (folder,) = boxes["gpu1"].folder.glob(f"runs/*/{run}")
    return folder


@pytest.fixture
def ended(laptop, boxes) -> str:
    """A run that has ended, and of which nothing was fetched."""
    run = laptop.start("gpu1")
    boxes["gpu1"].open_gate()
    wait_for(lambda: b'"e":"ended"' in (there(boxes, run) / "journal.jsonl").read_bytes())
    return str(run)


def test_a_run_that_another_process_is_bringing_home_stays(laptop, boxes, ended):
    far = there(boxes, ended)
    with writer_lock(laptop.folders.path(ended)) as is_mine:
        assert is_mine
        (kept,) = cleaned(laptop, ended)
    assert "not at home yet" in kept.kept
    assert Path(tree_of(str(far)).project, "outputs", "result").read_text() == "made on gpu1"


def test_a_run_stays_whose_outputs_did_not_come_home_and_goes_when_they_have(laptop, boxes, ended, monkeypatch):
    def damaged(collector: Collector, *_: object) -> Iterator[events.Event]:
        collector.errors.append("`work/outputs/result` arrived damaged twice")
        yield from ()

    far = there(boxes, ended)
    with monkeypatch.context() as patch:
        patch.setattr(Collector, "bring", damaged)
        (kept,) = cleaned(laptop, ended)
    assert "not at home yet" in kept.kept
    assert far.exists()
    (removed,) = cleaned(laptop, ended)
    assert removed.kept == ""
    assert not far.exists()
    assert (laptop.folders.path(ended) / "outputs" / "result").read_text() == "made on gpu1"
