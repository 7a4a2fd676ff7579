"""A run that was submitted and never began: its name is taken, so that a late `start` cannot begin it."""

import os
from typing import Any, Dict

from holdfast.farside.files import remove_tree
from holdfast.farside.guardian import create_folder, write_created
from holdfast.farside.journal import Journal
from holdfast.farside.layout import JOURNAL, Home


def give_up(home: Home, message: Dict[str, Any]) -> bool:
    """Take the name of a run that was submitted and did not begin, so that a late `start` cannot begin it. False if it
    did begin. Whoever renames first has the name: a run begins once, or never, and both sides know which."""
    plan = {key: message[key] for key in ("run", "project", "generation")}
    final = home.run(plan["project"], plan["run"])
    new = home.new_run(plan["project"], plan["generation"] + "-given-up-%d" % os.getpid())
    create_folder(new, dict(plan, format=1, given_up=True), {})
    write_created(new, dict(plan, format=1))
    Journal(os.path.join(new, JOURNAL)).append(
        "ended", reason="not-started", code=None, signal=None, detail="", by="agent"
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
