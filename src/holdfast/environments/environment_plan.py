"""From a spec to the plan of its environment, and the locks of a project: to which exact packages a spec was resolved,
for each platform and Python. While the spec is the same, so are their versions, on every machine.

A lock comes from a machine, which may have written anything: another one only prefers its versions (`is_own`)."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.farside.environments import locks as far
from holdfast.farside.system.ownership import make_private
from holdfast.frozen import dataclass
from holdfast.plan import EnvironmentPlan, Hole, Text, text
from holdfast.project.environment_spec import EnvironmentSpec, Requirement, is_option
from holdfast.regular_files import LARGEST_RECORD, NotJson, odd_entry_in, read_json
from holdfast.whole_files import write_whole

FORMAT = far.FORMAT
FOLDER = "locks"
"""In the project's state, and in Holdfast's folder on each machine."""

_MOST = 16
"""Locks of a spec that are sent along: platforms times Pythons are fewer."""

Lock = Mapping[str, Any]
"""As the far side wrote it. It is handed back as it is, and only its head is looked at here."""


@dataclass(frozen=True)
class Wishes:
    """`exact`: the lock of another run, whose packages are wanted and no others; `upgrade`: resolve anew; `rebuild`:
    build anew."""

    exact: Lock | None = None
    upgrade: bool = False
    rebuild: bool = False


def plan_environment(
    spec: EnvironmentSpec, digest: str, interpreter: Text, uv: Text, locks: Sequence[Lock], wishes: Wishes
) -> EnvironmentPlan:
    """`digest` is the spec's; `interpreter` the active Python, for a spec that pins none."""
    lines = [each for each in spec.pip if not is_option(each)]
    options = [each.text for each in spec.pip if is_option(each)]
    return EnvironmentPlan(
        spec=digest,
        summary=summary_of(spec),
        python=spec.python,
        interpreter=interpreter,
        requirements=_placed(lines),
        constraints=_placed(spec.constraints),
        options=tuple(options),
        arguments=spec.arguments,
        channels=spec.channels,
        conda=_placed(spec.conda),
        locked=spec.locked,
        locks=(wishes.exact,) if wishes.exact is not None else tuple(locks),
        exact=wishes.exact is not None,
        upgrade=wishes.upgrade,
        rebuild=wishes.rebuild,
        files=text(Hole.WORK),
        uv=uv,
        tools=(),
        secrets=(),
        projects=tuple(each.folder for each in spec.projects if each.folder),
    )


def summary_of(spec: EnvironmentSpec, unpinned: str = "as active") -> str:
    """For people, in one line. `unpinned` says which Python, where the spec does not."""
    lines = [each.text for each in (*spec.conda, *spec.pip) if not is_option(each)]
    names = [line.partition("--hash=")[0].rstrip(" \\\n") for line in lines]
    shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return f"Python {spec.python or unpinned}: {shown or 'no packages'}"


def _placed(requirements: Sequence[Requirement]) -> tuple[tuple[str, str], ...]:
    return tuple((each.text, f"{each.file}:{each.line}") for each in requirements)


def read_lock(path: Path) -> Lock | None:
    """The lock in a file; None if there is none, or none that this version can read."""
    try:
        found = read_json(path, LARGEST_RECORD, follows_link=False)
    except (OSError, NotJson):
        return None
    return found if is_lock(found) else None


def is_lock(value: Any) -> bool:
    """Whether it has all that a lock has, and says nothing but packages."""
    return far.is_lock(value)


def locks_of(state: Path, spec: str) -> tuple[Lock, ...]:
    """Of a spec, by its digest, the last one first. `state` is the project's `.holdfast`. The oldest of very many are
    left out: machines add them."""
    if odd_entry_in(state / FOLDER / spec) is not None:
        return ()
    with contextlib.suppress(OSError):
        paths = sorted((state / FOLDER / spec).glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
        return tuple(lock for lock in map(read_lock, paths[:_MOST]) if lock is not None)
    return ()


def keep_lock(state: Path, lock: Lock, spec: str, replace: bool) -> bool:
    """Keep a lock for later runs. `spec` is the digest of what was asked for: a lock for anything else is not kept.
    `replace`: also where there is another one. True if it is kept now."""
    if not is_lock(lock) or lock["spec"] != spec or not re.fullmatch(_NAME, spec):
        return False
    path = state / FOLDER / spec / f"{_name(lock)}.json"
    if path.exists() and not replace:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.parent.is_symlink():
        return False
    write_whole(path, json.dumps(lock, indent=1, sort_keys=True).encode())
    return True


def is_own(home: Path, lock: Lock) -> bool:
    """Whether this machine made the lock: only then is it used as it is. `home` is Holdfast's folder."""
    return far.is_own(str(home / FOLDER), dict(lock))


def keep_own(home: Path, lock: Lock) -> None:
    """Note that this machine made the lock."""
    folder = str(home / FOLDER)
    make_private(folder)
    far.keep_own(folder, dict(lock))


_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"


def _name(lock: Lock) -> str:
    """What it was made for: machines with and without GPUs, or with old drivers, may need other builds."""
    backend = {"": "", "cpu": "-cpu"}.get(lock["backend"], "-old-driver")
    driver = f"-cuda{lock['cuda']}" if lock.get("cuda") else backend
    return re.sub(r"[^A-Za-z0-9._-]", "_", f"{lock['platform']}-{far.minor(lock['python'])}{driver}")
