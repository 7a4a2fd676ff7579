"""What this host knows of runs, for clients that did not submit them: which there are, their records, and the contents
of their snapshots."""

import json
import os
import zlib
from typing import Any, Dict, Iterator, List, Optional, Tuple

from holdfast.farside.system import foreign
from holdfast.farside.system.files import find_object, names_in, read_record
from holdfast.farside.system.frames import CHUNK
from holdfast.farside.system.layout import BOUND, Home

PAGE = 5000
_MOST_RECORDS = 2 << 20
"""Bytes of records in one answer."""

Message = Dict[str, Any]


def known_runs(home: Home, message: Message) -> Dict[str, Any]:
    """A page of `[project, run, generation]` after the pair `after`, of `project` if one is named, and only those whose
    id is, begins with or ends with `match`. Runs that never began are left out."""
    after = tuple(message.get("after") or ("", ""))
    match = message.get("match")
    found: List[List[str]] = []
    more = False
    for project, run in all_runs(home, message.get("project")):
        if (project, run) <= after or not (match is None or run.startswith(match) or run.endswith(match)):
            continue
        plan = _plan(home, project, run)
        if plan is None:
            continue
        if len(found) == PAGE:
            more = True
            break
        found.append([project, run, str(plan.get("generation", ""))])
    return {"runs": found, "more": more}


def known_projects(home: Home, message: Message) -> List[List[Any]]:
    """`[id, name, number of runs]` of each project; the name is empty where no run says it."""
    found: Dict[str, List[Any]] = {}
    for project, run in all_runs(home, None):
        plan = _plan(home, project, run)
        if plan is None:
            continue
        row = found.setdefault(project, [project, "", 0])
        row[2] += 1
        if not row[1]:
            submission = read_record(os.path.join(home.run(project, run), "submission.json"))
            row[1] = str(submission.get("project_name", "")) if submission else ""
    return list(found.values())


def records(home: Home, message: Message) -> List[Optional[Dict[str, Any]]]:
    """What the host has written down of the runs `[project, run]`: as many as fit into one answer, the first at least.
    One that is gone, or never began, is null."""
    found: List[Optional[Dict[str, Any]]] = []
    room = _MOST_RECORDS
    for project, run in message["runs"]:
        record = _record(home, project, run)
        room -= len(json.dumps(record))
        if found and room < 0:
            break
        found.append(record)
    return found


def objects(home: Home, message: Message) -> Tuple[Dict[str, Any], bytes]:
    """The contents of `digests`, in their order, as many as fit into one answer; of a first one that does not fit the
    piece that begins at `offset`. `sizes` has the whole size of each that is in the answer, null for one that is not on
    this host. The body is compressed.

    A run on this machine reads contents where the project keeps them, so its plan's stores count too."""
    stores = [home.objects()] + _stores(home, message["project"], message["run"])
    offset = int(message.get("offset", 0))
    sizes: List[Optional[int]] = []
    pieces: List[bytes] = []
    room = CHUNK
    for digest in message["digests"]:
        path = find_object(stores, digest)
        size = None if path is None else os.path.getsize(path)
        if sizes and (size or 0) > room:
            break
        sizes.append(size)
        if path is not None:
            with open(path, "rb") as source:
                source.seek(offset)
                data = source.read(room)
            pieces.append(data)
            room -= len(data)
        offset = 0
        if room <= 0:
            break
    return {"sizes": sizes}, zlib.compress(b"".join(pieces), 1)


def all_runs(home: Home, only: Optional[str] = None) -> Iterator[Tuple[str, str]]:
    """Project and run of each run's folder, of one project or of all."""
    projects = names(home.runs()) if only is None else [only]
    for project in projects:
        for run in names(os.path.dirname(home.run(project, "any"))):
            yield project, run


def _plan(home: Home, project: str, run: str) -> Optional[Dict[str, Any]]:
    """The run's plan; None for what is no run, or one that was given up before it began."""
    plan = read_record(os.path.join(home.run(project, run), "plan.json"))
    return None if plan is None or plan.get("given_up") else plan


def _record(home: Home, project: str, run: str) -> Optional[Dict[str, Any]]:
    plan = _plan(home, project, run)
    if plan is None:
        return None
    folder = home.run(project, run)
    return {
        "project": project,
        "run": run,
        "plan": plan,
        "submission": read_record(os.path.join(folder, "submission.json")),
        "configuration": read_record(os.path.join(folder, "configuration.json")),
    }


def _stores(home: Home, project: str, run: str) -> List[str]:
    bound = read_record(os.path.join(home.run(project, run), BOUND)) or _plan(home, project, run) or {}
    return [store for store in foreign.listing(bound.get("stores")) if isinstance(store, str) and os.path.isabs(store)]


def names(folder: str) -> List[str]:
    """What is in a folder, sorted, without hidden names: those are being made or removed."""
    return [name for name in names_in(folder, is_strict=True) if not name.startswith(".")]
