"""A run that goes on from an earlier one begins with its files, and nothing that it does reaches them."""

import json
import os
from pathlib import Path

import pytest

from holdfast.farside.run import laid_files
from holdfast.farside.run.laid_files import lay, what_it_left
from holdfast.farside.system import file_copies
from holdfast.farside.system.file_copies import Copier
from holdfast.farside.system.journal import JournalWriter
from holdfast.farside.system.laid_record import read_laid
from holdfast.farside.system.layout import JOURNAL, Home
from holdfast.farside.system.own_files import READY, moment_after, written
from holdfast.farside.system.refusal import Refused
from holdfast.farside.system.working_tree import WorkingTree

EARLIER = {"run": "a_1", "project": "p1"}


@pytest.fixture
def home(tmp_path):
    return Home(str(tmp_path / "home"))


def begun(home: Home, run: str) -> Path:
    """A run's folder at the moment when its command begins: what lies there already is the snapshot's."""
    folder = Path(home.run("p1", run))
    work = folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    (folder / "lock").touch()
    JournalWriter(str(folder / JOURNAL)).begin(format=1, run=run, project="p1", generation=run)
    (folder / "bound.json").touch()
    last = max((os.lstat(path).st_ctime_ns for path in work.rglob("*")), default=0)
    JournalWriter(str(folder / JOURNAL)).append(READY, since=moment_after(last, str(folder / "bound.json")))
    return work


def end(work: Path) -> None:
    JournalWriter(str(work.parent / JOURNAL)).append("ended", reason="completed", code=0, signal=None, detail="", by="")


@pytest.fixture
def earlier(home):
    """The working folder of one that has written checkpoints and ended."""
    given = Path(home.run("p1", "a_1")) / "work" / "train.py"
    given.parent.mkdir(parents=True)
    given.write_text("given")
    work = begun(home, "a_1")
    (work / "ckpt").mkdir()
    (work / "outputs").mkdir()
    (work / "ckpt" / "last.pt").write_text("first")
    (work / "outputs" / "model").write_text("m")
    os.utime(work / "ckpt" / "last.pt", ns=(1, 10**18))
    end(work)
    return work


@pytest.fixture
def later(home):
    work = Path(home.run("p1", "b_2")) / "work"
    work.mkdir(parents=True)
    return work


def laid(home, later, **more):
    return lay(home, {**EARLIER, **more}, str(later.parent), lambda: None)


def names(work):
    return sorted(str(path.relative_to(work)) for path in work.rglob("*") if not path.is_dir() or path.is_symlink())


def test_what_it_wrote_is_there_with_its_times_and_the_earlier_runs_files_are_its_own(home, earlier, later):
    laid(home, later)
    assert names(later) == ["ckpt/last.pt", "outputs/model"]
    assert (later / "ckpt/last.pt").stat().st_mtime_ns == 10**18
    with (later / "ckpt/last.pt").open("r+") as target:  # in place, as a script may
        target.write("other")
    assert (earlier / "ckpt/last.pt").read_text() == "first"


@pytest.mark.parametrize("lacks", [[], ["copy_file_range"], ["copy_file_range", "sendfile"]])
def test_whatever_the_kernel_can_do_a_copy_is_whole(tmp_path, monkeypatch, lacks):
    for name, step in (("copy_file_range", "_by_range"), ("sendfile", "_by_sendfile")):
        if name in lacks:
            monkeypatch.setattr(file_copies, step, cannot)
    data = os.urandom(3_000_001)
    (tmp_path / "a").write_bytes(data)
    copier = Copier()
    for name in ("b", "c"):
        with (tmp_path / "a").open("rb") as reader, (tmp_path / name).open("wb") as writer:
            copier.copy(reader.fileno(), writer.fileno())
        assert (tmp_path / name).read_bytes() == data


def cannot(*arguments):
    raise OSError(22, "Invalid argument")


