"""The table of lies, run once for all workers that look at its outcomes."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from integration.runs.conftest import end_what_is_left
from kit.boxes import Boxes
from kit.commands import command_server, search_path
from kit.docker.daemon import Daemon
from kit.gpu_cases import CONTAINED, PRODUCTS
from kit.gpu_table import PATIENCE, Command, Ground, Outcome, play
from kit.homes import furnish
from kit.suite.moments import is_soak

Outcomes = Callable[[str], Mapping[str, Outcome]]
_BARE = tuple(each for each in PRODUCTS if each not in CONTAINED)


def played_on(config: pytest.Config) -> Sequence[str]:
    """This machine and the product with the most parts; in `make soak` all."""
    return PRODUCTS if is_soak(config) else ("local", "remotedocker")


@pytest.fixture(scope="session")
def outcomes(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Outcomes:
    """`outcomes("docker")`: the outcomes of its cases, by name. The first request runs them; in `make soak` together
    with those of the other product with, or without, containers."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own

    def find(product: str) -> Mapping[str, Outcome]:
        alike = CONTAINED if product in CONTAINED else _BARE
        group = tuple(each for each in alike if each in played_on(request.config))
        kept = shared / f"table-of-lies-{'-'.join(group)}.json"
        with kept.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not kept.exists():
                _write(kept, _played(group, own, request))
        found = [Outcome(**{**each, "used": tuple(each["used"])}) for each in json.loads(kept.read_text())[product]]
        return {each.case: each for each in found}

    return find


def _write(kept: Path, played: Mapping[str, Mapping[str, Outcome]]) -> None:
    kept.write_text(
        json.dumps({name: [dataclasses.asdict(each) for each in found.values()] for name, found in played.items()})
    )


def _played(group: Sequence[str], own: Path, request: pytest.FixtureRequest) -> Mapping[str, Mapping[str, Outcome]]:
    daemon: Daemon | None = request.getfixturevalue("shared_docker") if set(group) <= set(CONTAINED) else None
    folder = request.getfixturevalue("kit_folder") / f"lies-{'-'.join(group)}"
    folder.mkdir(mode=0o755)
    with ExitStack() as ending:
        grounds = {}
        for product in group:
            place = folder / f"{product}-boxes"
            place.mkdir(mode=0o755)
            boxes = ending.enter_context(closing(Boxes(place)))
            home = own / f"lies-{product}"
            command = ending.enter_context(_commands(home, daemon))
            grounds[product] = Ground(folder, command, home / ".holdfast", daemon, boxes)
        return play(grounds)


@contextmanager
def _commands(home: Path, daemon: Daemon | None) -> Iterator[Command]:
    """The command line with its own home and an environment without traces of this machine."""
    home.mkdir()
    furnish(home / ".holdfast")
    plain = {
        "PATH": search_path(),
        "HOME": str(home),
        "HOLDFAST_HOME": str(home / ".holdfast"),
        "HOLDFAST_NVML": str(home / "no-nvml"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
    }

    def run(words: Sequence[str], project: Path, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        done = command_server().run(words, project, {**plain, **variables}, PATIENCE)
        return subprocess.CompletedProcess(words, done.code, done.out, done.err)

    yield run
    end_what_is_left(home / ".holdfast")
    if daemon is not None:
        for name in daemon.containers("--filter", f"label=holdfast.home={home / '.holdfast'}"):
            daemon.run("rm", "-f", name, check=False)
