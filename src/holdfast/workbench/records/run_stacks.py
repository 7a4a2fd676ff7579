"""Where the processes of a living run are: its host asks each Python for its stacks."""

from __future__ import annotations

from holdfast.errors import FarSideError, StateError
from holdfast.frozen import replace
from holdfast.hosts.client import Client
from holdfast.hosts.replies import Stack
from holdfast.shown_text import pasted
from holdfast.workbench.following.session import Session

STATES = {
    "R": "running",
    "S": "sleeping",
    "D": "waiting in the kernel",
    "T": "stopped",
    "t": "stopped by a debugger",
    "I": "idle",
}
"""What Linux calls them."""
_NOTHING_TO_ASK = ("ended", "not-ready", "not-found")
"""The far side's words for a run that has no process."""


def stacks_of(session: Session) -> tuple[Stack, ...]:
    """Parents before what they started. Raises StateError where the run has no process to ask."""
    run = session.read()
    if run.status.is_final:
        raise StateError(
            f"The run `{run.run_id}` has ended, so it has no stacks. {run.how_it_ended()}".strip(),
            f"Its output: holdfast logs -r {pasted(run.run_id)}",
        )
    with session.host.connect() as connection:
        try:
            found = Client(connection).stacks(session.submission.project_id, run.run_id)
        except FarSideError as error:
            if error.kind not in _NOTHING_TO_ASK:
                raise
            hint = error.hint or f"How it ended: holdfast status -r {pasted(run.run_id)}"
            raise StateError(error.message, hint) from error
    return tuple(replace(each, state=STATES.get(each.state, each.state)) for each in found)
