"""What `clean` removes from a machine is at home, or was said to be given up."""

from __future__ import annotations

from pathlib import Path

from holdfast.workbench import events
from holdfast.workbench.following.mirror import writer_lock
from holdfast.workbench.records.cleaning import Rubbish, clean
from kit.waiting import wait_for


def cleaned(laptop, run: str) -> list[events.Removed]:
    happened = clean(laptop.project, Rubbish((run,)), laptop.around)
    return [each for each in happened if isinstance(each, events.Removed)]


def there(boxes, run: str) -> Path:
    (folder,) = boxes["gpu1"].folder.glob(f"runs/*/{run}")
    return folder


def test_a_run_whose_outputs_are_not_at_home_stays_until_they_are(laptop, boxes):
    run = laptop.start("gpu1")
    far = there(boxes, run)
    boxes["gpu1"].open_gate()
    wait_for(lambda: b'"e":"ended"' in (far / "journal.jsonl").read_bytes())
    with writer_lock(laptop.folders.path(run)) as is_mine:  # as where another process is copying it
        assert is_mine
        (kept,) = cleaned(laptop, run)
    assert "not at home yet" in kept.kept
    assert (far / "work" / "outputs" / "result").read_text() == "made on gpu1"
    (removed,) = cleaned(laptop, run)
    assert removed.kept == ""
    assert not far.exists()
    assert (laptop.folders.path(run) / "outputs" / "result").read_text() == "made on gpu1"
