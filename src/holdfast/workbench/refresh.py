"""Bringing the records of unfinished runs up to date: one connection per host, however many runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from holdfast.errors import HoldfastError
from holdfast.history.index import Index
from holdfast.hosts.connection import Connection
from holdfast.project.folder import Project
from holdfast.workbench import events
from holdfast.workbench.following import Follower
from holdfast.workbench.mirror import Mirror, stopped_writer
from holdfast.workbench.runs import product_for
from holdfast.workbench.surroundings import Surroundings


def refresh(project: Project, around: Surroundings) -> Iterator[events.Event]:
    """Ask the hosts about every unfinished run that no other process is copying. What cannot be asked is told, not
    guessed."""
    if not project.id:
        return
    by_host: dict[str, list[Follower]] = {}
    for run_id, target in Index(project.state_directory).unfinished():
        try:
            follower = Follower(project, run_id, product_for(project, run_id, around), around)
        except HoldfastError as error:
            yield events.Warned(f"{run_id} on `{target}` could not be asked about: {error.message}", error.hint)
            continue
        by_host.setdefault(follower.product.host.name, []).append(follower)
    for name, followers in by_host.items():
        try:
            yield from _refresh_host(followers)
        except HoldfastError as error:
            yield events.Warned(f"{name} could not be asked: {error.message}", error.hint)


def _refresh_host(followers: list[Follower]) -> Iterator[events.Event]:
    with contextlib.ExitStack() as stack:
        mine = [follower for follower in followers if stack.enter_context(follower.writing())]
        for follower in followers:
            stopped = None if follower in mine else stopped_writer(follower.folder)
            if stopped:
                yield events.Warned(
                    f"What is shown of {follower.run_id} is old: process {stopped}, which copies it, is stopped.",
                    f"Continue it (kill -CONT {stopped}) or end it (kill {stopped}).",
                )
        if not mine:
            return
        connection = stack.enter_context(mine[0].product.host.connect())
        for follower in mine:
            follower.share(connection)
        missing = _pull(connection, mine)
        for follower in missing:
            follower.settle_missing()
        _pull(connection, missing)
        for follower in mine:
            try:
                yield from follower.finish()
            except HoldfastError as error:  # of this run alone
                yield events.Warned(error.message, error.hint)


def _pull(connection: Connection, followers: list[Follower]) -> list[Follower]:
    """Copy what is new of each run; returns those that the host does not have."""
    mirrors = {follower.run_id: Mirror(follower.folder) for follower in followers}
    asked = [
        {"project": follower.project.id, "run": follower.run_id, "have": mirrors[follower.run_id].have()}
        for follower in followers
    ]
    if not asked:
        return []
    answer = connection.request("follow", {"runs": asked, "stay": False})
    waiting = set(mirrors) - set(answer["missing"])
    while waiting:
        push = connection.next_push(None)
        if push is not None and not mirrors[push.run_id].apply(push) and push.kind == "level":
            waiting.discard(push.run_id)
    return [follower for follower in followers if follower.run_id in answer["missing"]]
