"""Runs that were submitted elsewhere: the host has their records, so that run id and target are enough to see them here
too."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.errors import HostError, ProjectError, UnknownName, UsageError
from holdfast.frozen import dataclass, replace
from holdfast.history.folder import RunFolders
from holdfast.history.values import UnreadableError, submission_from_json
from holdfast.hosts.connection import Connection
from holdfast.model import IMPORTED, Place, Submission
from holdfast.project.compute import ComputeTarget
from holdfast.project.folder import Project, ensure_identity, ensure_state_directory
from holdfast.project.sizes import format_size
from holdfast.workbench import events
from holdfast.workbench.following.follower import Follower
from holdfast.workbench.machines import contacts
from holdfast.workbench.records.recovering import FarSnapshot, recover_snapshot
from holdfast.workbench.records.refresh import FETCHED_BY_THE_WAY, HostRuns, look
from holdfast.workbench.records.runs import Products
from holdfast.workbench.replies import greeting, rows, text, truth, understood
from holdfast.workbench.surroundings import Surroundings
from holdfast.workbench.targets import Product

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}\Z")


@dataclass(frozen=True)
class FarProject:
    """A project that has runs on a host; `name` is empty where none of them says it."""

    id: str
    name: str
    runs: int

    def __str__(self) -> str:
        return f"{self.name or 'without a name'} (id {self.id}, {self.runs} {'run' if self.runs == 1 else 'runs'})"


@dataclass(frozen=True)
class FarRun:
    project_id: str
    run_id: str
    generation: str


@dataclass(frozen=True)
class FarRecord:
    """What the host has written down of a run. `submission` and `configuration` are None where an earlier version of
    Holdfast started it."""

    run: FarRun
    plan: Mapping[str, Any]
    submission: Submission | None
    configuration: Mapping[str, Any] | None
    created: float | None


def import_run(project: Project, run: str, target: str, around: Surroundings) -> Iterator[events.Event]:
    """Bring the run that a person means by `run` from `target`, whichever project it belongs to."""
    with _Importer(project, target, around) as importer:
        found = importer.runs(None, run)
        whole = [each for each in found if each.run_id == run] or found
        if not whole:
            raise UsageError(
                f"There is no run `{run}`, neither here nor on `{target}`.",
                f"The runs that `{target}` has of this project: holdfast history import -t {target}",
            )
        if len(whole) > 1:
            names = ", ".join(each.run_id for each in whole[:5]) + (" …" if len(whole) > 5 else "")
            raise UsageError(
                f"`{run}` could be any of {len(whole)} runs on `{target}`.", f"Give more of the id: {names}"
            )
        yield from importer.bring(whole, FETCHED_BY_THE_WAY)


def import_runs(
    project: Project, target: str, wanted: str | None, everything: bool, around: Surroundings
) -> Iterator[events.Event]:
    """Bring the records of all runs that `target` has of a project: this one, or the one called `wanted` by name or id;
    with `everything`, of all. A run that is here already is left alone."""
    with _Importer(project, target, around) as importer:
        projects = importer.projects()
        chosen = projects if everything else [_chosen(project, target, wanted, projects)]
        yield from importer.bring([run for each in chosen for run in importer.runs(each.id)], None)


class _Importer:
    """One connection to the host of a target, and this project's folders."""

    def __init__(self, project: Project, target: str, around: Surroundings) -> None:
        self._project, self._around = project, around
        self._target, self._product = _found(project, target, around)
        self._folders = RunFolders(project.state_directory)
        self._open: Connection | None = None

    def __enter__(self) -> _Importer:
        return self

    def __exit__(self, *_: object) -> None:
        if self._open is not None:
            self._open.close()

    def projects(self) -> list[FarProject]:
        return _projects(self._request("known-projects"))

    def runs(self, project_id: str | None, match: str | None = None) -> list[FarRun]:
        found: list[FarRun] = []
        after: list[str] | None = None
        while True:
            more, is_last = _page(self._request("known-runs", {"project": project_id, "match": match, "after": after}))
            found += more
            if is_last:
                return [each for each in found if _RUN_ID.match(each.run_id) and not each.run_id.endswith(".new")]
            after = [found[-1].project_id, found[-1].run_id]

    def bring(self, runs: Sequence[FarRun], limit: int | None) -> Iterator[events.Event]:
        """Record, snapshot, then everything that a look at the host brings. Of the snapshot at most `limit` bytes."""
        self._project = ensure_identity(self._project, self._around.user_home)
        ensure_state_directory(self._project, self._around.user_home)
        wanted = []
        for run in runs:
            if not self._folders.path(run.run_id).exists():
                wanted.append(run)
            elif self._folders.submission(run.run_id).generation != run.generation:
                yield events.Warned(
                    f"{run.run_id} was not imported: there is another run of that id here, which began at the same "
                    f"moment as the one on `{self._target.name}`.",
                    "Import it into another copy of the project.",
                )
        brought = []
        for record in self._records(wanted):
            lacking = self._write(record)
            if lacking is not None:
                brought.append(record.run)
                yield events.Imported(record.run.run_id, lacking)
                yield from self._bring_snapshot(record, limit)
        yield from self._look(brought)

    def _request(self, operation: str, fields: Mapping[str, Any] | None = None) -> Any:
        return self._connection().request(operation, fields)

    def _connection(self) -> Connection:
        if self._open is None:
            self._open = self._product.host.connect()
        return self._open

    def _records(self, runs: list[FarRun]) -> Iterator[FarRecord]:
        left = list(runs)
        while left:
            answer = self._request("records", {"runs": [[each.project_id, each.run_id] for each in left]})
            if not isinstance(answer, list) or not 0 < len(answer) <= len(left):
                raise HostError(f"`{self._target.name}` sent no records of its runs.", "Try again.")
            for run, data in zip(left, answer, strict=False):
                if data is not None:  # else it was removed meanwhile
                    yield _record(run, data)
            left = left[len(answer) :]

    def _write(self, record: FarRecord) -> tuple[str, ...] | None:
        """The run's folder, whole or not at all. Returns what the host does not know of it; None when another process
        brought it first."""
        submission, lacking = _submission(record, self._target)
        if not self._folders.claim(record.run.run_id):
            return None
        self._folders.commit(record.run.run_id, submission, record.plan, record.configuration or {})
        if self._place is not None:
            self._folders.write_place(record.run.run_id, self._product.host.name, self._place)
        return lacking

    @functools.cached_property
    def _place(self) -> Place | None:
        return greeting(self._request("hello")).place

    def _bring_snapshot(self, record: FarRecord, limit: int | None) -> Iterator[events.Event]:
        run, target = record.run, self._target.name
        snapshot = FarSnapshot(run.project_id, run.run_id, str(record.plan.get("snapshot", "")))
        got = recover_snapshot(self._connection(), self._project.state_directory / "objects", snapshot, limit)
        if got.left:
            yield events.Warned(
                f"The code of {run.run_id} ({format_size(got.left)}) was left on `{target}`.",
                "`project restore` and `compare` need it; nothing else does.",
            )
        if got.missing:
            yield events.Warned(
                f"The code of {run.run_id} is not on `{target}` any more, so that it cannot be restored or compared.",
            )

    def _look(self, runs: list[FarRun]) -> Iterator[events.Event]:
        if not runs:
            return
        followers = tuple(Follower(self._project, each.run_id, self._product, self._around) for each in runs)
        together = HostRuns(self._product.host, self._target.name, followers)
        yield from look(together, self._connection, whole=())
        contacts.reached(self._project, self._product.host.name, self._around.now())


