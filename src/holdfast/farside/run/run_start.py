"""Starting a run by its engine, once: however often it is asked for, and whatever is cut meanwhile."""

import os
import time
from typing import Any, Dict, Optional

from holdfast.farside.engines.engine import DIRECT, ENGINE, UNANSWERED, UNKNOWN, Engine, NewRun, Owner, Plan
from holdfast.farside.engines.owners import engine_name, engine_named, owner_of, queued_by, write_owner
from holdfast.farside.machine import identity
from holdfast.farside.run.guardian import become_guardian
from holdfast.farside.run.liveness import adjudicate
from holdfast.farside.run.run_files import create_folder, write_created, write_secrets
from holdfast.farside.system import kernel
from holdfast.farside.system.files import read_record, remove_tree
from holdfast.farside.system.journal import JournalWriter
from holdfast.farside.system.layout import JOURNAL, STARTER_BYTE, Home
from holdfast.farside.system.nofollow import open_plain
from holdfast.farside.system.refusal import Refused

UNSETTLED = "unsettled"
"""Of a refusal: whether the run starts is open."""
PATIENCE = 60.0
"""Seconds for another agent that hands the same run to its engine."""


def start(home: Home, plan: Plan, secrets: Dict[str, str], records: Dict[str, Any]) -> bool:
    """Start a run. False if this very run (same generation) was started before; another run of that name is refused.
    `records` of it (`submission`, `configuration`) are kept for clients that did not submit it.

    The run's folder appears under its name only when a living guardian holds its lock, or, with an engine that starts
    the guardian later, whole and with its owner: a cut at any moment leaves the run existing once or not at all.
    """
    final = home.run(plan["project"], plan["run"])
    engine = engine_named(home, engine_name(plan))
    run = NewRun(home, plan, secrets, records, become_guardian)
    if engine.needs_folder:
        return _hand_over(engine, run, final)
    if is_started(final, plan):
        return False
    try:
        engine.start(run)
    except (Refused, OSError):
        if is_started(final, plan):
            return False
        raise
    return True


def queued(home: Home, plan: Plan) -> Optional[str]:
    """What the engine says of a run that waits for it; None for one that does not."""
    if engine_name(plan) == DIRECT:
        return None
    events = JournalWriter(os.path.join(home.run(plan["project"], plan["run"]), JOURNAL)).events()
    texts = [str(event.get("text", "")) for event in events if event["e"] == "queued"]
    return (texts or [""])[-1] if queued_by(events) else None


def is_started(final: str, plan: Dict[str, Any]) -> bool:
    path = os.path.join(final, "plan.json")
    there = read_record(path)
    if there is None and not os.path.lexists(path):
        return False
    if there is None:  # a power cut took it; the journal had been kept before
        created = [event for event in JournalWriter(os.path.join(final, JOURNAL)).events() if event["e"] == "created"]
        there = created[0] if created else {}
    if there.get("generation") != plan["generation"]:
        raise Refused("exists", "There is another run `%s` on this host." % plan["run"])
    if there.get("given_up"):
        raise Refused("exists", "The run `%s` was given up before it started." % plan["run"])
    return True


def _hand_over(engine: Engine, run: NewRun, final: str) -> bool:
    """The folder first, then the engine. Where that was cut in between, it is asked whether it knows the run."""
    is_new = not is_started(final, run.plan)
    lock = _make_folder(run, final) if is_new else None
    if lock is None:
        is_new, lock = False, _lock(final)
    try:
        if not is_new and not is_started(final, run.plan):
            raise Refused(ENGINE, "The engine `%s` refused the run." % engine_name(run.plan))
        owner = owner_of(final)
        if owner.handle:
            return False
        if not is_new:
            seen = engine.look([owner])[owner]
            if seen.state == UNKNOWN:
                raise Refused(UNSETTLED, "`%s` could not be asked about the run: %s" % (owner.engine, seen.said))
            if seen.handle:
                write_owner(final, owner._replace(handle=seen.handle))
                return False
        write_owner(final, owner._replace(handle=_started(engine, run, final)))
    finally:
        os.close(lock)
    adjudicate(final)  # notes what the engine says of it
    return True


def _make_folder(run: NewRun, final: str) -> Any:
    """Returns the descriptor of the run's lock, held as its starter; None where another was quicker."""
    plan, name = run.plan, engine_name(run.plan)
    new = run.home.new_run(plan["project"], "%s-%d" % (plan["generation"], os.getpid()))
    try:
        create_folder(new, plan, run.records)
        write_secrets(new, run.secrets)
        write_owner(new, Owner(name, plan["generation"]))
        write_created(new, plan, identity.machine_id(run.home), engine=name)
        lock = os.open(os.path.join(new, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        kernel.lock(lock, STARTER_BYTE)
        os.rename(new, final)
    except BaseException:
        remove_tree(new)
        if os.path.isdir(final) and is_started(final, plan):
            return None
        raise
    return lock


def _lock(final: str) -> int:
    lock = open_plain(os.path.join(final, "lock"), os.O_RDWR)
    deadline = time.monotonic() + PATIENCE
    while not kernel.lock(lock, STARTER_BYTE):
        if time.monotonic() > deadline:
            os.close(lock)
            raise Refused(UNSETTLED, "Another process is handing the run to its engine.")
        time.sleep(0.05)
    return lock


def _started(engine: Engine, run: NewRun, final: str) -> str:
    try:
        return engine.start(run)
    except Refused as refusal:
        if refusal.kind == UNANSWERED:
            raise Refused(UNSETTLED, refusal.message, refusal.hint) from refusal
        remove_tree(final)
        raise


def start_or_give_up(home: Home, plan: Dict[str, Any], secrets: Dict[str, str], records: Dict[str, Any]) -> bool:
    """As `start`. A guardian that did not come in time finds the name taken when it comes later, so that a
    start that was answered as failed stays one."""
    try:
        return start(home, plan, secrets, records)
    except Refused as refusal:
        if refusal.kind != UNANSWERED:
            raise
        try:
            is_given_up = give_up(home, dict(plan, detail=refusal.message))
        except OSError as error:
            raise Refused(UNSETTLED, refusal.message, refusal.hint) from error
        if is_given_up:
            raise
    return True


def give_up(home: Home, message: Dict[str, Any]) -> bool:
    """Take the name of a run that was submitted and did not begin, for the reason `detail`. False if it did begin.
    The first one to rename has the name: a run begins once, or never, and both sides know which."""
    plan = {key: message[key] for key in ("run", "project", "generation")}
    final = home.run(plan["project"], plan["run"])
    new = home.new_run(plan["project"], plan["generation"] + "-given-up-%d" % os.getpid())
    create_folder(new, dict(plan, format=1, given_up=True), {})
    write_created(new, dict(plan, format=1), identity.machine_id(home))
    JournalWriter(os.path.join(new, JOURNAL)).append(
        "ended", reason="not-started", code=None, signal=None, detail=str(message.get("detail", ""))[:2000], by="agent"
    )
    os.close(os.open(os.path.join(new, "lock"), os.O_WRONLY | os.O_CREAT, 0o600))
    try:
        os.rename(new, final)
    except OSError:
        remove_tree(new)
        if not os.path.isdir(final):
            raise
        return False
    return True
