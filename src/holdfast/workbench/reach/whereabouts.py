"""Whether what answers is where a run was started. One name may lead to several machines, and the files of a target may
be edited while a run goes on: only the place itself can say that a run is gone, or never began."""

from __future__ import annotations

from holdfast.errors import ElsewhereError
from holdfast.hosts.host import Host
from holdfast.model import Place, Submission

ANOTHER_MACHINE = "another machine answers at this address"
ANOTHER_FOLDER = "the target's folder is another one now"


def require_same(known: Place | None, now: Place | None, host: Host, submission: Submission) -> None:
    """Raises ElsewhereError where `now` is not `known`, the place of the run; a place that was never written down may
    be any."""
    if known is None or (now is not None and known.is_same(now)):
        return
    if now is None or known.machine != now.machine:
        raise _other_machine(known, now, host, submission)
    raise _other_folder(known, now, host, submission)


def _other_machine(known: Place, now: Place | None, host: Host, submission: Submission) -> ElsewhereError:
    names = (now.node if now is not None else "", known.node)
    which = f": `{names[0]}`, not `{names[1]}`" if all(names) and names[0] != names[1] else ""
    return ElsewhereError(
        f"Another machine than the one that {submission.run_id} was sent to answers at {host.name}{which}. The run may "
        "be on the other one.",
        f"Put the name by which `{known.node or 'that machine'}` alone is reached into `address` of "
        f"{submission.target}.compute, then: holdfast status -r {submission.run_id}\n"
        "To use several machines behind one name, attach each by a name of its own.",
        ANOTHER_MACHINE,
    )


def _other_folder(known: Place, now: Place, host: Host, submission: Submission) -> ElsewhereError:
    if host.is_here:
        remedy = f"Look with that one: HOLDFAST_HOME={known.folder} holdfast status -r {submission.run_id}"
    else:
        remedy = (
            f"Set `holdfastHome: {known.folder}` in {submission.target}.compute again, then: "
            f"holdfast status -r {submission.run_id}"
        )
    return ElsewhereError(
        f"Holdfast's folder on {host.name} is `{now.folder}` now, and {submission.run_id} was started in "
        f"`{known.folder}`. It may go on there.",
        remedy,
        ANOTHER_FOLDER,
    )
