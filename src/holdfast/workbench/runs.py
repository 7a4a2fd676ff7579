"""From a run's id to what is needed to reach it: its record names the target it was submitted to."""

from __future__ import annotations

from holdfast.errors import ConfigurationError
from holdfast.history.folder import RunFolders
from holdfast.project.compute import BUILTIN_LOCAL, read_compute
from holdfast.project.folder import Project
from holdfast.workbench.following import Follower
from holdfast.workbench.surroundings import Surroundings
from holdfast.workbench.targets import Product, product_of


def follower_of(project: Project, run: str, around: Surroundings) -> Follower:
    """`run` as a person writes it: an id, the beginning or end of one, `last`."""
    run_id = RunFolders(project.state_directory).resolve(run)
    return Follower(project, run_id, product_for(project, run_id, around), around)


def product_for(project: Project, run_id: str, around: Surroundings) -> Product:
    submission = RunFolders(project.state_directory).submission(run_id)
    if submission.target_type == "local":  # this machine needs no file to be found again
        return product_of(BUILTIN_LOCAL, around)
    target, problems = read_compute(project.root, submission.target)
    if target is None:
        raise ConfigurationError(problems)
    return product_of(target, around)
