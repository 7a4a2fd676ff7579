"""The lock by which a container's launcher is known to live lies where the script, and a cleaner, can take it. That it
is gone, or another, does not mean that the container has ended."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.farside.containers import contained, container_shell, removal
from holdfast.farside.containers.contained import Contained
from holdfast.farside.containers.removal import is_launcher_alive, wait_for_launcher
from holdfast.farside.operations import stacks
from holdfast.farside.system import launcher_lock, lost_locks
from holdfast.farside.system.files import write_whole
from holdfast.farside.system.launcher_lock import launcher_of
from unit.farside.containers.test_inside import Launched

PLAN = '{"container": {"program": "docker", "name": "holdfast-r", "labels": {}, "image": "i"}}'


class Living(Launched):
    """Of a run of now, or of an earlier version, which had the lock by one name."""

    def __init__(self, run: Path, is_new: bool) -> None:
        super().__init__(run)
        if is_new:
            launcher_lock.make(str(self.inside))
        write_whole(str(run / "plan.json"), PLAN)
        self.start("import time; print('up'); time.sleep(60)")
        self.wait_for(b"up")

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.communicate()


@pytest.fixture(params=["of now", "of an earlier version"])
def living(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Living]:
    with contextlib.closing(Living(tmp_path / "run", request.param == "of now")) as made:
        yield made


def unlink(lock: Path) -> None:
    lock.unlink()


def put_another(lock: Path) -> None:
    lock.unlink()
    lock.touch()


def put_a_link(lock: Path) -> None:
    (lock.parent / "mine").touch()
    lock.unlink()
    lock.symlink_to("mine")


def put_a_folder(lock: Path) -> None:
    lock.unlink()
    lock.mkdir()


WAYS = pytest.mark.parametrize("take", [unlink, put_another, put_a_link, put_a_folder])


def told(removed: list[str], name: str) -> bool:
    removed.append(name)
    return True


def unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the container has other users or paths than the machine."""
    monkeypatch.setattr(lost_locks.LostLocks, "holders_below", lambda *_: set())


@WAYS
def test_a_launcher_that_lives_is_found_whatever_became_of_its_lock(
    take: Callable[[Path], None], living: Living
) -> None:
    take(living.inside / "lock")
    assert is_launcher_alive(str(living.inside)) and launcher_of(str(living.inside)) == living.pid
    assert not wait_for_launcher(str(living.inside), 0.0, time.sleep)


@pytest.mark.parametrize("take", [unlink, put_a_link, put_a_folder])
def test_where_nobody_is_seen_to_hold_it_a_lock_that_was_taken_tells_nothing(take, living, monkeypatch):
    unseen(monkeypatch)
    living.kill()
    take(living.inside / "lock")
    assert is_launcher_alive(str(living.inside)), "only Docker knows"
    assert wait_for_launcher(str(living.inside), 0.0, time.sleep, is_removed=True), "and Docker has said it"


def test_another_file_in_its_place_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unseen(monkeypatch)
    with contextlib.closing(Living(tmp_path / "run", is_new=True)) as living:
        put_another(living.inside / "lock")
        assert launcher_of(str(living.inside)) == living.pid
        living.kill()
        assert is_launcher_alive(str(living.inside))


def test_a_launcher_that_ended_by_itself_is_known_without_docker(living: Living) -> None:
    living.kill()
    assert not is_launcher_alive(str(living.inside))


@WAYS
def test_the_container_of_a_run_without_owners_is_removed(take, living, monkeypatch):
    """The launcher is frozen, so that it does not notice that nobody owns it."""
    removed: list[str] = []
    monkeypatch.setattr(removal, "LAST_WORDS", 0.0)
    monkeypatch.setattr(removal, "remove", lambda folder, *_, **__: told(removed, folder))
    take(living.inside / "lock")
    removal.end(str(living.run), time.sleep)
    assert removed == [str(living.run)]


@WAYS
def test_the_supervisor_removes_what_may_live(take, living, monkeypatch):
    removed: list[str] = []
    monkeypatch.setattr(contained, "LAST_WORDS", 0.0)
    monkeypatch.setattr(contained, "remove_named", lambda docker, name, patience: told(removed, name))
    mine: Any = SimpleNamespace(_is_made=True, _has_started=True, inside=str(living.inside), folder=str(living.run))
    mine.docker, mine.wanted = None, SimpleNamespace(name="holdfast-r")
    mine.remove = lambda: Contained.remove(mine)
    take(living.inside / "lock")
    Contained.end(mine)
    assert removed == ["holdfast-r"]


@WAYS
def test_a_run_that_lives_can_be_entered_and_asked_where_it_is(take, living, monkeypatch):
    take(living.inside / "lock")
    entry = container_shell.of_run(str(living.run), {"directory": "/", "environment": {}})
    assert entry["after"] == ["holdfast-r"]
    assert living.pid not in [each.pid for each in stacks._members(str(living.run), "r")]
    assert [each.parent for each in stacks._members(str(living.run), "r")] == [living.pid]


def test_the_script_cannot_reach_the_second_name(tmp_path: Path) -> None:
    inside = tmp_path / "run" / "inside"
    inside.mkdir(parents=True)
    launcher_lock.make(str(inside))
    assert os.path.samefile(inside / "lock", tmp_path / "run" / "inside.lock")
    assert "inside.lock" not in contained._SHOWN