def _found(project: Project, name: str, around: Surroundings) -> tuple[ComputeTarget, Product]:
    from holdfast.project.compute import compute_names

    names = compute_names(project.root)
    if name not in names:
        raise UnknownName("compute target", name, names, "To attach one: holdfast computetarget attach")
    return Products(project, around).of_target(name)


def _chosen(project: Project, target: str, wanted: str | None, projects: list[FarProject]) -> FarProject:
    if not projects:
        raise ProjectError(
            f"`{target}` has no runs at all.", f"Is it the right account? holdfast computetarget show {target}"
        )
    if wanted is None:
        found = [each for each in projects if each.id == project.id]
    else:
        found = [each for each in projects if wanted in (each.id, each.name)]
        found = found or [each for each in projects if len(wanted) >= 4 and each.id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    listed = "It has: " + ", ".join(str(each) for each in projects[:20]) + (" …" if len(projects) > 20 else "")
    if found:
        raise UsageError(f"`{target}` has {len(found)} projects called `{wanted}`.", f"{listed}\nName one by its id.")
    what = (
        f"no project `{wanted}`"
        if wanted is not None
        else f"no runs of this project (id {project.id or 'not given yet'})"
    )
    raise ProjectError(
        f"`{target}` has {what}.", f"{listed}\nTo bring those of one: holdfast history import -t {target} --project ID"
    )


def _projects(answer: Any) -> list[FarProject]:
    with understood("known-projects"):
        return [FarProject(text(name), text(title), int(count)) for name, title, count in rows(answer)]


def _page(answer: Any) -> tuple[list[FarRun], bool]:
    """Runs, and whether there are no more."""
    with understood("known-runs"):
        runs = [FarRun(text(project), text(run), text(generation)) for project, run, generation in rows(answer["runs"])]
        is_last = not truth(answer["more"])
        if not runs and not is_last:
            raise ValueError("an empty page, and more to come")
        return runs, is_last


def _record(run: FarRun, data: Any) -> FarRecord:
    """What came over the wire, checked; raises HostError for what no far side sends."""
    plan = data.get("plan") if isinstance(data, dict) else None
    if not isinstance(plan, dict) or plan.get("generation") != run.generation or plan.get("run") != run.run_id:
        raise HostError(f"The host's record of `{run.run_id}` cannot be read.", "Its folder there may be damaged.")
    submission: Submission | None = None
    try:
        submission = submission_from_json(data.get("submission"))
        if (submission.run_id, submission.project_id) != (run.run_id, run.project_id):
            submission = None
    except UnreadableError:
        pass
    configuration, created = data.get("configuration"), data.get("created")
    return FarRecord(
        run,
        plan,
        submission,
        configuration if isinstance(configuration, dict) else None,
        float(created) if isinstance(created, int | float) else None,
    )


def _submission(record: FarRecord, target: ComputeTarget) -> tuple[Submission, tuple[str, ...]]:
    """The run as it was asked for, with the name that its target has here; and what of it is not known."""
    if record.submission is not None:
        properties = {**record.submission.properties, IMPORTED: f"from {target.name}"}
        lacking = () if record.configuration is not None else ("settings",)
        here = replace(record.submission, target=target.name, target_type=target.type, properties=properties)
        return here, lacking
    script, *arguments = _words(record.plan) or ("",)
    made = Submission(
        run_id=record.run.run_id,
        run_number=0,
        project_id=record.run.project_id,
        project_name=record.run.run_id.rpartition("_")[0],
        script_name=script,
        arguments=tuple(arguments),
        run_configuration="",
        target=target.name,
        target_type=target.type,
        snapshot=str(record.plan.get("snapshot", "")),
        created=record.created if record.created is not None else _moment(record.run.run_id),
        generation=record.run.generation,
        properties={IMPORTED: f"from {target.name}"},
    )
    return made, ("number", "run configuration", "settings")


def _words(plan: Mapping[str, Any]) -> list[str]:
    """Script and arguments: what stands after the interpreter in the plan's command."""
    command = plan.get("command")
    argv = command.get("argv") if isinstance(command, dict) else None
    words = [each if isinstance(each, str) else "…" for each in argv[1:]] if isinstance(argv, list) else []
    if words and words[0].startswith("./-"):  # as the plan writes a script whose name begins so
        words[0] = words[0][2:]
    return words


def _moment(run_id: str) -> float:
    digits = run_id.rpartition("_")[2]
    return int(digits) / 1000 if digits.isdecimal() and digits.isascii() and len(digits) < 15 else 0.0
