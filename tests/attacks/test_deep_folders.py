"""Folders within folders, thousands of them, as a script can make them: a run with such ends, its files are listed, and
`clean` removes it. No list of paths and no descriptor per level is needed for it."""

from __future__ import annotations

import io
import os
import resource
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.agent import Agent
from holdfast.farside.operations import sizes, storage, sweep
from holdfast.farside.run.kept_files import touch_tree
from holdfast.farside.system import frames
from holdfast.farside.system.files import remove_below, remove_path, remove_tree, size_freed
from holdfast.farside.system.layout import Home
from holdfast.farside.system.own_files import written
from holdfast.farside.system.working_tree import WorkingTree
from holdfast.workbench.following.transfer import make_way

LEVELS = 2200
"""Two bytes of a path each: more than the system takes in one (4,096), and than Python may call into itself (1,000)."""
DIG = """
import os
with open("outputs/model.txt", "w") as target:
    target.write("mine")
def dig(top):
    folder = os.open(top, os.O_RDONLY)
    for _ in range(2200):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(os.open("bottom", os.O_WRONLY | os.O_CREAT, dir_fd=folder))
    os.close(folder)
"""


def dig(top: Path, levels: int = LEVELS, name: str = "d") -> None:
    top.mkdir(parents=True, exist_ok=True)
    folder = os.open(top, os.O_RDONLY)
    for level in range(levels):
        if level % 50 < 3:
            os.close(os.open("x", os.O_WRONLY | os.O_CREAT, dir_fd=folder))
            os.mkdir("a", dir_fd=folder)
        os.mkdir(name, dir_fd=folder)
        below = os.open(name, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path) -> Iterator[None]:
    """Pytest itself cannot remove such folders."""
    yield
    subprocess.run(["rm", "-rf", "--", str(tmp_path)], check=True)


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (96, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture
def private(tmp_path: Path) -> Path:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "key").write_text("secret")
    return tmp_path / "private"


@pytest.mark.parametrize("name", ["d", "d" * 200])
def test_a_tree_deeper_than_paths_and_descriptors_is_removed_and_no_link_in_it_followed(
    tmp_path: Path, few_descriptors: None, private: Path, name: str
) -> None:
    dig(tmp_path / "run", name=name)
    for place in ("run", f"run/{name}", f"run/{name}/{name}"):
        (tmp_path / place / "link").symlink_to(private)
        (tmp_path / place / "a").chmod(0)

    remove_tree(str(tmp_path / "run"))

    assert os.listdir(tmp_path) == ["private"]
    assert (private / "key").read_text() == "secret"


def test_one_that_lies_below_another_folder_is_removed_too(tmp_path: Path, few_descriptors: None) -> None:
    dig(tmp_path / "run" / "work" / "deep")
    remove_below(str(tmp_path / "run"), "work/deep")
    assert os.listdir(tmp_path / "run" / "work") == []


def test_what_is_being_removed_keeps_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = tmp_path / ".removing-r1-1700000000000"
    left.mkdir()
    seen: list[str] = []
    monkeypatch.setattr("holdfast.farside.system.files.remove_at", lambda _, name: seen.append(name))
    remove_path(str(left))
    assert seen == os.listdir(tmp_path) == [left.name]


def test_a_sweep_removes_one_that_an_earlier_clean_could_not(home: Home, few_descriptors: None) -> None:
    left = Path(home.runs(), "p1", ".removing-r1-1700000000000")
    dig(left / "work")
    os.utime(left, (time.time() - 90_000,) * 2)

    removed = sweep.sweep(home, {})["removed"]

    assert [row[:2] for row in removed] == [["leftovers", 1]]
    assert not left.exists()


def test_its_files_are_listed_as_deep_as_files_can_have_a_name_at_home_and_the_rest_is_named(
    home: Home, few_descriptors: None
) -> None:
    folder = Path(home.run("p", "r"))
    dig(folder / "work" / "outputs")
    dig(folder / "uploads")
    about = {"project": "p", "run": "r", "roots": ["work/outputs", "work", "uploads"]}

    files, problems = storage.list_files(home, about, lambda: None)

    found = {row[0] for row in files}
    assert {"work/outputs/d/d/x", "uploads/d/d/x", "uploads/" + "d/" * 150 + "x"} <= found
    assert max(each.count("/") for each in found) < 250
    assert problems and all("folders deep" in each for each in problems)
    assert ["outputs/d/x", 0] in written(WorkingTree(str(folder)), 1 << 62, {})
    assert size_freed(str(folder)) == 0


def test_it_is_counted_touched_and_purged(home: Home, few_descriptors: None) -> None:
    dig(Path(home.run("p", "r")) / "work")
    touch_tree(home.run("p", "r"))
    assert dict(sizes.sizes(home)["stored"])["runs"] == 0
    sizes.purge(home)
    assert not os.path.exists(home.path)


def test_at_home_a_file_takes_the_place_of_a_deep_folder(tmp_path: Path, few_descriptors: None) -> None:
    dig(tmp_path / "outputs" / "name")
    make_way(tmp_path / "outputs" / "name", tmp_path)
    assert os.listdir(tmp_path / "outputs") == []


def test_a_request_that_meets_something_deeper_than_the_interpreter_goes_is_refused(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(*given: Any) -> Any:
        return endless(*given)

    monkeypatch.setattr("holdfast.farside.operations.table.run", endless)
    output = io.BytesIO()
    Agent(home, output)._handle({"id": 1, "op": "sweep"}, b"")
    answer = frames.decode(io.BytesIO(output.getvalue()).read)
    assert answer is not None
    assert answer[0]["error"]["kind"] == "refused"


def test_a_run_that_makes_such_folders_ends_and_is_cleaned(bench: Any, request: pytest.FixtureRequest) -> None:
    bench.write("t.py", DIG + "dig('outputs')\ndig('.')\n")
    request.addfinalizer(lambda: subprocess.run(["rm", "-rf", "--", str(bench.home / "runs")], check=True))

    done = bench.submit("t.py")

    assert done.code == 0, done.err
    record = bench.record()
    assert record["status"] == "Completed"
    assert "outputs/model.txt" in str(record["outputs"])
    assert "folders deep" in done.err
    far = bench.far(record["run_id"])
    bench.until_left()
    cleaned = bench.run("experiment", "clean", "--all")
    assert cleaned.code == 0, cleaned.err
    assert os.listdir(far.parent) == []
