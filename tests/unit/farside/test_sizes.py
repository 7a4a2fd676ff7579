"""The size of Holdfast's folder, and its removal: everything of Holdfast's, nothing else, and no living run."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.agent import Agent
from holdfast.farside.operations import account, home_lock, sizes
from holdfast.farside.system import frames
from holdfast.farside.system.files import remove_tree
from holdfast.farside.system.layout import MARKER, Home
from holdfast.farside.system.refusal import Refused

BROUGHT = f"farside/{account.running_version()}"


@pytest.fixture
def home(home: Home) -> Home:
    root = Path(home.path)
    for name, content in {"farside/a/x.py": "12345", "objects/ab/c": "1", "runs/p1/r1/driver_log": "123"}.items():
        path = root / name
        path.parent.mkdir(parents=True)
        path.write_text(content)
    os.link(root / "objects/ab/c", root / "runs/p1/r1/copy")
    return home


def folder(path: Path, *names: str) -> Home:
    for name in names:
        (path / name).mkdir(parents=True)
    return Home(str(path))


def test_what_is_there_is_listed_with_sizes_and_links_count_once(home):
    (Path(home.path) / "thesis").write_text("not ours")
    assert sizes.sizes(home) == {
        "home": home.path,
        "stored": [["farside", 5], ["objects", 1], ["runs", 3]],
        "runs": [["p1", 1, 0]],
    }


class TestPurge:
    def test_it_leaves_nothing_and_can_be_repeated(self, home):
        assert sizes.purge(home) == {"removed": 9, "kept": []}
        assert not os.path.exists(home.path)
        assert sizes.purge(home) == {"removed": 0, "kept": []}

    def test_containers_go_before_the_runs_that_they_are_of(self, home, monkeypatch):
        seen = []
        monkeypatch.setattr(
            "holdfast.farside.operations.leftover_containers.remove", lambda at: seen.append(os.path.exists(at.runs()))
        )
        Path(home.docker()).write_text("{}")
        assert sizes.purge(home)["kept"] == []
        assert seen == [True]

    def test_what_is_not_ours_stays_and_the_folder_with_it(self, home):
        (Path(home.path) / "thesis").write_text("years")
        (Path(home.path) / "keys").mkdir()
        assert sizes.purge(home)["kept"] == ["keys", "thesis"]
        assert sorted(os.listdir(home.path)) == ["keys", "thesis"]

    def test_a_folder_that_is_not_ours_is_refused(self, tmp_path):
        scratch = folder(tmp_path / "scratch", "farside/src", "cache", "thesis")
        with pytest.raises(Refused, match="not Holdfast's") as refused:
            sizes.purge(scratch)
        assert "--home" not in refused.value.hint, "a purge has no such option"
        assert "Detach without --purge" in refused.value.hint
        assert sorted(os.listdir(tmp_path / "scratch")) == ["cache", "farside", "thesis"]

    @pytest.mark.parametrize("path", ["{home}", "{home}/..", "{home}/x/.."])
    def test_the_accounts_own_folder_is_refused_even_with_the_mark(self, isolated, path):
        folder(isolated, "farside/a", "cache", "x")
        for each in (isolated, isolated.parent):
            Home(str(each)).mark(found=False)
        try:
            with pytest.raises(Refused, match=f"`{os.path.abspath(path.format(home=isolated))}`"):
                sizes.purge(Home(path.format(home=isolated)))
        finally:
            os.unlink(isolated.parent / MARKER)
        assert (isolated / "cache").is_dir()

    def test_a_folder_that_is_a_link_loses_what_is_ours_and_is_not_removed(self, home, tmp_path):
        (tmp_path / "link").symlink_to(home.path)
        os.chmod(home.path, 0o750)
        assert sizes.purge(Home(str(tmp_path / "link")))["kept"] == []
        assert ((tmp_path / "link").is_symlink(), os.listdir(home.path)) == (True, [])
        assert os.stat(home.path).st_mode & 0o777 == 0o750

    def test_what_a_link_in_it_leads_to_is_left_and_named(self, home, tmp_path):
        (tmp_path / "big").mkdir(mode=0o750)
        (tmp_path / "big" / "file").write_text("x")
        (Path(home.path) / "cache").symlink_to(tmp_path / "big")
        assert sizes.purge(home)["kept"] == [str(tmp_path / "big")]
        assert (tmp_path / "big" / "file").exists()
        assert (tmp_path / "big").stat().st_mode & 0o777 == 0o750
        assert not os.path.exists(home.path)

    def test_a_living_run_keeps_everything(self, home, make_living):
        make_living(Path(home.runs()) / "p2" / "r2")
        with pytest.raises(Refused, match="`r2` is still alive"):
            sizes.purge(home)
        assert os.path.exists(os.path.join(home.runs(), "p1", "r1", "copy"))

    def test_a_run_that_begins_while_sizes_are_counted_is_kept_alive(self, home, make_living, monkeypatch):
        counted = sizes.sizes

        def counting(home: Home) -> Any:
            found = counted(home)
            make_living(Path(home.runs()) / "p1" / "r2")
            return found

        monkeypatch.setattr(sizes, "sizes", counting)
        with pytest.raises(Refused, match="`r2` is still alive"):
            sizes.purge(home)
        assert os.path.exists(os.path.join(home.runs(), "p1", "r2", "lock"))
        assert os.path.exists(os.path.join(home.runs(), "p1", "r1")), "it was seen before anything went"
        assert os.path.exists(os.path.join(home.objects(), "ab", "c"))

    @pytest.mark.parametrize("is_listed", [True, False])
    def test_a_run_that_begins_without_the_lock_while_others_are_removed_is_kept(
        self, home, make_living, monkeypatch, is_listed
    ):
        """On a disk without locks. `is_listed`: its folder existed when the removal began, like that of a run being
        made."""
        if is_listed:
            os.mkdir(os.path.join(home.runs(), "p1", "r2"))
        remove = remove_tree

        def removing(path: str) -> None:
            remove(path)
            if path.endswith("r1"):
                make_living(Path(home.runs()) / "p1" / "r2")

        monkeypatch.setattr(sizes, "remove_path", removing)
        with pytest.raises(Refused, match="is still alive" if is_listed else "has just begun"):
            sizes.purge(home)
        assert os.path.exists(os.path.join(home.runs(), "p1", "r2", "lock"))
        assert os.path.exists(os.path.join(home.objects(), "ab", "c"))

    def test_while_a_run_is_being_started_nothing_is_removed(self, home, monkeypatch):
        monkeypatch.setattr(home_lock, "PATIENCE", 0.05)
        with home_lock.Adding(home), pytest.raises(Refused, match="being started"):
            sizes.purge(home)
        assert os.path.exists(os.path.join(home.runs(), "p1", "r1"))

    def test_while_all_is_being_removed_no_run_starts(self, home, monkeypatch):
        monkeypatch.setattr(home_lock, "PATIENCE", 0.05)
        with home_lock.Alone(home), pytest.raises(Refused, match="being removed"), home_lock.Adding(home):
            pass

    def test_after_it_a_far_side_that_is_gone_starts_nothing_and_makes_no_folder(self, home, monkeypatch):
        sizes.purge(home)
        monkeypatch.setattr(home_lock, "ENTRY", "/nowhere/main.py")
        with pytest.raises(Refused, match="was removed a moment ago"), home_lock.Adding(home):
            pass
        assert not os.path.exists(home.path)


class TestLeave:
    @pytest.fixture
    def fresh(self, tmp_path: Path) -> Home:
        """As an attach has made it."""
        Home(str(tmp_path / "fresh")).make()
        return folder(tmp_path / "fresh", BROUGHT, "proofs")

    def test_a_folder_that_an_attach_made_is_gone(self, home, fresh):
        assert sizes.leave(home, fresh.path) == {"left": True}
        assert not os.path.exists(fresh.path)
        assert sizes.leave(home, fresh.path) == {"left": False}

    def test_the_home_itself_can_be_left_and_what_was_learned_of_docker_is_forgotten(self, fresh):
        Path(fresh.docker()).write_text("{}")
        Path(fresh.images()).mkdir()
        assert sizes.leave(fresh, fresh.path) == {"left": True}
        assert not os.path.exists(fresh.path)

    @pytest.mark.parametrize("name", ["runs", "settings.json", "objects", "share", "farside/0123", "proofs/token"])
    def test_one_that_is_in_use_stays_as_it_is(self, fresh, name):
        (Path(fresh.path) / name).mkdir()
        before = sorted(os.walk(fresh.path))
        assert sizes.leave(fresh, fresh.path) == {"left": False}
        assert sorted(os.walk(fresh.path)) == before

    def test_one_that_was_there_before_loses_what_was_brought_and_no_more(self, tmp_path):
        given = folder(tmp_path / "given", BROUGHT)
        given.make()
        assert sizes.leave(given, given.path) == {"left": True}
        assert os.listdir(given.path) == []

    @pytest.mark.parametrize(
        ("names", "is_left"),
        [
            ([BROUGHT, "cache", "runs/2024", "thesis"], True),
            ([BROUGHT, "runs/p/r/plan.json", "thesis"], False),
            (["farside"], False),
        ],
        ids=["other files", "other files and a run", "another far side"],
    )
    def test_one_with_other_files_keeps_them(self, home, tmp_path, names, is_left):
        scratch = folder(tmp_path / "scratch", *names)
        before = set(os.listdir(scratch.path))
        assert sizes.leave(home, scratch.path) == {"left": is_left}
        assert set(os.listdir(scratch.path)) == before - ({"farside"} if is_left else set())


@pytest.mark.parametrize(
    "message",
    [
        {"op": "prepare", "snapshot": "0" * 64},
        {"op": "start", "plan": {"format": 1, "project": "p2", "run": "r2", "generation": "g"}},
    ],
    ids=lambda message: str(message["op"]),
)
def test_an_agent_adds_nothing_during_a_removal(home, monkeypatch, message):
    monkeypatch.setattr(home_lock, "PATIENCE", 0.05)
    output = io.BytesIO()
    with home_lock.Alone(home):
        Agent(home, output)._handle({"id": 1, **message}, b"")
    answer = frames.decode(io.BytesIO(output.getvalue()).read)
    assert answer is not None
    assert answer[0]["error"]["kind"] == "busy"
    assert os.listdir(home.runs()) == ["p1"]
