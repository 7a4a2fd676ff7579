"""What a run goes on from (`--from`): the files of an earlier run. They are copied on the machine that has them; where
it is another one, what is at home is used, or sent."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator

from holdfast.errors import FarSideError, ProjectError
from holdfast.frozen import replace
from holdfast.history.run_folder import RunFolders
from holdfast.hosts.client import Client
from holdfast.hosts.connection import Connection
from holdfast.plan import EarlierRun, text
from holdfast.project.quantities import format_size
from holdfast.shown_text import pasted
from holdfast.snapshots.folder_contents import list_folder, read_contents
from holdfast.workbench.reach import events
from holdfast.workbench.reach.context import Context
from holdfast.workbench.submitting.placed_files import send_contents, told
from holdfast.workbench.submitting.run_plan import Intent
from holdfast.written_files import ABOVE, FILES, OUTPUTS

_PROJECT = "work"
_AT_HOME = ((FILES, _PROJECT), (OUTPUTS, f"{_PROJECT}/{OUTPUTS}"), (ABOVE, ABOVE))
"""Folders of a run at home, and their names in its working tree (`farside/system/working_tree.py`)."""
_NAMED = 3


def settle_earlier(
    intent: Intent, earlier: EarlierRun, connection: Connection, context: Context
) -> Generator[events.Event, None, Intent]:
    """The intent with a place where its files are. Raises where some are nowhere that this run can reach."""
    folders, far = RunFolders(intent.project.state_directory), Client(connection)
    known, now = folders.place(earlier.run), far.hello().wait().place
    if known is not None and now is not None and known.is_same(now):
        try:
            far.earlier(earlier.project, earlier.run, earlier.path)
        except FarSideError as error:
            if error.kind != "not-found":
                raise ProjectError(error.message, error.hint) from error
        else:
            return intent
    _require_at_home(folders, earlier, intent.configuration.target.name)
    tops = list(_folders_at_home(folders, earlier.run))
    places = {path: place for top, before in tops for path, place in _files(top, before, earlier.path)}
    if not places:
        where = f" at `{earlier.path}`" if earlier.path else ""
        raise ProjectError(
            f"The run `{earlier.run}` left nothing{where}.",
            f"What it wrote: holdfast history info -r {pasted(earlier.run)}",
        )
    if intent.product.host.is_here:
        return replace(intent, earlier=replace(earlier, folders=tuple((text(top), place) for top, place in tops)))
    sent = yield from _send(places, earlier, connection)
    return replace(intent, earlier=replace(earlier, sent=sent))


def _require_at_home(folders: RunFolders, earlier: EarlierRun, target: str) -> None:
    run_id = earlier.run
    where = folders.submission(run_id).target
    if not folders.is_collected(run_id):
        raise ProjectError(
            f"What the run `{run_id}` wrote is not at home, and not on {target}.",
            f"Bring it home, then submit again: holdfast logs -f -r {pasted(run_id)}",
        )
    if folders.outputs_are_left(run_id):
        raise ProjectError(
            f"What the run `{run_id}` wrote is only on {where}.",
            f"Bring it home, then submit again: holdfast history download {pasted(run_id)}",
        )
    left = folders.left_there(run_id)
    missing = [each for each in left.files if not earlier.path or _is_below(each.path, earlier.path)]
    if not missing and (earlier.path or not left.count):
        return
    count = len(missing) if earlier.path else left.count
    named = ", ".join(f"`{each.path}` ({format_size(each.size)})" for each in missing[:_NAMED])
    more = f" and {count - _NAMED} more" if count > _NAMED else ""
    raise ProjectError(
        f"Only on {where}: {named}{more} of the run `{run_id}`.",
        f"Run where they are: -t {pasted(where)}\n"
        f"Or copy them into the project: holdfast history download {pasted(run_id)} . -d .",
    )


def _folders_at_home(folders: RunFolders, run_id: str) -> Iterator[tuple[str, str]]:
    """Of the run and of those that it went on from; the oldest first, since a later one's file counts."""
    chain = [run_id]
    while (before := folders.submission(chain[-1]).earlier) is not None and before.run_id not in chain:
        if not os.path.isdir(folders.path(before.run_id)):
            break
        chain.append(before.run_id)
    for each in reversed(chain):
        for name, place in _AT_HOME:
            top = folders.path(each) / name
            if os.path.isdir(top) and not os.path.islink(top):
                yield os.fspath(top), place


def _files(top: str, before: str, path: str) -> Iterator[tuple[str, str]]:
    for name, place in list_folder(top).items():
        whole = f"{before}/{name}"
        if not path or _is_below(whole, f"{_PROJECT}/{path}"):
            yield whole, place


def _send(places: dict[str, str], earlier: EarlierRun, connection: Connection) -> Generator[events.Event, None, str]:
    contents = yield from told(read_contents(places), f"what {earlier.run} wrote")
    yield events.Noted(
        f"Sending what {earlier.run} wrote, {format_size(contents.size)}: that machine does not have it."
    )
    yield from send_contents(connection, contents)
    return contents.digest


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top}/")
