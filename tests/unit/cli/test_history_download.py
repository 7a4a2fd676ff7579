"""`history download`: what it accepts, and what happens to the other files when one fails."""

from __future__ import annotations

import contextlib
import json
import shlex

import pytest

from holdfast.errors import StorageError
from holdfast.snapshots.ignore import explain, list_files
from holdfast.snapshots.manifest import ManifestEntry, encode_rows
from holdfast.snapshots.restore import restore_snapshot
from holdfast.snapshots.store import ObjectStore

LONG = "n" * 250
FILES = {
    "outputs/a.txt": "a",
    "outputs/deep/b.pkl": "b",
    "outputs/deep/er/c.pkl": "c",
    "uploads/d.pkl": "d",
    "driver_log": "log",
}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], ["outputs/a.txt", "outputs/deep/b.pkl", "outputs/deep/er/c.pkl", "uploads/d.pkl"]),
        (["outputs/deep/"], ["outputs/deep/b.pkl", "outputs/deep/er/c.pkl"]),
        (["deep"], ["outputs/deep/b.pkl", "outputs/deep/er/c.pkl"]),
        (["*.pkl"], ["outputs/deep/b.pkl", "outputs/deep/er/c.pkl", "uploads/d.pkl"]),
        (["outputs/deep/*.pkl"], ["outputs/deep/b.pkl"]),
        (["outputs/deep/**"], ["outputs/deep/b.pkl", "outputs/deep/er/c.pkl"]),
        (["uploads", "a.txt", "outputs/a.txt", "driver_log"], ["uploads/d.pkl", "outputs/a.txt", "driver_log"]),
    ],
)
def test_files_folders_and_globs_may_be_asked_for(recorded, command, words, expected):
    recorded.add(files=FILES)
    options = [part for word in words for part in ("--artifact", word)]
    done = command("history", "download", "-r", "last", "-d", "got", *options)
    assert done.code == 0
    assert done.out.splitlines() == [f"got/{path}" for path in expected]
    assert all((recorded.root / "got" / path).read_text() == FILES[path] for path in expected)


@pytest.mark.parametrize("word", ["outputs/nope/", "*.zip", "", "../x", "!*", "#x"])
def test_what_takes_in_nothing_is_an_unknown_name(recorded, command, word):
    run_id = recorded.add(files=FILES)
    done = command("history", "download", "-r", run_id, "-d", "got", "--artifact", word)
    assert done.code == 240
    assert done.err.startswith(f"error: There is no artifact `{word}` in run {run_id}.\n")


BESIDE = {"above/1/logs/a.txt": "a", "above/2/b.txt": "b", "files/above/1/c.txt": "c"}


@pytest.mark.parametrize(
    ("words", "directory", "expected"),
    [
        ((), "got", ["got/above/1/c.txt", "got/above/1/logs/a.txt", "got/above/2/b.txt"]),
        (("../logs/a.txt", "../../b.txt"), "got", ["got/above/1/logs/a.txt", "got/above/2/b.txt"]),
        ((".",), ".", ["above/1/c.txt", "above/1/logs/a.txt", "above/2/b.txt"]),
        (("../logs",), ".", ["../logs/a.txt"]),
        (("../logs", "."), ".", ["../logs/a.txt", "above/1/c.txt", "above/2/b.txt"]),
    ],
)
def test_what_lies_beside_the_project_leaves_the_folder_only_by_its_name_and_into_the_project(
    recorded, command, words, directory, expected
):
    recorded.add(files=BESIDE)
    done = command("history", "download", "last", *words, "-d", directory, "--overwrite")
    assert sorted(done.out.splitlines()) == expected
    assert all((recorded.root / path).is_file() for path in expected)


def test_two_files_that_would_be_one_are_refused(recorded, command):
    recorded.add(files={"above/1/x": "beside", "files/above/1/x": "inside"})
    done = command("history", "download", "last", ".", "-d", "got")
    assert (done.code, "got/above/1/x" in done.err) == (240, True)
    assert not (recorded.root / "got").exists()


