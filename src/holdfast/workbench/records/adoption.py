"""Taking over a project's `.holdfast/` that this account did not make: a copy, a restored backup, a colleague's."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping

from holdfast.errors import HoldfastError
from holdfast.frozen import dataclass
from holdfast.history.run_folder import RunFolders
from holdfast.project import provenance
from holdfast.project.folder import Project


@dataclass(frozen=True)
class FoundState:
    """What is there to take over. `targets`: how many of the runs were on each; `unreadable` runs have no record that
    says it."""

    place: str
    runs: int
    targets: Mapping[str, int]
    unreadable: int
    influence: provenance.Influence


def examine(project: Project) -> FoundState | None:
    """None: there is nothing yet, or it is this account's. Raises ProjectError for what cannot be taken over."""
    state = project.root / provenance.STATE_FOLDER
    with contextlib.suppress(HoldfastError):
        provenance.is_made(state, project.home)
        return None
    provenance.require_plain(state, project.home)
    folders = RunFolders(state)
    targets: Counter[str] = Counter()
    ids = folders.all_ids()
    for run_id in ids:
        with contextlib.suppress(HoldfastError):
            targets[folders.submission(run_id).target] += 1
    return FoundState(str(state), len(ids), targets, len(ids) - targets.total(), provenance.influence_on(state))


def take_over(project: Project) -> None:
    """From now on this account uses the folder. Nothing in it is changed but the token."""
    provenance.trust(project.root / provenance.STATE_FOLDER, project.home)