def test_laid_files_are_its_outputs_only_when_it_changed_them(home, earlier, later):
    laid(home, later)
    begun(home, "b_2")
    since = int(json.loads((later.parent / JOURNAL).read_text().splitlines()[-1])["since"])
    assert written(WorkingTree(str(later.parent)), since, read_laid(str(later.parent))) == []
    (later / "outputs/model").write_text("n")
    (later / "ckpt/last.pt").write_text("next")
    assert written(WorkingTree(str(later.parent)), since, read_laid(str(later.parent))) == [
        ["outputs/model", 1],
        ["ckpt/last.pt", 4],
    ]


def test_a_third_run_gets_what_the_second_one_began_with_too(home, earlier, later):
    laid(home, later)
    begun(home, "b_2")
    (later / "ckpt/last.pt").write_text("second")
    (later / "outputs/model").unlink()
    (later / "samples").write_text("s")
    end(later)
    third = Path(home.run("p1", "c_3")) / "work"
    third.mkdir(parents=True)
    lay(home, {**EARLIER, "run": "b_2"}, str(third.parent), lambda: None)
    assert names(third) == ["ckpt/last.pt", "samples"]
    assert (third / "ckpt/last.pt").read_text() == "second"


def test_what_it_wrote_takes_the_place_of_the_projects_and_the_note_says_so_once(home, earlier, later, tmp_path):
    away = tmp_path / "away"
    away.mkdir()
    (away / "last.pt").write_text("not ours")
    (later / "ckpt").symlink_to(away)
    (later / "outputs").mkdir()
    (later / "outputs" / "model").write_text("m")  # the same content: nothing to tell
    found = laid(home, later)
    assert found.notes == ["Kept as a_1 left it, not as in the project: `ckpt`."]
    assert (later / "ckpt/last.pt").read_text() == "first" and not (later / "ckpt").is_symlink()
    assert (away / "last.pt").read_text() == "not ours"


def test_links_lead_to_the_new_copies_or_are_left_out(home, later):
    work = begun(home, "a_1")
    (work / "x").write_text("x")
    (work / "near").symlink_to("x")
    (work / "whole").symlink_to(work / "x")
    (work / "out").symlink_to("../../b_2/work")
    (work / "system").symlink_to("/etc/hostname")
    end(work)
    found = laid(home, later)
    links = {name: os.readlink(later / name) for name in names(later) if (later / name).is_symlink()}
    assert links == {"near": "x", "whole": str(later / "x"), "system": "/etc/hostname"}
    assert "`out`" in found.notes[0]


def test_one_path_brings_that_file_or_folder(home, earlier, later):
    (earlier / "ckpt.txt").write_text("another name")
    laid(home, later, path="ckpt")
    assert names(later) == ["ckpt/last.pt"]


@pytest.mark.parametrize(
    ("wish", "kind"), [({"path": "ckp"}, "nothing"), ({"run": "z_9"}, "not-found"), ({"run": "b_2"}, "living")]
)
def test_what_cannot_be_gone_on_from_is_refused(home, earlier, monkeypatch, wish, kind):
    begun(home, "b_2")
    monkeypatch.setattr(laid_files, "adjudicate", lambda folder: None)  # there is no guardian that could be alive
    with pytest.raises(Refused) as refused:
        what_it_left(home, {**EARLIER, **wish})
    assert refused.value.kind == kind


def test_a_full_disk_is_told_of_with_the_file_that_did_not_fit(home, earlier, later, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Copier, "copy", full)
    with pytest.raises(OSError, match="No space") as error:
        laid(home, later)
    assert error.value.filename == str(later / "ckpt/last.pt")


def test_what_it_wrote_beside_the_project_lies_beside_the_new_one(home, later):
    place = "above/above/iris"
    folder = Path(home.run("p1", "a_1"))
    tree = WorkingTree(str(folder), place)
    begun(home, "a_1")
    for run in ("a_1", "b_2"):
        (Path(home.run("p1", run)) / "plan.json").write_text(json.dumps({"place": place}))
    made = Path(tree.project) / ".." / "logs"
    Path(tree.project).mkdir(parents=True)
    made.mkdir()
    (made / "x").write_text("x")
    (Path(tree.project) / "log").symlink_to("../logs/x")
    end(folder / "work")
    assert laid(home, later).notes == []
    there = later / place
    assert (there / "log").read_text() == "x" and (there.parent / "logs" / "x").is_file()
