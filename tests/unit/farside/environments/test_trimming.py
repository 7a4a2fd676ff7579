"""Freeing space among environments, without touching what is in use."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path

from holdfast.farside.operations.environment_list import trimmed
from holdfast.farside.system.layout import USE_BYTE, Home
from unit.farside.programs import lock_held

DAY = 86400.0


def make(home: Home, name: str, days: float, cached: str = "", size: int = 1000) -> Path:
    """An environment with this many bytes of its own, and as many that it shares with the cache."""
    folder = Path(home.environment(name))
    folder.mkdir(parents=True)
    (folder / ".complete").write_text(json.dumps({"spec": f"spec{name}"}))
    (folder / "own").write_bytes(b"x" * size)
    if cached:
        unit = Path(home.cache()) / "uv" / "archive-v0" / cached
        if not unit.exists():
            unit.mkdir(parents=True)
            (unit / "module.py").write_bytes(b"y" * size)
        os.link(unit / "module.py", folder / "module.py")
    lock = Path(home.environment(name) + ".lock")
    lock.touch()
    used = time.time() - days * DAY
    os.utime(lock, (used, used))
    return folder


def names(home: Home) -> list[str]:
    return sorted(each.name for each in Path(home.environments()).iterdir() if each.is_dir())


def units(home: Home) -> list[str]:
    return sorted(each.name for each in (Path(home.cache()) / "uv" / "archive-v0").iterdir())


def test_those_that_were_not_used_for_long_go(home):
    make(home, "old", 40)
    make(home, "new", 1)

    answer = trimmed(home, {"older": 30 * DAY})

    assert names(home) == ["new"]
    assert [what for what, _ in answer["removed"]] == ["environment old"]
    assert answer["left"] is None


def test_those_used_longest_ago_go_until_the_limit_is_kept(home):
    for name, days in (("oldest", 40), ("older", 30), ("newest", 1)):
        make(home, name, days, cached=name)

    answer = trimmed(home, {"keep": 4500})

    assert names(home) == ["newest", "older"]
    assert units(home) == ["newest", "older"]
    assert 4000 < answer["left"] <= 4500


def test_packages_that_no_environment_has_go_first(home):
    make(home, "one", 40, cached="used")
    unused = Path(home.cache()) / "uv" / "archive-v0" / "unused"
    unused.mkdir()
    (unused / "module.py").write_bytes(b"z" * 5000)

    answer = trimmed(home, {"keep": 3000})

    assert names(home) == ["one"]
    assert units(home) == ["used"]
    assert answer["removed"] == [["1 cached package", 5000]]


def test_a_package_that_two_environments_have_counts_once_and_stays_for_the_other(home):
    make(home, "old", 40, cached="shared")
    make(home, "new", 1, cached="shared")

    answer = trimmed(home, {"keep": 2500})

    assert names(home) == ["new"]
    assert units(home) == ["shared"]
    assert answer["left"] <= 2500


def test_what_is_in_use_stays_whatever_the_limit(home):
    make(home, "held", 40)
    with lock_held(Path(home.environment("held") + ".lock"), USE_BYTE):
        os.utime(home.environment("held") + ".lock", (1, 1))
        answer = trimmed(home, {"older": DAY, "keep": 1})
    assert names(home) == ["held"]
    assert answer["removed"] == []
    assert {what for what, _ in answer["kept"]} == {"environment held"}


def test_notes_and_locks_that_lead_to_nothing_go(home):
    make(home, "there", 1)
    locks = Path(home.locks())
    (locks / "a.id").write_text("there")
    (locks / "b.id").write_text("gone")
    (locks / "c.id").write_text("../../etc")
    for name in ("specthere-3.11.json", "spec0-3.11.json", "spec0-3.11.json.lock", "spec1-3.11.json", "a.id.new-7"):
        (locks / name).write_text("{}")
    long_ago = time.time() - 40 * DAY
    for name in ("specthere-3.11.json", "spec0-3.11.json", "spec0-3.11.json.lock", "a.id.new-7"):
        os.utime(locks / name, (long_ago, long_ago))

    trimmed(home, {})

    assert sorted(each.name for each in locks.iterdir()) == ["a.id", "spec1-3.11.json", "specthere-3.11.json"]


def test_a_host_without_environments_has_nothing_to_remove(tmp_path):
    assert trimmed(Home(str(tmp_path / "none")), {"older": 0, "keep": 0}) == {"removed": [], "kept": [], "left": 0}


def test_the_cache_is_not_trimmed_during_an_installation(home):
    make(home, "one", 40, cached="package")
    lock = Path(home.cache()) / "uv" / ".lock"
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        trimmed(home, {"keep": 1})
        assert (names(home), units(home)) == ([], ["package"])
    trimmed(home, {"keep": 1})
    assert units(home) == []


def test_what_a_killed_installer_left_goes_after_an_hour(home):
    uv, conda = Path(home.cache()) / "uv", Path(home.cache()) / "conda" / "packages"
    long_ago = time.time() - DAY
    for folder in (uv / ".tmpAbc", conda / ".tmpDef", conda / "there-1.0-0"):
        folder.mkdir(parents=True)
        (folder / "half").write_bytes(b"x" * 100)
    for lock in (conda / "gone-1.0-0.lock", conda / "there-1.0-0.lock", conda / ".cache.lock"):
        lock.touch()
    for path in (uv / ".tmpAbc", *conda.iterdir()):
        os.utime(path, (long_ago, long_ago))
    (uv / ".tmpYoung").mkdir()

    answer = trimmed(home, {})

    assert answer["removed"] == [["what installers left unfinished", 200]]
    assert sorted(each.name for each in uv.iterdir()) == [".tmpYoung"]
    assert sorted(each.name for each in conda.iterdir()) == [".cache.lock", "there-1.0-0", "there-1.0-0.lock"]


def test_caches_for_images_of_another_platform_are_trimmed_too(home):
    unit = Path(home.cache()) / "uv-linux-x86_64-musl" / "archive-v0" / "unused"
    unit.mkdir(parents=True)
    (unit / "file").write_bytes(b"x" * 1000)
    lock = unit.parent.parent / ".lock"
    lock.touch()
    with lock.open("r+b") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        trimmed(home, {"keep": 0})
        assert unit.exists(), "an installation uses it"

    trimmed(home, {"keep": 0})
    assert not unit.exists()
