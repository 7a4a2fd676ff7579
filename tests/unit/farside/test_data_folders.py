"""Data is kept once for all runs, read-only, and goes only when nothing reads it."""

import hashlib
import json
import os
from pathlib import Path

import pytest

from holdfast.farside.operations import data_folders
from holdfast.farside.operations.data_folders import keep, listed, look, remove
from holdfast.farside.run.data_links import link_data, require_data
from holdfast.farside.system.children import CannotStart
from holdfast.farside.system.kept_data import kept
from holdfast.farside.system.layout import Home, object_path
from holdfast.farside.system.refusal import Refused


@pytest.fixture
def home(tmp_path):
    found = Home(str(tmp_path / "home"))
    found.make()
    return found


def arrived(home: Home, **files: str) -> str:
    """The digest of a manifest that has come with its contents."""
    rows = [
        [name, "x" if name == "run" else "f", stored(home, text), len(text)] for name, text in sorted(files.items())
    ]
    return stored(home, json.dumps({"format": 1, "files": [*rows, ["z", "l", rows[0][0], 0]]}))


def stored(home: Home, text: str) -> str:
    digest = hashlib.sha256(text.encode()).hexdigest()
    path = Path(object_path(home.objects(), digest))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return digest


def test_what_has_come_is_kept_without_a_copy_and_nothing_writes_there(home):
    digest = arrived(home, a="first", run="#!/bin/sh")
    assert keep(home, {"digest": digest, "name": "tiny"}) == {"files": 3, "size": 14}
    tree = Path(home.data_folder(digest)) / "tree"
    assert (tree / "z").read_text() == "first"
    assert [oct(path.stat().st_mode & 0o777) for path in (tree, tree / "a", tree / "run")] == [
        "0o555",
        "0o444",
        "0o555",
    ]
    assert (tree / "a").stat().st_nlink == 2
    keep(home, {"digest": digest, "name": "other"})
    assert [(row["names"], row["size"]) for row in listed(home)] == [(["tiny", "other"], 14)]


def test_what_has_not_come_whole_is_not_kept(home, monkeypatch):
    digest = arrived(home, a="first")
    os.unlink(object_path(home.objects(), hashlib.sha256(b"first").hexdigest()))
    with pytest.raises(Refused) as refused:
        keep(home, {"digest": digest, "name": "tiny"})
    assert refused.value.kind == "incomplete"
    stored(home, "first")

    def full(*arguments):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(data_folders, "write_about", full)
        with pytest.raises(OSError, match="No space"):
            keep(home, {"digest": digest, "name": "tiny"})
    assert os.listdir(home.data()) == []
    with pytest.raises(Refused) as lacking:
        require_data(home, [{"digest": digest}])
    assert lacking.value.kind == "data"
    keep(home, {"digest": digest, "name": "tiny"})
    require_data(home, [{"digest": digest}])


def test_data_that_a_run_reads_stays(home, monkeypatch):
    digest = arrived(home, a="first")
    keep(home, {"digest": digest, "name": "tiny"})
    folder = Path(home.run("p1", "a_1"))
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(json.dumps({"data": [{"digest": digest}]}))
    monkeypatch.setattr(data_folders, "_lives", lambda folder: True)
    with pytest.raises(Refused, match="a_1"):
        remove(home, {"digest": digest})
    monkeypatch.setattr(data_folders, "_lives", lambda folder: False)
    assert remove(home, {"digest": digest}) == {"removed": 5}
    assert (kept(home), remove(home, {"digest": digest})) == ([], {"removed": 0})


def test_a_name_from_the_wire_never_leads_out_of_the_folder(home):
    for digest in ("../runs", "", "a" * 63, None):
        with pytest.raises(Refused):
            remove(home, {"digest": digest})


def test_data_is_linked_into_a_run_and_never_through_a_link(home, tmp_path):
    source, work = tmp_path / "source", tmp_path / "work"
    source.mkdir()
    (work / "data").mkdir(parents=True)
    link_data(home, [{"source": str(source), "target": "data/deep/tiny"}], str(work), False)
    assert os.readlink(work / "data/deep/tiny") == str(source)
    link_data(home, [{"source": str(source), "target": "data/mounted"}], str(work), True)
    assert (work / "data/mounted").is_dir() and not (work / "data/mounted").is_symlink()
    (work / "out").symlink_to(tmp_path)
    for wrong in ({"source": str(source), "target": "out/x"}, {"source": "/nowhere", "target": "data/x"}):
        with pytest.raises(CannotStart):
            link_data(home, [wrong], str(work), False)
    assert not (tmp_path / "x").exists()


def test_a_look_at_data_of_the_machine_notices_a_change_and_ends_in_a_large_folder(home, tmp_path, monkeypatch):
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name)
    first = look(home, {"path": str(tmp_path)})
    assert first["is_whole"] and first["files"] >= 3
    os.utime(tmp_path / "b", ns=(1, 1))
    assert look(home, {"path": str(tmp_path)})["digest"] != first["digest"]
    monkeypatch.setattr(data_folders, "_MOST_SEEN", 2)
    assert look(home, {"path": str(tmp_path)})["is_whole"] is False
    with pytest.raises(Refused):
        look(home, {"path": "/dev/null"})
