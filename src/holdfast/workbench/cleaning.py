"""Removing what runs left on their host. The record at home stays; a living run and unfetched outputs are never
touched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.errors import FarSideError
from holdfast.history.folder import RunFolders
from holdfast.project.folder import Project
from holdfast.workbench import events
from holdfast.workbench.collecting import is_collected
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
    products: dict[str, Product] = {}
    for run_id in chosen:
        submission = folders.submission(run_id)
        if target is not None and submission.target != target:
            continue
        product = product_for(project, run_id, around)
        products.setdefault(product.host.name, product)
        if not is_collected(folders.path(run_id)):
            yield events.Removed(run_id, 0, "it has not ended, or its outputs are not at home yet")
            continue
        yield from _remove(product, run_id, {"project": project.id, "run": run_id})
    if environments:
        for product in products.values():
            with product.host.connect() as connection:
                listed = connection.request("usage", {"project": project.id})["environments"]
            for name, _, _, _ in listed:
                yield from _remove(product, f"environment {name}", {"environment": name})


def _remove(product: Product, name: str, what: dict[str, str]) -> Iterator[events.Event]:
    with product.host.connect() as connection:
        try:
            removed = connection.request("remove", what)["removed"]
        except FarSideError as error:
            if error.kind != "living":
                raise
            yield events.Removed(name, 0, error.message)
            return
    if removed:
        yield events.Removed(name, removed)
