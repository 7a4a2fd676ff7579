"""Fetching one file of a run from its host: what the script wrote outside `outputs/`, kept there until `clean`."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.errors import FarSideError, ProjectError
from holdfast.project.folder import Project
from holdfast.workbench.collecting import Fetcher, checked
from holdfast.workbench.runs import follower_of
from holdfast.workbench.surroundings import Surroundings


def fetch_file(project: Project, run_id: str, path: str, destination: Path, around: Surroundings) -> None:
    """`path` as `history info` lists it, relative to the script's working directory."""
    follower = follower_of(project, run_id, around)
    name = checked(os.path.normpath(path).replace(os.sep, "/"))
    try:
        with follower.product.host.connect() as connection:
            ended = follower.read().status.is_final
            run = {"project": project.id, "run": follower.run_id, "ended": ended}
            fetcher = Fetcher(connection, follower.product.host.is_here, run)
            fetcher.fetch_file(f"work/{name}", destination)
    except FarSideError as error:
        if error.kind != "not-found":
            raise
        raise ProjectError(
            f"The run `{follower.run_id}` has no file `{path}` any more, here or on its machine.",
            f"What it has: holdfast history info -r {follower.run_id}",
        ) from error