@pytest.fixture
def reachable(monkeypatch):
    """The run's machine has every file, with its path in it."""

    @contextlib.contextmanager
    def fetching(project, run, context):
        yield lambda path, destination: destination.write_text(path)

    monkeypatch.setattr("holdfast.workbench.following.outputs.fetching", fetching)


def left_there(*files, count=None):
    left = {"files": files, "count": count or len(files), "size": sum(size for _, size in files)}
    return {"collected.json": json.dumps({"left": left})}


def test_a_run_and_paths_in_the_project_may_be_named_without_options(recorded, command):
    run_id = recorded.add(files={**FILES, "files/ckpt/e.pt": "e", "files/f.txt": "f"})
    for words in (
        (run_id, "ckpt", "f.txt"),
        ("ckpt/", "./f.txt", "-r", "last"),
        ("last", "--artifact", "ckpt", "f.txt"),
    ):
        done = command("history", "download", *words, "-d", "got", "--overwrite")
        assert sorted(done.out.splitlines()) == ["got/ckpt/e.pt", "got/f.txt"], words
    assert command("history", "download", run_id).out.splitlines()[0] == f"{run_id}/outputs/a.txt"
    assert (recorded.root / run_id / "f.txt").read_text() == "f"
    assert command("history", "download").code == 240


def test_a_dot_is_everything_also_what_only_the_machine_has(recorded, command, reachable):
    recorded.add(files={**FILES, "files/f.txt": "f", **left_there(["big.bin", 3000], ["-odd", 5])})
    done = command("history", "download", "last", ".", "-d", "got")
    assert {each.removeprefix("got/") for each in done.out.splitlines()} == {*FILES, "f.txt", "big.bin", "-odd"} - {
        "driver_log"
    }
    assert (recorded.root / "got/big.bin").read_text() == "big.bin"
    recorded.add()
    assert command("history", "download", "last", ".", "-d", "none").code == 0, "a run that wrote nothing"


def test_what_only_the_machine_has_is_named_with_the_command_that_fetches_it(recorded, command, reachable):
    run_id = recorded.add(files={**FILES, **left_there(["-odd name", 3000], ["x.bin", 4000])})
    done = command("history", "download", "last", "-d", "got")
    assert not (recorded.root / "got/x.bin").exists()
    fetch = f"holdfast history download {run_id} './-odd name' -d DIR"
    for told in (done.err, command("history", "info", "-r", "last", "-o", "table").out):
        assert "x.bin (4.0 kB)" in told
        assert fetch in told
    assert command(*shlex.split(fetch)[1:]).out == "DIR/-odd name\n"


def test_what_is_in_the_way_is_listed_before_anything_is_copied(recorded, command):
    names = [f"{number:02}" for number in range(12)]
    recorded.add(files={f"files/{name}": "new" for name in names})
    for name in names[1:]:
        (recorded.root / name).write_text("mine")
    done = command("history", "download", "last", "-d", ".")
    assert (done.code, done.out) == (240, "")
    assert all(f"`{name}`" in done.err for name in names[1:11])
    assert "`11`" not in done.err and "and 1 more" in done.err and "--overwrite" in done.err
    assert not (recorded.root / "00").exists()
    assert (recorded.root / "05").read_text() == "mine"


def test_a_folder_that_stayed_on_the_host_is_fetched(recorded, command, reachable):
    recorded.add(files=FILES, others=["logs/x.txt", "logs/y.txt", "z.txt"])
    done = command("history", "download", "-r", "last", "-d", "got", "--artifact", "logs/", "--artifact", "a.txt")
    assert done.out.splitlines() == ["got/logs/x.txt", "got/logs/y.txt", "got/outputs/a.txt"]
    assert (recorded.root / "got/logs/y.txt").read_text() == "logs/y.txt"


def test_a_name_as_long_as_names_can_be_is_copied(recorded, command):
    recorded.add(files={f"outputs/{LONG}": "x"})
    assert command("history", "download", "-r", "last", "-d", "got").code == 0
    assert [each.name for each in (recorded.root / "got" / "outputs").iterdir()] == [LONG]


