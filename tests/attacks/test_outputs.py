"""Outputs with links out of the run: what comes home is the run's own files, and what is left out is named."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.operations import storage
from holdfast.farside.system.layout import Home
from holdfast.farside.system.refusal import Refused
from holdfast.hosts.connection import Push
from holdfast.workbench.following.mirror import Mirror
from holdfast.workbench.following.outputs import Collector
from holdfast.workbench.following.transfer import FarRun
from integration.docker.benches import ContainerBench
from unit.workbench.test_receiving import Lying

SECRET = b"-----BEGIN OPENSSH PRIVATE KEY-----\n"
LINKS = """
import os
os.chdir("outputs")
with open("model.txt", "w") as target:
    target.write("mine")
os.symlink("model.txt", "latest")
os.symlink(PRIVATE, "absolute")
os.symlink(os.path.dirname(PRIVATE), "folder")
os.symlink(os.path.relpath(PRIVATE, os.path.realpath(".")), "relative")
os.symlink("/proc/self/cwd/model.txt", "proc")
os.symlink("../t.py", "sibling")
deep = "a/b/c/d/e/f/g/h"
os.makedirs(deep)
os.symlink("/".join([".."] * 8), deep + "/top")
os.symlink(deep + "/top/" + "/".join([".."] * 6) + "/x", "hidden")
os.symlink("hidden", "chained")
os.symlink("absolute", "second")
"""
LEFT_OUT = ("absolute", "chained", "folder", "hidden", "proc", "relative", "sibling")


def private(folder: Path) -> Path:
    """A key of the account, as scripts of its runs could name it."""
    path = folder / "keys" / "id_ed25519"
    path.parent.mkdir(parents=True)
    path.write_bytes(SECRET)
    return path


def require_own(near: Path) -> None:
    """Every file at home is the run's, also for a program that follows links."""
    assert (near / "outputs" / "latest").read_text() == "mine"
    real = os.path.realpath(near / "outputs")
    for place, folders, names in os.walk(near / "outputs"):
        for name in folders + names:
            leads = os.path.realpath(os.path.join(place, name))
            assert os.path.commonpath([real, leads]) == real, (name, leads)
    copied = [each for each in near.rglob("*") if each.is_file() and SECRET in each.read_bytes()]
    assert copied == []


def require_named(bench: Any, told: str, destination: Path) -> None:
    shown = " ".join(bench.record()["notes"])
    for name in LEFT_OUT:
        assert f"`{name}` is a link to " in told, name
        assert f"`{name}` is a link to " in shown, name
    assert bench.run("history", "download", "-r", "last", "-d", str(destination)).code == 0
    assert SECRET not in b"".join(each.read_bytes() for each in destination.rglob("*") if each.is_file())


def test_links_out_of_outputs_stay_out_of_the_record_and_are_named(bench: Any, tmp_path: Path) -> None:
    bench.write("t.py", LINKS.replace("PRIVATE", repr(str(private(tmp_path)))))

    done = bench.submit("t.py")

    assert done.code == 0, done.err
    (near,) = (bench.root / ".holdfast/runs").glob("*_*")
    require_own(near)
    require_named(bench, done.err, tmp_path / "copies")


def test_links_out_of_outputs_of_a_box_lead_nowhere_at_home(far_bench: Callable[..., Any], tmp_path: Path) -> None:
    bench = far_bench()
    bench.write("t.py", LINKS.replace("PRIVATE", repr(str(private(tmp_path)))))

    done = bench.submit("t.py")

    assert done.code == 0, done.err
    require_own(bench.near(bench.near_ids()[0]))
    require_named(bench, done.err, tmp_path / "copies")


def test_links_of_a_script_in_a_container_do_not_reach_the_machine_s_files(
    container_bench: ContainerBench, tmp_path: Path
) -> None:
    container_bench.write("t.py", LINKS.replace("PRIVATE", repr(str(private(container_bench.home)))))

    done = container_bench.submit("t.py")

    assert done.code == 0, done.err
    require_own(container_bench.near(container_bench.ids()[0]))
    require_named(container_bench, done.err, tmp_path / "copies")


@pytest.fixture
def far(tmp_path: Path) -> tuple[Home, Path, dict[str, Any]]:
    """A home with a run that has a folder of outputs; the run's folder; and what names it in a request."""
    home = Home(str(tmp_path / "far"))
    folder = Path(home.run("p", "r"))
    (folder / "work" / "outputs" / "d").mkdir(parents=True)
    (folder / "work" / "outputs" / "d" / "x").write_text("mine")
    (folder / "uploads").mkdir()
    return home, folder, {"project": "p", "run": "r", "roots": ["work/outputs", "uploads"], "ended": True}


