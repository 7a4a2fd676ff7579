"""Data beside the project for a run: where it lies, what is in it, and sending it to a machine that does not have it.
It is read where it lies, and known again by its stat: nothing of it is stored on this machine."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Generator, Iterator
from pathlib import Path

from holdfast.errors import FarSideError, ProjectError
from holdfast.farside.system.real_paths import real_path
from holdfast.frozen import replace
from holdfast.given_files import GivenData
from holdfast.hosts.client import Client
from holdfast.hosts.connection import Connection
from holdfast.plan import DataFolder, Hole, Text, text
from holdfast.project.data_wishes import DataWish, folders_above
from holdfast.project.quantities import format_size
from holdfast.snapshots.folder_contents import list_folder, read_contents
from holdfast.workbench.reach import events
from holdfast.workbench.reach.context import Context
from holdfast.workbench.submitting.chosen_data import place_of
from holdfast.workbench.submitting.placed_files import send_contents, told
from holdfast.workbench.submitting.run_plan import Given, Intent, SentData

_CACHES = "data"
"""Folder of the project's state: what is known of data by its stat."""


def settle_data(
    intent: Intent, manifest: bytes, connection: Connection | None, context: Context
) -> Generator[events.Event, None, Intent]:
    """The intent with its data; what is not known yet is read. `manifest`: the snapshot's. Without a connection nothing
    is asked, and nothing written."""
    found = Given()
    _refuse_shipped(intent.configuration.run.data, manifest)
    for wish in intent.configuration.run.data:
        if wish.place:
            one = _there(wish, connection)
        else:
            one = yield from _from_here(wish, intent, context, keeps=connection is not None)
        found = found.plus(one)
    return replace(intent, given=found)


def send_data(connection: Connection, data: tuple[SentData, ...]) -> Iterator[events.Event]:
    """Those that the host does not keep yet. What a broken link left there is continued."""
    far = Client(connection)
    for name, contents in data:
        try:
            far.data_keep(contents.digest, name)
        except FarSideError as error:
            if error.kind != "incomplete":
                raise
        else:
            continue
        yield events.Noted(f"Sending {name}, {_amount(contents.files, contents.size)}, once for this machine.")
        yield from send_contents(connection, contents)
        far.data_keep(contents.digest, name)


def _refuse_shipped(wishes: tuple[DataWish, ...], manifest: bytes) -> None:
    if not wishes:
        return
    shipped = [row[0] for row in json.loads(manifest)["files"]]
    within = {folder: each for each in reversed(shipped) for folder in (*folders_above(each), each)}
    files = frozenset(shipped)
    for wish in wishes:
        above = (each for each in folders_above(wish.target) if each in files)
        taken = within.get(wish.target) or next(above, None)
        if taken is not None:
            raise ProjectError(
                f"`{taken}` ships with the project, so no data can be put at `{wish.target}`.",
                f"Name another place, or leave it out by a line in .amlignore: /{taken}",
            )


def _there(wish: DataWish, connection: Connection | None) -> Given:
    """What lies on the machine anyway."""
    path = wish.source
    source: Text = text(Hole.ACCOUNT, path[1:]) if path == "~" or path.startswith("~/") else text(path)
    record = GivenData(wish.target, f"{wish.place}:{path}", is_listing=True)
    if connection is not None:
        try:
            seen = Client(connection).data_look(path)
        except FarSideError as error:
            if error.kind != "not-found":
                raise
            raise ProjectError(f"The data on {wish.place} cannot be used: {error.message}", error.hint) from error
        record = replace(record, digest=seen.digest, files=seen.files, size=seen.size, is_whole=seen.is_whole)
    return Given((DataFolder(source, wish.target),), (record,))


def _from_here(wish: DataWish, intent: Intent, context: Context, keeps: bool) -> Generator[events.Event, None, Given]:
    place = place_of(wish, intent.project, context)
    is_folder = os.path.isdir(place)
    real = real_path(place)
    places = list_folder(real) if is_folder else {os.path.basename(place): real}
    key = hashlib.sha256(os.fsencode(place)).hexdigest()[:16]
    reading = read_contents(places, intent.project.state_directory / _CACHES / key, keeps)
    contents = yield from told(reading, wish.source)
    record = GivenData(wish.target, wish.source, contents.digest, contents.files, contents.size)
    if intent.product.host.is_here:
        return Given((DataFolder(text(place), wish.target),), (record,))
    inner = "" if is_folder else f"/{os.path.basename(place)}"
    source = text(Hole.HOME, f"/data/{contents.digest}/tree{inner}")
    name = os.path.basename(place) or Path(place).anchor
    return Given((DataFolder(source, wish.target, contents.digest),), (record,), (SentData(name, contents),))


def _amount(files: int, size: int) -> str:
    return f"{format_size(size)} in {files} file{'' if files == 1 else 's'}"
