"""The engine of a host that has no scheduler: a process that outlives the connection, by a double fork or, where the
system ends a user's processes at logout, in a scope of the user's own service manager, which goes on after it."""

import json
import os
import signal
import sys
from typing import Any, Dict, List, Sequence, Tuple

from holdfast.farside.engines.engine import (
    GONE,
    RUNNING,
    SHOWN,
    UNANSWERED,
    UNKNOWN,
    Engine,
    EngineLook,
    HostPaths,
    NewRun,
    Owner,
    Plan,
    Request,
    Work,
)
from holdfast.farside.machine import identity
from holdfast.farside.system import kernel, lost_locks
from holdfast.farside.system.files import read_json, write_whole
from holdfast.farside.system.journal import JournalWriter
from holdfast.farside.system.layout import ENTRY, GUARDIAN_BYTE, GUARDIAN_NAME, JOURNAL, LOCK, SUPERVISOR_BYTE, Home
from holdfast.farside.system.nofollow import describe
from holdfast.farside.system.refusal import Refused

USER_UNIT = "user-unit"
SETTINGS = "settings.json"
FORMAT = 1
PATIENCE = 30.0
"""Seconds in which the user's service manager must have started a process."""
NO_ANSWER = "systemd-run did not answer within %d s" % PATIENCE
"""What is told then: the process may come yet."""


class Direct(Engine):
    """A run's process is its guardian, which makes the run's folder and holds the lock in it as long as it lives."""

    needs_folder = False

    def script(self, plan: Plan, where: HostPaths = SHOWN) -> str:
        return ""

    def start(self, run: NewRun) -> str:
        """Returns when a living guardian owns the run. Raises OSError if its folder could not be written."""
        request = {"plan": run.plan, "secrets": run.secrets, "records": run.records}
        answer = start_detached(run.home, GUARDIAN_NAME, run.guardian, request)
        if answer == "ok":
            return handle_of(run.home.run(run.plan["project"], run.plan["run"]))
        if answer == NO_ANSWER:
            raise Refused(UNANSWERED, "The run could not be started: %s." % answer)
        number, _, reason = answer.partition(" ")
        if number.isdigit():
            raise OSError(int(number), reason, run.home.path)
        why = answer or "its guardian died"
        raise Refused("storage", "The run could not be created in `%s`: %s" % (run.home.path, why))

    def look(self, owners: Sequence[Owner]) -> Dict[Owner, EngineLook]:
        return {owner: self._look(self._folder(owner)) for owner in owners}

    def end(self, owner: Owner, grace: float) -> None:
        """Wake the supervisor, which reads the request from the run's folder."""
        holder = lost_locks.holder(os.path.join(self._folder(owner), LOCK), SUPERVISOR_BYTE)
        try:
            if holder:
                os.kill(holder, signal.SIGUSR1)
        except ProcessLookupError:
            pass

    def _folder(self, owner: Owner) -> str:
        return os.path.join(self.home.runs(), *owner.handle.split("/")[-2:])

    def _look(self, folder: str) -> EngineLook:
        try:
            if is_held(folder):
                return EngineLook(RUNNING)
            machine = elsewhere(self.home, folder)
        except OSError as error:
            return EngineLook(UNKNOWN, describe(error))
        return EngineLook(UNKNOWN, machine) if machine else EngineLook(GONE)


def handle_of(folder: str) -> str:
    """Project and run: the guardian holds a lock in that folder."""
    return "/".join(folder.split(os.sep)[-2:])


def is_held(folder: str) -> bool:
    """Whether a guardian or supervisor has the run of this folder, by the lock that is there. One that is gone says
    nothing (`run/liveness.py`)."""
    path = os.path.join(folder, LOCK)
    return any(kernel.lock_holder(path, byte) is not None for byte in (GUARDIAN_BYTE, SUPERVISOR_BYTE))