def test_files_that_fail_do_not_stop_the_others_and_are_listed_at_the_end(recorded, command):
    recorded.add(files={"outputs/a/x": "1", "outputs/b/y": "2", "outputs/c/z": "3"})
    (recorded.root / "got" / "outputs").mkdir(parents=True)
    for name in ("a", "b"):
        (recorded.root / "got" / "outputs" / name).write_text("a file where a folder has to be")
    done = command("history", "download", "-r", "last", "-d", "got")
    assert (done.code, done.out) == (244, "got/outputs/c/z\n")
    assert done.err.startswith("1 file, 1 B; not all:\nerror: 2 of 3 files were not copied:\n  Could not copy `x`: ")
    assert done.err.count("Could not copy") == 2


def test_a_folder_is_asked_for_and_not_a_file(recorded, command):
    recorded.add(files=FILES)
    (recorded.root / "got").write_text("")
    done = command("history", "download", "-r", "last", "-d", "got")
    assert done.code == 240
    assert "is a file" in done.err


def test_a_name_with_the_ending_of_a_link_gets_it_once(recorded, command):
    recorded.add(files=FILES)
    assert command("history", "promote", "-r", "last", "-ap", "a.txt", "-n", "best.link").out == "assets/best.link\n"


def test_what_restore_and_diagnostics_leave_behind_does_not_ship(recorded, command):
    run_id = recorded.add()
    other = "data_1521077190506"
    for name in (run_id, other):
        (recorded.root / name).mkdir()
        (recorded.root / name / "train.py").write_text("")
        (recorded.root / f"{name}.zip").write_text("")
    assert sorted(list_files(recorded.root).paths) == [f"{other}.zip", f"{other}/train.py"]
    assert str(explain(recorded.root, f"{run_id}/train.py")) == f"`/{run_id}/` (built in)"
    assert str(explain(recorded.root, f"{run_id}.zip")) == f"`/{run_id}.zip` (built in)"
    (recorded.root / ".amlignore").write_text(f"!/{run_id}/\n")
    assert f"{run_id}/train.py" in list_files(recorded.root).paths


@pytest.fixture
def restorable(recorded):
    """A run whose code is `train.py`, from the project's folder."""
    run_id = recorded.add()
    store = ObjectStore(recorded.root / ".holdfast" / "objects")
    entry = ManifestEntry("train.py", "f", store.put_bytes(b"old\n"), 4)
    snapshot = store.put_bytes(encode_rows((entry,)))
    file = recorded.folders.path(run_id) / "submission.json"
    file.write_text(file.read_text().replace("a" * 64, snapshot))
    return recorded.root


def test_a_restore_goes_to_a_new_folder_an_empty_one_or_the_projects_own(restorable, command):
    other = restorable / "mine"
    other.mkdir()
    assert command("project", "restore", "-r", "last", "--path", "mine").code == 0
    (other / "train.py").unlink()
    (other / "notes").write_text("")
    refused = command("project", "restore", "-r", "last", "--path", "mine")
    assert refused.code == 242
    assert "`mine`" in refused.err and "--path" in refused.err
    assert not (other / "train.py").exists()
    assert command("project", "restore", "-r", "last", "--path", "mine", "--overwrite").code == 0
    assert (other / "train.py").read_text() == "old\n"
    here = command("project", "restore", "-r", "last", "--path", ".")
    assert here.code == 0, here.err
    assert (restorable / "train.py").read_text() == "old\n"


def test_a_copy_that_runs_will_take_along_is_told_and_no_other(restorable, command):
    def restored(*words):
        return command("project", "restore", "-r", "last", *words).err

    said = "  It is in the project, so runs take it along. To leave it out: `/as\\ it/was/` in .amlignore\n"
    assert restored("--path", "as it/was").endswith(said)
    (restorable / ".amlignore").write_text("/as\\ it/was/\n")
    for words in (["--path", "as it/was", "--overwrite"], [], ["--path", "../as-it-was"], ["--path", "."]):
        assert "take it along" not in restored(*words), words


def test_a_restore_onto_a_file_says_that_it_is_one(recorded, tmp_path):
    store = ObjectStore(tmp_path / "objects")
    snapshot = store.put_bytes(encode_rows(()))
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="it is a file, not a folder") as caught:
        restore_snapshot(store, snapshot, tmp_path / "file")
    assert "writable" not in caught.value.hint
