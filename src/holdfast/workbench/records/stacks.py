"""Where the processes of a living run are: its host asks each Python for its stacks."""

from __future__ import annotations

from typing import Any

from holdfast.errors import FarSideError, StateError
from holdfast.frozen import dataclass
from holdfast.workbench.following.follower import Follower
from holdfast.workbench.replies import number, rows, text, understood

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


@dataclass(frozen=True)
class Stack:
    """One process of a run, by its number on the machine. `stack` as Python writes it, most recent call first; empty:
    `why` says what is in the way. Both: why it may not be all its own."""

    pid: int
    name: str
    command: str
    state: str
    stack: str
    why: str


def stacks_of(follower: Follower) -> tuple[Stack, ...]:
    """Parents before what they started. Raises StateError where the run has no process to ask."""
    run = follower.read()
    if run.status.is_final:
        raise StateError(
            f"The run `{run.run_id}` has ended, so it has no stacks. {run.how_it_ended()}".strip(),
            f"Its output: holdfast logs -r {run.run_id}",
        )
    submission = follower.submission
    with follower.product.host.connect() as connection:
        try:
            answer = connection.request("stacks", {"project": submission.project_id, "run": run.run_id})
        except FarSideError as error:
            if error.kind not in _NOTHING_TO_ASK:
                raise
            hint = error.hint or f"How it ended: holdfast status -r {run.run_id}"
            raise StateError(error.message, hint) from error
    with understood("stacks"):
        return tuple(_stack(row) for row in rows(answer["processes"]))


def _stack(row: Any) -> Stack:
    stack = row["stack"]
    return Stack(
        number(row["pid"]),
        text(row["name"]),
        text(row["command"]),
        STATES.get(text(row["state"]), text(row["state"])),
        "" if stack is None else text(stack),
        text(row["why"]),
    )