@pytest.mark.parametrize("swapped", ["work", "work/outputs", "work/outputs/d", "work/outputs/d/x"])
def test_what_is_swapped_for_a_link_after_the_listing_is_not_sent(
    far: tuple[Home, Path, dict[str, Any]], tmp_path: Path, swapped: str
) -> None:
    home, folder, message = far
    rows, _ = storage.list_files(home, message, lambda: None)
    assert [row[0] for row in rows] == ["work/outputs/d/x"]
    outside = tmp_path / "outside"
    (folder / swapped).rename(outside)
    (folder / swapped).symlink_to(outside)

    frames = list(storage.stream(home, message, [("work/outputs/d/x", 0, "")], lambda: None))
    with pytest.raises(Refused, match="is a link to"):
        storage.link(home, {**message, "path": "work/outputs/d/x", "destination": str(tmp_path / "copy")})

    assert [about["push"] for about, _ in frames] == ["failed"]
    assert b"is a link to" in frames[0][1]
    assert not (tmp_path / "copy").exists()
    rows, problems = storage.list_files(home, message, lambda: None)
    assert [row for row in rows if row[1] == "f"] == []
    assert problems or rows[0][1] == "l"


def test_rights_that_a_script_took_from_a_folder_are_not_given_to_what_a_link_leads_to(
    far: tuple[Home, Path, dict[str, Any]], tmp_path: Path
) -> None:
    home, folder, message = far
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o500)
    (folder / "work/outputs/e").symlink_to(outside)
    (folder / "work/outputs/d").chmod(0)

    rows, _ = storage.list_files(home, message, lambda: None)

    assert [row[0] for row in rows] == ["work/outputs/d/x", "work/outputs/e"]
    assert outside.stat().st_mode & 0o777 == 0o500


def lying_box(home: Path, rows: list[list[Any]]) -> Collector:
    """What a box that lists these rows has brought to `home`."""
    connection: Any = Lying(listing=rows)
    collector = Collector(connection, False, FarRun("p", "r", True), home)
    for _ in collector.bring(("work/outputs", "work", "uploads", "above")):
        pass
    return collector


@pytest.mark.parametrize("order", [1, -1])
def test_a_box_that_lies_about_links_puts_none_at_home_that_leaves_the_record(tmp_path: Path, order: int) -> None:
    home = tmp_path / "laptop" / ".holdfast" / "runs" / "r"
    deep = home / "outputs" / "a/b/c/d"
    deep.mkdir(parents=True)
    pairs = {
        "a/b/c/d/top": "../../../..",
        "hidden": "a/b/c/d/top/../../../x",
        "circle": "circle",
        "absolute": "/etc/passwd",
        "up": "../../journal.jsonl",
        "inside": "a/b",
    }
    rows = [[f"work/outputs/{path}", "l", 0, 1, target] for path, target in pairs.items()]

    collector = lying_box(home, rows[::order])

    links = {str(each.relative_to(home / "outputs")) for each in home.rglob("*") if each.is_symlink()}
    assert links == {"a/b/c/d/top", "inside"}
    for name in ("hidden", "circle", "absolute", "up"):
        assert any(f"`{name}` is a link to " in note for note in collector.notes), name


def test_a_box_that_lists_repositories_has_none_made_at_home(tmp_path: Path) -> None:
    home = tmp_path / "r"
    home.mkdir()
    paths = (".git/config", "a/.GIT/hooks/post-checkout", "git~1/config", ".holdfast/origin.json", "a/.g\u200cit/x")

    collector = lying_box(home, [[f"work/{path}", kind, 1, 1, "x"] for path in paths for kind in "fl"])

    assert list(home.rglob("*")) == []
    assert {each.path for each in collector.left} == set(paths)
    assert all(any(path in note for note in collector.notes) for path in paths)


