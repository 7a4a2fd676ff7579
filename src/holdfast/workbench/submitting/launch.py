"""Launching a run: snapshot, record, start, follow. Nothing is started before the record is on disk."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.codec import encode
from holdfast.errors import PROBLEMS_SHOWN, ProjectError
from holdfast.frozen import asdict, replace
from holdfast.given_files import GoneOnFrom
from holdfast.history.index import Index
from holdfast.history.run_folder import RunFolders
from holdfast.hosts.connection import Connection
from holdfast.model import Submission
from holdfast.plan import Plan
from holdfast.project.folder import Project, run_prefix
from holdfast.project.gpu_wishes import in_force
from holdfast.project.runconfig import RunConfiguration
from holdfast.snapshots.editable import editable_warnings
from holdfast.snapshots.git_files import revision
from holdfast.snapshots.ignore import explain
from holdfast.snapshots.store import LookingStore, ObjectStore
from holdfast.snapshots.take import Selection, Snapshot, SnapshotListener, take_snapshot
from holdfast.workbench.following.follower import Follower
from holdfast.workbench.following.mirror import writer_lock
from holdfast.workbench.following.session import Session
from holdfast.workbench.reach import events
from holdfast.workbench.reach.context import Context
from holdfast.workbench.submitting.ignored_files import included, not_again, offer
from holdfast.workbench.submitting.interpreter import find_python
from holdfast.workbench.submitting.job import Job
from holdfast.workbench.submitting.run_plan import Identity, Intent, make_plan
from holdfast.workbench.submitting.start import Order, start
from holdfast.written_files import DEFAULT_LIMIT, OutputWishes

_NO_RUN_YET = "<run>"


def rehearse(intent: Intent, context: Context) -> Iterator[events.Event]:
    """Up to the plan, which is shown and not carried out."""
    yield from _warnings(intent, context)
    store = LookingStore(_objects(intent.project))
    snapshot = yield from _snapshot(intent, context, store)
    intent = yield from _with_data(intent, store, snapshot.digest, None, context)
    yield events.Planned(make_plan(intent, Identity(_NO_RUN_YET, _NO_RUN_YET, snapshot.digest), context))


def launch(
    intent: Intent, connection: Connection, secrets: Mapping[str, str], context: Context, wait: bool
) -> Iterator[events.Event]:
    yield from _warnings(intent, context)
    store = ObjectStore(_objects(intent.project))
    snapshot = yield from _snapshot(intent, context, store)
    if intent.request.environment.ship_packages:
        from holdfast.workbench.submitting.ship_packages import ship

        intent = yield from ship(intent, connection, secrets, context)
    yield from not_again(intent)
    if intent.earlier is not None:
        from holdfast.workbench.submitting.earlier_files import settle_earlier

        intent = yield from settle_earlier(intent, intent.earlier, connection, context)
    intent = yield from _with_data(intent, store, snapshot.digest, connection, context)
    folders = RunFolders(intent.project.state_directory)
    run_id = folders.reserve(run_prefix(intent.project.name), context.now())
    with contextlib.ExitStack() as stack:
        order = _record(intent, folders, run_id, snapshot, context, stack)
        yield events.RunCreated(run_id)
        session = Session(intent.project, run_id, intent.product.host, context)
        stack.enter_context(session.writing(held=True))
        session.share(connection)
        queued = yield from start(session, order, secrets, wait)
        yield events.RunStarted(run_id, queued)
        if wait:
            yield from Follower(session).follow()


def _with_data(
    intent: Intent, store: ObjectStore, snapshot: str, connection: Connection | None, context: Context
) -> Generator[events.Event, None, Intent]:
    if not intent.configuration.run.data or intent.request.prepare_only:
        return intent
    from holdfast.workbench.submitting.given_data import settle_data

    return (yield from settle_data(intent, store.read(snapshot), connection, context))


def _record(
    intent: Intent,
    folders: RunFolders,
    run_id: str,
    snapshot: Snapshot,
    context: Context,
    stack: contextlib.ExitStack,
) -> Order:
    """Write the run's folder, whole or not at all. It appears with its writer's lock held, on `stack`, so that no
    other process takes it for one whose submission was cut."""
    try:
        stack.enter_context(writer_lock(folders.draft(run_id)))
        plan = make_plan(intent, Identity(run_id, os.urandom(16).hex(), snapshot.digest), context)
        submission, configuration = _submission(intent, plan, context), _configuration_record(intent)
        folders.commit(run_id, submission, encode(plan), configuration)
    except BaseException:
        folders.abandon(run_id)
        raise
    return Order(plan, encode(submission), configuration, data=intent.given.sent)


def _warnings(intent: Intent, context: Context) -> Iterator[events.Event]:
    configuration = intent.configuration
    for problem in configuration.warnings[:PROBLEMS_SHOWN]:
        yield events.Warned(str(problem))
    if len(configuration.warnings) > PROBLEMS_SHOWN:
        yield events.Warned(f"{len(configuration.warnings) - PROBLEMS_SHOWN} more like these.")
    if configuration.run.ignored:
        names = ", ".join(f"`{name}`" for name in configuration.run.ignored)
        verb, are = ("belongs", "is") if len(configuration.run.ignored) == 1 else ("belong", "are")
        yield events.Warned(f"{configuration.run.file}: {names} {verb} to data preparation and {are} ignored.")
    spec = configuration.environment
    if spec is not None and spec.credentials:
        yield events.Warned(
            f"`{spec.file}` has a password in an address. It is hidden from the record, but the file is part of the "
            "snapshot, which is kept.",
            "Write a variable instead, as https://${TOKEN}@host/simple, and set it in the shell.",
        )
    if intent.product.is_this_system and spec is None:
        python = find_python(configuration.target.python_location, intent.project.root, context)
        for warning in editable_warnings(Path(python), intent.project.root, context.user_home, context.environment):
            yield events.Warned(warning.message, warning.remedy)


def _objects(project: Project) -> Path:
    return project.state_directory / "objects"


def _snapshot(intent: Intent, context: Context, store: ObjectStore) -> Generator[events.Event, None, Snapshot]:
    project = intent.project
    include = included(intent)
    snapshot = yield from _in_background(project, Selection(context.environment, include), store)
    if store.keeps and not intent.request.prepare_only:
        agreed = yield from offer(intent, snapshot, context)
        if agreed:
            include = replace(include, agreed=(*include.agreed, *agreed))
            snapshot = yield from _in_background(project, Selection(context.environment, include), store)
    for warning in snapshot.warnings:
        yield events.Warned(f"{warning.path}: {warning.message}" if warning.path else warning.message, warning.remedy)
    if not intent.request.prepare_only:
        _require_script(project, store.read(snapshot.digest), intent.job, context)
    yield events.SnapshotTaken(snapshot.digest, snapshot.files, snapshot.bytes, snapshot.new_objects)
    return snapshot


def _in_background(
    project: Project, selection: Selection, store: ObjectStore
) -> Generator[events.Event, None, Snapshot]:
    """Take the snapshot in a thread, so that a large one can tell how far it is."""
    done: list[Snapshot] = []
    failed: list[BaseException] = []
    progress, much = [(0, 0)], list[events.ReadingMuch]()

    def tell(files: int, size: int) -> None:
        progress[0] = (files, size)

    listener = SnapshotListener(tell, lambda tree: much.append(events.ReadingMuch(str(project.root), tree)))

    def take() -> None:
        try:
            done.append(take_snapshot(project.root, project.state_directory, listener, selection, store=store))
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            failed.append(error)

    worker = threading.Thread(target=take, daemon=True)
    worker.start()
    while worker.is_alive():
        worker.join(0.5)
        yield from (much.pop() for _ in tuple(much))
        if worker.is_alive():
            yield events.SnapshotProgressed(*progress[0])
    if failed:
        raise failed[0]
    return done[0]


def _require_script(project: Project, manifest: bytes, job: Job, context: Context) -> None:
    if not job.script:
        return
    if b"[" + json.dumps(job.script).encode() + b"," in manifest:  # an entry begins with its path
        return
    from holdfast.workbench.following.missing_file import way_in

    rule = explain(project.root, job.script, context.environment)
    where = f" by `{rule.pattern}` ({rule.source}:{rule.line})" if rule and rule.line else ""
    raise ProjectError(
        f"The script `{job.script}` is left out of the snapshot{where}.",
        way_in(project.root, job.script, context.environment),
    )


def _submission(intent: Intent, plan: Plan, context: Context) -> Submission:
    project, configuration, job = intent.project, intent.configuration, intent.job
    number = Index(project.state_directory).next_run_number(job.name, plan.run)
    return Submission(
        run_id=plan.run,
        run_number=number,
        project_id=project.id,
        project_name=project.name,
        script_name=job.name,
        arguments=job.arguments,
        run_configuration=configuration.run.name,
        target=configuration.target.name,
        target_type=configuration.target.type,
        snapshot=plan.snapshot,
        created=context.now(),
        generation=plan.generation,
        parent_run_id=context.environment.get("HOLDFAST_RUN_ID") or None,
        tracked=configuration.run.tracked_run and not intent.request.prepare_only,
        properties=_properties(intent),
        sync_outputs=intent.request.sync_outputs,
        fetch_outputs=intent.request.fetch_outputs,
        output_wishes=_output_wishes(intent),
        command=job.command,
        folder=job.folder,
        data=intent.given.recorded,
        earlier=None if intent.earlier is None else GoneOnFrom(intent.earlier.run, intent.earlier.path),
        terminal=intent.request.how.terminal,
    )


def _output_wishes(intent: Intent) -> OutputWishes:
    run = _configured(intent)
    return OutputWishes(run.outputs, DEFAULT_LIMIT if run.outputs_limit is None else run.outputs_limit)


def _configured(intent: Intent) -> RunConfiguration:
    """With what was typed in place of what is written."""
    request, run = intent.request, intent.configuration.run
    limit = request.outputs_limit if request.outputs_limit is not None else run.outputs_limit
    gpu = in_force(request.gpu, run.gpu)
    include = tuple(dict.fromkeys((*included(intent).typed, *run.include)))
    return replace(run, gpu=gpu, outputs=request.output_globs or run.outputs, outputs_limit=limit, include=include)


def _properties(intent: Intent) -> dict[str, str]:
    from holdfast import __version__

    found, of_run = revision(intent.project.root), intent.request.environment.of_run
    known = {"holdfast": __version__, **({"commit": found} if found else {})}
    packages = intent.configuration.packages
    if packages is not None and packages.written and of_run is None:
        known["packages"] = packages.written
    if of_run is not None:
        known["environment_of"] = RunFolders(intent.project.state_directory).resolve(of_run)
    return known


def _configuration_record(intent: Intent) -> Mapping[str, Any]:
    """For comparison, so with what was typed in place of what is written. Values of variables are the user's own words
    in a file of the project, so they are kept here too."""
    configuration = intent.configuration
    return {
        "run_configuration": _plain(asdict(_configured(intent))),
        "compute_target": _plain(asdict(configuration.target)),
    }


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
