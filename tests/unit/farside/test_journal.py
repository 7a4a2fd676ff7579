"""The journal: whole lines, torn tails, a full disk."""

from __future__ import annotations

import errno
import os

import pytest

from holdfast.farside.system.journal import JournalWriter, read_events


def reason(journal: JournalWriter) -> str | None:
    ended = journal.ended()
    return None if ended is None else ended["reason"]


def test_events_are_read_as_they_were_written(tmp_path):
    journal = JournalWriter(str(tmp_path / "journal.jsonl"))
    journal.append("created", run="r")
    journal.append("ended", reason="completed")
    assert [event["e"] for event in journal.events()] == ["created", "ended"]
    assert reason(journal) == "completed"


@pytest.mark.parametrize("tail", [b'{"t":2,"e":"sta', b"\0" * 100], ids=["torn", "zeroed"])
def test_a_tail_that_is_no_line_does_not_swallow_the_next_one(tmp_path, tail):
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'{"t":1,"e":"created"}\n' + tail)
    JournalWriter(str(path)).append("ended", reason="supervisor-died")
    assert [event["e"] for event in read_events(str(path))] == ["created", "ended"]


def test_on_a_full_disk_the_reserve_is_given_up_for_the_line(tmp_path, monkeypatch):
    reserve = tmp_path / "reserve"
    reserve.write_bytes(b"x" * 100)
    journal = JournalWriter(str(tmp_path / "journal.jsonl"), str(reserve))
    real = os.write

    def write(descriptor: int, data: bytes) -> int:
        if reserve.exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    journal.append("ended", reason="completed")
    assert reason(journal) == "completed"
    reserve.write_bytes(b"")
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", lambda path: (_ for _ in ()).throw(OSError(errno.EIO, "no")))
        with pytest.raises(OSError, match="No space"):
            journal.append("note")


def test_a_line_that_is_still_being_written_is_left_for_later(tmp_path):
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'{"t":1,"e":"created"}\n{"t":2,"e":"ended"}')
    assert [event["e"] for event in read_events(str(path))] == ["created"]
    assert JournalWriter(str(path)).ended() is None
