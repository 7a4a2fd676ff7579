"""A run that was submitted and never began: its name is taken, so that a late `start` cannot begin it."""

import os
from typing import Any, Dict

from holdfast.farside.layout import JOURNAL, Home
from holdfast.farside.machine import identity
from holdfast.farside.refusal import Refused
from holdfast.farside.run import guardian
from holdfast.farside.run.files import remove_tree
from holdfast.farside.run.guardian import create_folder, write_created
from holdfast.farside.run.journal import Journal

UNSETTLED = "unsettled"
"""Of a refusal: whether the run starts is open."""


def start_or_give_up(home: Home, plan: Dict[str, Any], secrets: Dict[str, str], records: Dict[str, Any]) -> bool:
    """As `guardian.start`. A guardian that did not come in time finds the name taken when it comes later, so that a
    start that was answered as failed stays one."""
    try:
        return guardian.start(home, plan, secrets, records)
    except Refused as refusal:
        if refusal.kind != guardian.UNANSWERED:
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
    Whoever renames first has the name: a run begins once, or never, and both sides know which."""
    plan = {key: message[key] for key in ("run", "project", "generation")}
    final = home.run(plan["project"], plan["run"])
    new = home.new_run(plan["project"], plan["generation"] + "-given-up-%d" % os.getpid())
    create_folder(new, dict(plan, format=1, given_up=True), {})
    write_created(new, dict(plan, format=1), identity.machine_id(home))
    Journal(os.path.join(new, JOURNAL)).append(
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
