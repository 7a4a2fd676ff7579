"""Files from a far side that breaks, changes its mind or lies."""

from __future__ import annotations

import errno
import functools
import hashlib
import json
import os
import zlib
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import HostError, StorageError
from holdfast.hosts.connection import Push
from holdfast.project.file_names import unstorable
from holdfast.workbench.following import far_listing, outputs
from holdfast.workbench.following.far_listing import OUTPUTS, is_below
from holdfast.workbench.following.outputs import Collector
from holdfast.workbench.following.transfer import FarRun, PartialFile, Receiver, WantedFile
from kit.speaking import Speaking

RUN = FarRun("p", "r", True)


class Lying(Speaking):
    """A connection with prepared answers: `listing` rows, then pushes, in turn for each request."""

    def __init__(self, *turns: list[Push], listing: list[list[Any]] | None = None) -> None:
        self.turns, self.listing = deque(turns), listing
        self.asked: list[list[list[Any]]] = []
        self._pushes: deque[Push] = deque()

    def request(self, operation: str, fields: dict[str, Any]) -> Any:
        if operation == "list":
            rows = [each if len(each) != 5 else [*each, False] for each in self.listing or []]
            return {"files": rows, "total": len(rows), "problems": []}
        self.asked.append(fields["files"])
        self._pushes = deque(self.turns.popleft() if fields["files"] else [])
        return {"files": len(fields["files"]), "alive": None}

    def next_push(self, timeout: float | None) -> Push | None:
        return self._pushes.popleft() if self._pushes else None


def piece(data: bytes, offset: int = 0, file: str = "work/outputs/x", kind: str = "piece") -> Push:
    return Push(kind, "r", file, offset, data)


def whole(data: bytes, digest: str | None = None, size: int | None = None, **more: Any) -> Push:
    end = {"sha256": digest or hashlib.sha256(data).hexdigest(), "mtime_ns": 5_000_000_000, "steady": True, **more}
    return Push("whole", "r", "work/outputs/x", len(data) if size is None else size, json.dumps(end).encode())


@pytest.fixture
def receive(tmp_path: Path) -> Any:
    def run(connection: Any, has_ended: bool = True) -> Receiver:
        receiver = Receiver(connection, FarRun("p", "r", has_ended), tmp_path / "parts")
        wanted = WantedFile("work/outputs/x", tmp_path / "home" / "outputs" / "x", 3, tmp_path / "home")
        list(receiver.receive([wanted]))
        return receiver

    return run


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "home" / "outputs" / "x"


def test_a_file_arrives_in_pieces_with_its_time(receive, target):
    receive(Lying([piece(b"ab"), piece(zlib.compress(b"cd"), 2, kind="packed"), whole(b"abcd")]))
    assert target.read_bytes() == b"abcd"
    assert target.stat().st_mtime == 5
    assert not list(target.parent.parent.parent.glob("parts/*"))
    receive(Lying([whole(b"")]))
    assert target.read_bytes() == b"", "an empty file is a file"


@pytest.mark.skipif(os.name == "nt", reason="any file is a program by its name there")
@pytest.mark.parametrize(
    ("said", "is_executable"), [({"executable": True}, True), ({"executable": False}, False), ({}, False)]
)
def test_a_program_arrives_as_one_if_the_far_side_says_so(receive, target, said, is_executable):
    receive(Lying([piece(b"a"), whole(b"a", **said)]))
    assert os.access(target, os.X_OK) is is_executable


@pytest.mark.skipif(os.name == "nt", reason="any file is a program by its name there")
@pytest.mark.parametrize(("said", "is_executable"), [([True], True), ([False], False)])
def test_a_file_at_home_is_a_program_if_the_listing_says_so(tmp_path, said, is_executable):
    home = tmp_path / "outputs" / "x"
    home.parent.mkdir()
    home.write_bytes(b"abc")
    os.utime(home, ns=(5, 5))
    listed = ["work/outputs/x", "f", 3, 5, "", *said]
    far: Any = Lying(listing=[listed])
    list(Collector(far, False, RUN, tmp_path).bring((OUTPUTS,)))
    assert os.access(home, os.X_OK) is is_executable


