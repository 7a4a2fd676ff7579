"""A manifest that was made elsewhere: no name that git or Holdfast trusts comes out of it, near or far."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import StorageError
from holdfast.farside.system.files import materialise
from holdfast.farside.system.refusal import Refused
from holdfast.farside.system.reserved_names import reserved_path
from holdfast.history.run_folder import RunFolders
from holdfast.snapshots.manifest import decode
from holdfast.snapshots.restore import restore_snapshot
from holdfast.snapshots.snapshot_differences import compare_snapshots
from holdfast.snapshots.store import ObjectStore
from holdfast.snapshots.take import take_snapshot

RESERVED = (
    ".git",
    ".git/config",
    "sub/deep/.git/hooks/post-checkout",
    ".GIT/config",
    ".Git",
    ".git./config",
    ".git . ./config",
    ".git::$INDEX_ALLOCATION/config",
    ".git:stream",
    "GIT~1/config",
    "sub\\.git\\config",
    ".g\u200cit/config",
    "\ufeff.git/config",
    "é/.g\u202eit",
    ".holdfast",
    ".holdfast/project.json",
    "sub/.holdfast/runs/x",
    ".HoldFast/index.sqlite",
    "HOLDFA~1/project.json",
    "HO12AB~1/project.json",
    ".holdfa\u017ft/project.json",
    ".holdfa\ufb06/project.json",
)
HARMLESS = (
    *(".gitignore", ".gitattributes", ".github/workflows/x", ".gitmodules", "a.git/config", "git", "holdfast/x"),
    *("x~1", "git~", ".holdfast-old/x", "épée/.gitignore", ". git", "a .git.d/x"),
)


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return ObjectStore(tmp_path / "objects")


def _manifest(store: ObjectStore, path: str, kind: str = "f") -> str:
    content = "elsewhere" if kind == "l" else store.put_bytes(b"[core]\n\tfsmonitor = evil\n")
    rows: list[list[Any]] = [["a.py", "f", store.put_bytes(b"1"), 1], [path, kind, content, 0 if kind == "l" else 25]]
    rows.sort(key=lambda row: str(row[0]))
    return store.put_bytes(json.dumps({"format": 1, "files": rows}).encode())


@pytest.mark.parametrize("kind", ["f", "x", "l"])
@pytest.mark.parametrize("path", RESERVED)
def test_a_restore_writes_nothing_of_it(store: ObjectStore, tmp_path: Path, path: str, kind: str) -> None:
    with pytest.raises(StorageError, match="git or Holdfast keeps"):
        restore_snapshot(store, _manifest(store, path, kind), tmp_path / "there", overwrite=True)
    assert not (tmp_path / "there").exists()


@pytest.mark.parametrize("path", RESERVED)
def test_a_host_writes_nothing_of_it(store: ObjectStore, tmp_path: Path, path: str) -> None:
    (tmp_path / "work").mkdir()
    with pytest.raises(Refused, match="git or Holdfast keeps"):
        materialise(_manifest(store, path), [str(store.root)], str(tmp_path / "work"))
    assert os.listdir(tmp_path / "work") == []


def test_names_that_only_look_like_it_are_restored(store: ObjectStore, tmp_path: Path) -> None:
    for number, path in enumerate(HARMLESS):
        assert reserved_path([path]) is None
        there, digest = tmp_path / str(number), _manifest(store, path)
        restore_snapshot(store, digest, there)
        assert (there / path).read_bytes().startswith(b"[core]")
        (tmp_path / f"{number}-far").mkdir()
        materialise(digest, [str(store.root)], str(tmp_path / f"{number}-far"))


def test_such_a_manifest_is_not_compared(store: ObjectStore) -> None:
    with pytest.raises(StorageError):
        compare_snapshots(store, _manifest(store, ".git/config"), _manifest(store, "b"))


@pytest.mark.parametrize("is_repository", [True, False])
def test_a_snapshot_that_is_taken_here_never_has_them(tmp_path: Path, is_repository: bool) -> None:
    project = tmp_path / "project"
    project.mkdir()
    if is_repository:
        subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    (project / ".amlignore").write_text("!.git\n!.git/**\n!.holdfast\n!**/.holdfast/**\n")
    for path in ("train.py", *HARMLESS, *RESERVED):
        place = project / path
        if place.parent.is_file() or place.is_dir() or ("git/" not in path and path.endswith(".git")):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"# {path}\n")
    found = take_snapshot(project, tmp_path / "state")
    paths = {each.path for each in decode(ObjectStore(tmp_path / "state" / "objects").read(found.digest))}
    assert {"train.py", *HARMLESS} <= paths
    assert reserved_path(sorted(paths)) is None
    assert all("keeps the name for itself" in each.message for each in found.warnings if reserved_path([each.path]))
    assert ".GIT/config" in {each.path for each in found.warnings}


def test_a_download_of_all_that_a_run_wrote_brings_none(recorded, command, tmp_path: Path) -> None:
    bad = ("outputs/.git/config", "outputs/sub/.HOLDFAST/project.json")
    run = recorded.add(files=dict.fromkeys((*bad, "outputs/model.pkl"), "evil"))
    code, _, errors = command("history", "download", "-r", run, "-d", str(tmp_path / "there"))
    assert code != 0
    assert all(f"`{path}` was not copied" in errors for path in bad)
    found = [each.name for each in (tmp_path / "there").rglob("*") if each.is_file()]
    assert found == ["model.pkl"]


def test_a_link_is_made_last_and_nothing_is_written_through_it(store: ObjectStore, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    rows = [
        ["data", "l", str(outside), 0],
        ["data2/file", "f", store.put_bytes(b"1"), 1],
    ]
    digest = store.put_bytes(json.dumps({"format": 1, "files": rows}).encode())
    there = tmp_path / "there"
    there.mkdir()
    (there / "data2").symlink_to(outside)
    restore_snapshot(store, digest, there, overwrite=True)
    assert (there / "data").readlink() == outside
    assert (there / "data2/file").read_bytes() == b"1"
    assert os.listdir(outside) == []


def test_a_pipe_where_a_file_comes_is_not_waited_for(store: ObjectStore, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    os.mkfifo(there / "a.py")
    restore_snapshot(store, _manifest(store, "b"), there, overwrite=True)
    assert (there / "a.py").read_bytes() == b"1"


def test_the_command_refuses_it(recorded, command, tmp_path: Path) -> None:
    run = recorded.add()
    store = ObjectStore(tmp_path / ".holdfast" / "objects")
    digest = _manifest(store, "sub/.git/config")
    record = RunFolders(tmp_path / ".holdfast").path(run) / "submission.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "snapshot": digest}))
    code, _, errors = command("project", "restore", "-r", run)
    assert code != 0
    assert "`sub/.git/config` is a name that git or Holdfast keeps for itself" in errors
    assert not (tmp_path / run).exists()
