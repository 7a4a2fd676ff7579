"""The folder of a run as it is made: by its guardian or, where an engine starts that later, before it."""

import errno
import json
import os
from typing import Any, Dict

from holdfast.farside.system import kernel
from holdfast.farside.system.files import read_record, unlink
from holdfast.farside.system.journal import JournalWriter
from holdfast.farside.system.layout import CONTROL, JOURNAL, OUTPUT, RESERVE, SECRETS, SHIPPED, STACKS
from holdfast.farside.system.ownership import make_private

_RESERVE_SIZE = 1 << 16


def create_folder(path: str, plan: Dict[str, Any], records: Dict[str, Any]) -> None:
    make_private(os.path.dirname(path))
    os.mkdir(path, 0o700)
    for name in ("metrics", "uploads"):
        os.mkdir(os.path.join(path, name))
    for name in (OUTPUT, CONTROL, STACKS):
        os.close(os.open(os.path.join(path, name), os.O_WRONLY | os.O_CREAT, 0o600))
    for name, record in records.items():
        with open(os.path.join(path, name + ".json"), "w") as target:
            target.write(json.dumps(record))  # twice as quick as `dump`
    with open(os.path.join(path, "plan.json"), "w") as target:
        target.write(json.dumps(plan))
    with open(os.path.join(path, RESERVE), "wb") as reserve:
        try:
            os.posix_fallocate(reserve.fileno(), 0, _RESERVE_SIZE)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise


def write_created(folder: str, plan: Dict[str, Any], machine: str, **more: Any) -> None:
    """`engine`, of `more`: the run waits for that one."""
    JournalWriter(os.path.join(folder, JOURNAL)).begin(
        format=plan["format"],
        run=plan["run"],
        project=plan["project"],
        generation=plan["generation"],
        boot=kernel.boot_id(),
        machine=machine,
        host=os.uname().nodename,
        user=_user(),
        farside=os.path.basename(SHIPPED),
        **more,
    )


def write_secrets(folder: str, secrets: Dict[str, str]) -> None:
    """For a supervisor that an engine starts later: for this account alone, until it has been read."""
    descriptor = os.open(os.path.join(folder, SECRETS), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as target:
        target.write(json.dumps(secrets))


def take_secrets(folder: str) -> Dict[str, str]:
    """Read and deleted; a run that never begins loses them too."""
    path = os.path.join(folder, SECRETS)
    found = read_record(path)
    unlink(path)
    return {str(name): str(value) for name, value in (found or {}).items()}


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