def test_a_file_that_may_still_be_written_to_gets_another_time_so_that_it_is_fetched_again(receive, target):
    receive(Lying([piece(b"a"), whole(b"a", steady=False)]), has_ended=False)
    assert target.stat().st_mtime != 5


@pytest.mark.parametrize("lie", [{"digest": "0" * 64}, {"size": 3}], ids=["digest", "size"])
def test_a_wrong_digest_or_size_is_tried_once_more_from_the_beginning_and_an_error_then(receive, target, tmp_path, lie):
    wrong = [piece(b"abcdef"), whole(b"abcdef", **lie)]
    good = Lying(wrong, [piece(b"ab"), whole(b"ab")])
    assert receive(good).errors == []
    assert [asked[0][1] for asked in good.asked] == [0, 0]
    assert target.read_bytes() == b"ab"
    target.unlink()
    assert receive(Lying(wrong, wrong)).errors == ["`work/outputs/x` arrived damaged twice"]
    assert not target.exists()
    assert not list(tmp_path.glob("parts/*"))


@pytest.mark.parametrize(
    ("first", "second", "content"),
    [
        ([piece(b"ab")], [piece(b"c", 2), whole(b"abc")], b"abc"),
        ([piece(b"ab")], [piece(b"ne"), piece(b"w", 2), whole(b"new")], b"new"),
    ],
    ids=["it is continued", "the far side begins anew"],
)
def test_what_is_here_already_is_named_with_its_digest(receive, target, first, second, content):
    connection = Lying(first, second)
    with pytest.raises(HostError):
        receive(Broken(connection))
    receive(connection)
    assert connection.asked[1] == [["work/outputs/x", 2, hashlib.sha256(b"ab").hexdigest()]]
    assert target.read_bytes() == content


class Broken(Speaking):
    """The link is gone when nothing more would come."""

    def __init__(self, connection: Lying) -> None:
        self._connection = connection
        self.request = connection.request  # type: ignore[method-assign] # the same far side

    def next_push(self, timeout: float | None) -> Push | None:
        push = self._connection.next_push(timeout)
        if push is None:
            raise HostError("The far side is gone.")
        return push


@pytest.mark.parametrize(
    "pushes",
    [
        [piece(b"x", file="../../evil")],
        [piece(b"x", file="work/outputs/other")],
        [piece(b"x", offset=7)],
        [piece(b"x", offset=-1)],
        [piece(b"not zlib", kind="packed")],
        [piece(zlib.compress(bytes(50 << 20)), kind="packed")],
        [piece(b"[]", kind="whole")],
        [piece(b"\xff", kind="failed")],
    ],
)
def test_a_far_side_that_sends_nonsense_is_an_error_and_nothing_is_written(receive, target, tmp_path, pushes):
    with pytest.raises(HostError):
        receive(Lying(pushes))
    assert not target.exists()
    assert {each.name for each in tmp_path.iterdir()} <= {"parts", "parts.lock", "home"}


def test_a_file_that_vanished_is_a_note_and_one_that_cannot_be_read_an_error(receive):
    gone = json.dumps({"kind": "not-found", "message": "`x` is not there any more."}).encode()
    sick = json.dumps({"kind": "storage", "message": "`x` cannot be read: Input/output error."}).encode()
    receiver = receive(Lying([piece(gone, kind="failed")]))
    assert (receiver.notes, receiver.errors) == (["`x` is not there any more"], [])
    receiver = receive(Lying([piece(sick, kind="failed")]))
    assert (receiver.notes, receiver.errors) == ([], ["`x` cannot be read: Input/output error"])


