"""Locks: what counts in them, and how they are kept."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.farside.environments import locks
from holdfast.farside.environments.locks import lock_digest, make_lock

TEXT = "numpy==2.4.6 \\\n    --hash=sha256:aa\n    # via -r requirements.in\nsix==1.17.0 \\\n    --hash=sha256:bb\n"


def lock(text: str = TEXT, python: str = "3.11.2", platform: str = "linux-x86_64-glibc2.36", **more):
    return make_lock("s" * 16, platform, python, text, **more)


def test_notes_and_the_last_number_of_python_do_not_count():
    noted = lock(TEXT.replace("# via -r requirements.in", "# via pandas"))
    assert lock_digest(lock()) == lock_digest(noted) == lock_digest(lock(python="3.11.9"))


def test_everything_that_gets_installed_counts():
    package = {"url": "file:///c/x.conda", "sha256": "cc"}
    others = [
        lock(TEXT.replace("aa", "ab")),
        lock(python="3.12.2"),
        lock(platform="linux-aarch64-glibc2.36"),
        lock(conda=[package]),
        lock(build=["--no-binary :all:"]),
    ]

    assert len({lock_digest(each) for each in [lock(), *others]}) == 6


def test_packages_are_listed_without_their_hashes():
    assert locks.package_lines(TEXT) == ["numpy==2.4.6", "six==1.17.0"]


def test_the_lock_that_was_made_last_comes_first_and_a_damaged_one_is_none(home):
    for number, python in enumerate(("3.11", "3.12")):
        path = locks.lock_path(home, "s" * 16, python)
        locks.write_lock(path, lock(python=python + ".0"))
        os.utime(path, (number, number))
    Path(locks.lock_path(home, "t" * 16, "3.11")).write_text('{"format": 1, "spec"')

    assert [each["python"] for each in locks.read_locks(home, "s" * 16)] == ["3.12.0", "3.11.0"]
    assert locks.read_locks(home, "t" * 16) == locks.read_locks(home, "u" * 16) == []
