"""Removing what runs left on their host. The record at home stays; a living run and unfetched outputs are never
touched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.errors import FarSideError
from holdfast.history.folder import RunFolders
from holdfast.hosts.connection import Connection
from holdfast.project.folder import Project
from holdfast.workbench import events
from holdfast.workbench.refresh import refresh
from holdfast.workbench.runs import product_for
from holdfast.workbench.surroundings import Surroundings
from holdfast.workbench.targets import Product


def clean(
    project: Project, runs: Sequence[str] | None, target: str | None, environments: bool, around: Surroundings
) -> Iterator[events.Event]:
    """`runs` None: every ended run of the project, on `target` if one is named. Gone already is success."""
    yield from refresh(project, around)
    folders = RunFolders(project.state_directory)
    chosen = [folders.resolve(run) for run in runs] if runs is not None else list(folders.all_ids())
    by_host: dict[str, tuple[Product, list[str]]] = {}
    for run_id in chosen:
        if target is not None and folders.submission(run_id).target != target:
            continue
        product = product_for(project, run_id, around)
        by_host.setdefault(product.host.name, (product, []))[1].append(run_id)
    for product, run_ids in by_host.values():
        with product.host.connect() as connection:
            yield from _clean_host(connection, folders, project.id, run_ids)
            if environments:
                for name, _, _, _ in connection.request("usage", {"project": project.id})["environments"]:
                    yield from _remove(connection, f"environment {name}", {"environment": name})


def _clean_host(
    connection: Connection, folders: RunFolders, project_id: str, run_ids: list[str]
) -> Iterator[events.Event]:
    there = {run for _, run, _, _ in connection.request("usage", {"project": project_id})["runs"]}
    for run_id in run_ids:
        if not folders.is_collected(run_id):
            yield events.Removed(run_id, 0, "it has not ended, or its outputs are not at home yet")
        elif run_id in there:
            yield from _remove(connection, run_id, {"project": project_id, "run": run_id})


def _remove(connection: Connection, name: str, what: dict[str, str]) -> Iterator[events.Event]:
    try:
        answer = connection.request("remove", what)
    except FarSideError as error:
        if error.kind != "living":
            raise
        yield events.Removed(name, 0, error.message)
        return
    yield events.Removed(name, answer["removed"])