def test_links_of_a_project_lead_neither_out_of_it_nor_to_the_run_s_own_files(tmp_path: Path) -> None:
    home = tmp_path / "r"
    (home / "files/a").mkdir(parents=True)
    targets = {
        "key": "/etc/ssh/ssh_host_rsa_key",
        "a/journal": "../../journal.jsonl",
        "outputs-of-it": "../outputs/x",
        "a/up": "..",
        "hidden": "a/up/../journal.jsonl",
        "latest": "a/model",
    }

    collector = lying_box(home, [[f"work/{path}", "l", 0, 1, target] for path, target in targets.items()])

    kept = {each.relative_to(home / "files").as_posix() for each in home.rglob("*") if each.is_symlink()}
    assert kept == {"a/up", "latest"}
    for name in set(targets) - kept:
        assert any(f"`{name}` is a link to " in note for note in collector.notes), name


def test_links_beside_the_project_lead_to_what_is_beside_it_and_nowhere_else(tmp_path: Path) -> None:
    home = tmp_path / "r"
    (home / "above/1/logs").mkdir(parents=True)
    targets = {"1/latest": "logs/a", "1/up": "../2/x", "2/journal": "../../journal.jsonl", "1/key": "/etc/passwd"}

    lying_box(home, [[f"above/{path}", "l", 0, 1, target] for path, target in targets.items()])

    assert [each.relative_to(home).as_posix() for each in home.rglob("*") if each.is_symlink()] == ["above/1/latest"]


@pytest.mark.parametrize("place", ["../..", "/", "a//b", "a/../../..", ".", "a/" * 40 + "b", 7, ["a"]])
def test_a_plan_that_a_script_changed_does_not_show_other_files_of_the_machine(
    far: tuple[Home, Path, dict[str, Any]], place: object
) -> None:
    home, folder, message = far
    (folder / "plan.json").write_text(json.dumps({"place": place}))

    with pytest.raises(Refused):
        storage.list_files(home, message, lambda: None)
    frames = list(storage.stream(home, message, [("work/outputs/d/x", 0, "")], lambda: None))

    assert [about["push"] for about, _ in frames] == ["failed"]


@pytest.mark.parametrize("name", ["above/1/../../plan.json", "above/5/plan.json", "above/0/x", "above/-1/x", "above/x"])
def test_what_lies_beside_the_project_is_never_the_run_s_own(
    far: tuple[Home, Path, dict[str, Any]], tmp_path: Path, name: str
) -> None:
    home, folder, message = far
    (folder / "plan.json").write_text('{"place": "above/above/above/project"}')

    with pytest.raises(Refused):
        storage.link(home, {**message, "path": name, "destination": str(tmp_path / "copy")})

    assert not (tmp_path / "copy").exists()


def test_a_link_of_an_earlier_look_goes_when_a_later_one_makes_it_lead_out(tmp_path: Path) -> None:
    home = tmp_path / "r"
    (home / "outputs" / "a/b/c/d").mkdir(parents=True)
    first = [["work/outputs/old", "l", 0, 1, "a/b/c/d/top/../../x"]]

    lying_box(home, first)
    assert (home / "outputs/old").is_symlink()
    lying_box(home, [["work/outputs/a/b/c/d/top", "l", 0, 1, "../../../.."]])

    assert not (home / "outputs/old").is_symlink()


@pytest.mark.parametrize(
    "path",
    [
        *("work/outputs/../../../x", "/x", "work/outputs//x", "uploads/./x", "work//x", "work/../x", "x", "..", ""),
        *(
            "above/../x",
            "above/1/../../x",
            "above/0/x",
            "above/21/x",
            "above/01/x",
            "above/x",
            "above/1",
            "above/\u0661/x",
        ),
    ],
)
def test_a_box_that_names_paths_out_of_the_record_has_nothing_written(tmp_path: Path, path: str) -> None:
    home = tmp_path / "laptop" / "r"
    home.mkdir(parents=True)

    collector = lying_box(home, [[path, "f", 1, 1, ""], [path, "l", 0, 1, "x"]])

    assert [each.name for each in tmp_path.rglob("*")] == ["laptop", "r"]
    assert len(collector.notes) == 2


@pytest.mark.parametrize("name", ["driver_log", "metrics/1-a.jsonl"])
def test_a_copy_that_grows_is_not_written_through_a_link(tmp_path: Path, name: str) -> None:
    home, outside = tmp_path / "r", tmp_path / "outside"
    home.mkdir()
    outside.mkdir()
    (outside / "driver_log").write_bytes(b"")
    where = home / name.split("/")[0]
    where.symlink_to(outside / "driver_log" if where.name == name else outside)

    with pytest.raises(Exception, match="is a link"):
        Mirror(home).apply(Push("data", "r", name, 0, b"from the box"))

    assert [each.read_bytes() for each in outside.iterdir()] == [b""]