def test_a_full_disk_here_ends_the_stream_on_the_host(receive, monkeypatch):
    connection = Lying([piece(b"ab"), piece(b"c", 2), whole(b"abc")])

    def full(part: PartialFile, offset: int, data: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(PartialFile, "write", full)
    with pytest.raises(OSError, match="No space left"):
        receive(connection)
    assert connection.asked[-1] == [], "a stream without files"


@pytest.fixture
def collect(tmp_path: Path) -> Any:
    def run(connection: Any, **options: Any) -> Collector:
        collector = Collector(connection, False, RUN, tmp_path / "home")
        list(collector.bring((OUTPUTS,), **options))
        return collector

    return run


@pytest.mark.parametrize("name", ["../evil", "/etc/passwd", "a//b", "a/../../b", "", "a/\0"])
def test_a_name_that_leads_elsewhere_is_a_note(collect, tmp_path, name):
    row = [f"work/outputs/{name}", "f", 1, 1, ""]
    collector = collect(Lying(listing=[row]))
    assert len(collector.notes) == 1
    assert "cannot be one of the run's" in collector.notes[0]
    assert not (tmp_path / "evil").exists()


def test_a_name_that_cannot_be_a_file_here_is_a_note_and_the_others_come(collect, tmp_path):
    listing: list[list[Any]] = [["work/outputs/" + "n" * 300, "f", 1, 1, ""], ["work/outputs/x", "f", 1, 1, ""]]
    long = Push("whole", "r", listing[0][0], 0, whole(b"").data)
    collector = collect(Lying([long, piece(b"a"), whole(b"a")], listing=listing))
    assert "cannot be a file here" in collector.notes[0]
    assert (tmp_path / "home/outputs/x").read_bytes() == b"a"


def test_no_file_is_written_through_a_link(collect, tmp_path):
    """A symbolic link from an earlier look is replaced by the folder that exists now."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "home" / "outputs").mkdir(parents=True)
    (tmp_path / "home" / "outputs" / "d").symlink_to(outside)
    end = Push("whole", "r", "work/outputs/d/x", 1, whole(b"a").data)
    collect(Lying([piece(b"a", file="work/outputs/d/x"), end], listing=[["work/outputs/d/x", "f", 1, 1, ""]]))
    assert list(outside.iterdir()) == []
    assert (tmp_path / "home/outputs/d/x").read_bytes() == b"a"


def test_links_that_leave_the_folder_are_told_and_others_made_anew_where_they_changed(collect, tmp_path):
    home = tmp_path / "home" / "outputs"
    home.mkdir(parents=True)
    (home / "l").symlink_to("old")
    rows = [["work/outputs/l", "l", 0, 1, "new"], ["work/outputs/out", "l", 0, 1, "../../x"]]
    collector = collect(Lying(listing=rows))
    assert os.readlink(home / "l") == "new"
    assert "outside the folder" in collector.notes[0]


def test_a_link_that_cannot_be_made_is_told_in_words(collect):
    collector = collect(Lying(listing=[["work/outputs/l", "l", 0, 1, "n" * 5000]]))
    assert collector.notes == [f"`l`, a link to `{'n' * 5000}`, cannot be made here: File name too long."]


@pytest.mark.parametrize("name", ["a:b", "C:\\x", "d\\e", "aux"])
def test_a_name_that_windows_has_not_is_told_as_that(collect, monkeypatch, name):
    for module in (far_listing, outputs):
        monkeypatch.setattr(module, "unstorable", functools.partial(unstorable, system="win32"))
    monkeypatch.setattr(os, "sep", "\\")
    collector = collect(Lying(listing=[[f"work/outputs/{name}", "f", 1, 1, ""]]))
    assert len(collector.notes) == 1
    assert collector.notes[0].startswith(f"`outputs/{name}` stays on its machine: ")
    assert "Windows" in collector.notes[0]
    assert [each.path for each in collector.left] == [f"outputs/{name}"]
    with pytest.raises(StorageError, match=r"cannot be fetched: .*Windows"):
        outputs._check(name, name)


def test_what_is_gone_on_the_host_goes_here_only_if_the_listing_is_whole(collect, tmp_path):
    home = tmp_path / "home" / "outputs"
    home.mkdir(parents=True)
    (home / "gone").write_text("1")
    collect(Lying(listing=[["work/outputs/../x", "f", 1, 1, ""]]), is_exact=True)
    assert (home / "gone").exists()
    collect(Lying(listing=[]), is_exact=True)
    assert not home.exists()


def test_paths_are_judged_by_their_parts():
    assert is_below("a/b c/.d")
    assert not any(is_below(each) for each in ("", "/a", "a/", "a//b", "./a", "a/..", "a\0"))