def elsewhere(home: Home, folder: str) -> str:
    """The name of the machine on which the run of this folder may be alive, if that is not this one."""
    events = JournalWriter(os.path.join(folder, JOURNAL)).events()
    created = next((event for event in events if event["e"] == "created"), None)
    if created is None or any(event["e"] == "ended" for event in events):
        return ""
    return identity.elsewhere(created, home)


def start_detached(home: Home, name: str, work: Work, request: Request) -> str:
    """Do `work`, which `main.py` knows by `name`, in a detached process. Returns what it told: `ok`, or why not; empty
    when it died without a word."""
    if start_setting(home) == USER_UNIT:
        return _start_in_user_unit(home, name, request)
    told, tell = os.pipe()
    middle = os.fork()
    if middle == 0:
        try:
            os.setsid()
            if os.fork() == 0:
                work(home, request, tell)
        finally:
            os._exit(0)
    os.close(tell)
    os.waitpid(middle, 0)
    with os.fdopen(told, "rb") as source:
        return source.read().decode("utf-8", "replace")


def run_detached(home: Home, work: Work) -> None:
    """The other end of a start in a user unit: the request comes by stdin, so that neither a plan nor a secret stands
    in an argv or an environment; what is told goes to stdout."""
    request = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    tell = os.dup(1)
    os.setsid()
    if os.fork() == 0:
        try:
            work(home, request, tell)
        finally:
            os._exit(0)
    os._exit(0)


def let_go(errors: int, keep: int) -> None:
    """No terminal, no stream of the connection: one that is still held would hang `ssh` until the process ends."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.dup2(errors, 2)
    limit = os.sysconf("SC_OPEN_MAX")
    os.closerange(3, keep)
    os.closerange(keep + 1, limit if 0 < limit < 65536 else 65536)


def tell(descriptor: int, text: str) -> None:
    try:
        os.write(descriptor, text.encode("utf-8", "replace"))
    except OSError:
        pass  # the caller is gone; the next look finds what there is


def start_setting(home: Home) -> str:
    """How this home says that processes are started; empty for a fork."""
    return str((read_json(os.path.join(home.path, SETTINGS)) or {}).get("start", ""))


def set_start(home: Home, how: str) -> None:
    """Empty for a fork. Whole or not at all; a repeat changes nothing."""
    path = os.path.join(home.path, SETTINGS)
    if not how:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        return
    home.make()
    write_whole(path, json.dumps({"format": FORMAT, "start": how}), 0o600)


def user_unit_works() -> Tuple[bool, str]:
    """Whether the user's service manager starts a process, and what it said if not."""
    said, code = _run_in_user_unit(["true"], b"")
    return code == 0, said.strip()


def _start_in_user_unit(home: Home, name: str, request: Request) -> str:
    argv = [sys.executable, "-I", "-S", ENTRY, "detached", name, home.path]
    said, code = _run_in_user_unit(argv, json.dumps(request).encode("utf-8"))
    return said if code == 0 or said else "systemd-run ended with %s" % code


def _run_in_user_unit(argv: List[str], given: bytes) -> Tuple[str, int]:
    import subprocess  # not `Program`, which ends with this process; 19 ms, and few hosts need it

    environment = dict(os.environ)
    runtime = "/run/user/%d" % os.getuid()
    if "XDG_RUNTIME_DIR" not in environment and os.path.isdir(runtime):
        environment["XDG_RUNTIME_DIR"] = runtime  # a login without a terminal may have none
    command = ["systemd-run", "--user", "--scope", "--quiet", "--collect"] + argv
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
        )
    except OSError as error:
        return "systemd-run: %s" % error.strerror, 127
    try:
        told, complaints = process.communicate(given, PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            _close(stream)
        return NO_ANSWER, 124
    return (told or complaints).decode("utf-8", "replace"), process.returncode


def _close(stream: Any) -> None:
    try:
        stream.close()
    except OSError:
        pass  # what was not taken is lost with it
