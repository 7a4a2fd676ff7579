"""The outer subreaper: starts the supervisor, does nothing but outlive it, and sweeps up if it dies without a word."""

import json
import os
import signal
import sys
import time
from typing import Any, Dict, List, Optional, Set, Tuple

from holdfast.farside.engines import direct
from holdfast.farside.engines.engine import DIRECT, Owner, Request
from holdfast.farside.engines.owners import queued_by, write_owner
from holdfast.farside.machine import identity
from holdfast.farside.run import run_group
from holdfast.farside.run.attendance import BRIEF_GRACE
from holdfast.farside.run.guarded import FromGuardian, Helpers
from holdfast.farside.run.kept_files import EVERY, KeptFiles
from holdfast.farside.run.run_files import create_folder, take_secrets, write_created
from holdfast.farside.run.run_group import RunGroup
from holdfast.farside.run.supervisor import Supervisor
from holdfast.farside.system import kernel, processes
from holdfast.farside.system.files import LARGEST_RECORD, remove_tree
from holdfast.farside.system.held_lock import HeldLock
from holdfast.farside.system.journal import JournalWriter
from holdfast.farside.system.layout import (
    CONTROL,
    FIFO,
    GPU_FACTS,
    GUARDIAN_BYTE,
    GUARDIAN_NAME,
    JOURNAL,
    LOCK,
    OUTPUT,
    RESERVE,
    Home,
)
from holdfast.farside.system.nofollow import open_plain, read_plain
from holdfast.farside.system.output import Pump, Redactor, make_fifo, make_pipe
from holdfast.farside.system.processes import other_guardians

PATIENCE = 10.0
"""Seconds in which an agent must have let go of the lock of a run that begins."""


def become_guardian(home: Home, request: Request, tell: int) -> None:
    """In a process of its own (`engine.Work`). Never returns. Everything up to the rename may fail and is told;
    after it the run is this process's, listened to or not."""
    _hear_nothing()
    new, plan, group = "", request["plan"], RunGroup()
    try:
        new = home.new_run(plan["project"], "%s-%d" % (plan["generation"], os.getpid()))
        create_folder(new, plan, request["records"])
        folder = home.run(plan["project"], plan["run"])
        write_owner(new, Owner(DIRECT, plan["generation"], direct.handle_of(folder)), is_kept=False)
        direct.let_go(os.open(os.path.join(new, CONTROL), os.O_WRONLY | os.O_APPEND), keep=tell)
        lock = _become_owner(new)
        kernel.lock(lock, GUARDIAN_BYTE)
        group = _group(plan)
        write_created(new, plan, identity.machine_id(home), group=group.path, **kernel.lock_place(lock))
        os.rename(new, folder)
    except BaseException as error:  # noqa: BLE001 - the caller is told whatever it is
        is_numbered = isinstance(error, OSError) and error.errno is not None
        direct.tell(tell, str(error) if not is_numbered else "%s %s" % error.args[:2])
        _forget(new)
        group.remove()
        os._exit(1)
    direct.tell(tell, "ok")
    os.close(tell)
    Guardian(home, folder, request["secrets"], plan, lock, group).main()


def become_owned(home: Home, project: str, run: str, token: str) -> None:
    """What an engine starts (`Engine.script`) for a run whose folder was made before. Never returns. A run that has
    begun, or ended, is not begun again, however often its engine starts it."""
    _hear_nothing()
    folder = home.run(project, run)
    plan = json.loads(read_plain(os.path.join(folder, "plan.json"), LARGEST_RECORD))
    if plan.get("generation") != token:
        sys.exit("`%s` is another run" % run)
    null = os.open(os.devnull, os.O_WRONLY)
    direct.let_go(open_plain(os.path.join(folder, CONTROL), os.O_WRONLY | os.O_APPEND), keep=null)
    lock = _become_owner(folder)
    deadline = time.monotonic() + PATIENCE
    while not kernel.lock(lock, GUARDIAN_BYTE):  # an agent may have it for a moment, to write what the engine says
        if time.monotonic() > deadline:
            os._exit(75)
        time.sleep(0.02)
    journal = JournalWriter(os.path.join(folder, JOURNAL), os.path.join(folder, RESERVE))
    if not queued_by(journal.events()):
        if journal.ended() is None:
            detail = "Its engine started it a second time, and a run is started once."
            journal.append("ended", reason="engine-lost", code=None, signal=None, detail=detail, by="guardian")
        os._exit(0)
    group = _group(plan)
    if group.path:
        journal.append("group", group=group.path)
    Guardian(home, folder, take_secrets(folder), plan, lock, group).main()


def _hear_nothing() -> None:
    """The supervisor hears these; this process only outlives. SIGHUP has it look at its files (`_wait_for`)."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)


def _become_owner(folder: str) -> int:
    """Returns the descriptor of the run's lock."""
    kernel.become_subreaper()
    kernel.set_name(GUARDIAN_NAME)
    return open_plain(os.path.join(folder, LOCK), os.O_RDWR | os.O_CREAT)


def _group(plan: Dict[str, Any]) -> RunGroup:
    """A script in a container is in a group of its own, and nothing of it is beside that. This process is in no other
    run's group: it would end with that."""
    if plan.get("container") is not None:
        return RunGroup()
    run_group.step_out()
    return run_group.make(plan["generation"])


def _forget(folder: str) -> None:
    try:
        remove_tree(folder)
    except OSError:
        pass  # `clean` finds it


def _keep(path: str) -> None:
    """Let a file survive a power cut. It is not waited for before the run starts, as that can take longer than all the
    rest: a power cut ends the run in any case, and its journal is what then says so."""
    try:
        descriptor = open_plain(path)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError:
        pass


def _holding(plan: Dict[str, Any]) -> Tuple[Any, Any]:
    """Where leases of GPUs are kept, and the way there, for a run that asks for some: they are to be free when its last
    process is gone, so they are this process's, and nothing has to be done for it."""
    if not (plan.get("gpu") or {}).get("gpus"):
        return None, None
    from holdfast.farside.gpu.lease.registry import pair

    return pair()


class Guardian:
    """`lock` is the open file of the run's lock, of which this process holds its byte; `group` is for all that the
    supervisor starts."""

    def __init__(
        self, home: Home, folder: str, secrets: Dict[str, str], plan: Dict[str, Any], lock: int, group: RunGroup
    ) -> None:
        self.home, self.folder, self.secrets, self.group = home, folder, secrets, group
        self.helpers = Helpers()
        self.is_contained = plan.get("container") is not None
        self.held, self.given = _holding(plan)
        self.journal = JournalWriter(os.path.join(folder, JOURNAL), os.path.join(folder, RESERVE), keeps=True)
        self.files = KeptFiles(home, folder, HeldLock(os.path.join(folder, LOCK), GUARDIAN_BYTE, lock))

    def main(self) -> None:
        pipe = make_fifo(os.path.join(self.folder, FIFO)) if self.is_contained else make_pipe()
        entered = os.pipe()
        supervisor = os.fork()
        if supervisor == 0:
            os.close(entered[1])
            self._become_supervisor(pipe, entered[0])
        self.group.enter(supervisor)
        os.close(entered[0])
        os.close(entered[1])
        os.close(pipe[1])
        if self.given is not None:
            self.given.close()
        _keep(os.path.join(self.folder, "plan.json"))
        self.files.hold()
        status = self._wait_for(supervisor)
        self.files.stop()
        if self.journal.ended() is None:
            self._end_without_supervisor(pipe[0], status)
        while True:  # what the kernel would not let go keeps the run's lock
            left = processes.descendants(os.getpid(), self._spared)
            if not left:
                break
            if {each.pid for each in left} <= self.files.own():
                break  # it has nothing open that is the run's
            if self.held is not None and {each.pid for each in left} <= self._own():
                self.held.close()  # what asks a sick driver is no work: the GPUs are free
                self.held = None
            self._tick(1.0, None)
        self.group.end(self._spared)
        self.group.remove()
        os._exit(0)

    def _own(self) -> Set[int]:
        """Processes that Holdfast started for itself: none is the user's."""
        return self.helpers.pids() | self.files.own()

    def _spared(self) -> Set[int]:
        spared = other_guardians(self.home, self.folder)
        if self.is_contained:
            from holdfast.farside.containers.removal import monitors

            spared |= monitors(self.folder)
        return spared

    def _become_supervisor(self, pipe: List[int], entered: int) -> None:
        guardian = os.getppid()
        try:
            if self.held is not None:
                self.held.close()
            from_guardian = FromGuardian(self.group, self.helpers, entered)
            Supervisor(self.home, self.folder, self.secrets, pipe, self.given, from_guardian).main()
            if os.getppid() != guardian:
                self.group.leave({os.getpid()})
                self.group.remove()
            os._exit(0)
        except BaseException:  # noqa: BLE001 - it goes to control_log, and the guardian takes over
            import traceback

            traceback.print_exc()
        finally:
            os._exit(70)

    def _wait_for(self, pid: int) -> int:
        """Until the supervisor ends; now and then, and when SIGHUP asks for it, the run's files are looked at. Orphans
        come here only after its death: until then it is the nearer subreaper."""
        awaited = (signal.SIGCHLD, signal.SIGHUP)
        signal.pthread_sigmask(signal.SIG_BLOCK, awaited)  # what is blocked stays, even if it is ignored
        try:
            while True:
                ended, status = os.waitpid(-1, os.WNOHANG)
                if ended == pid:
                    return status
                if ended:
                    self.files.ended(ended)
                    continue
                arrived = signal.sigtimedwait(awaited, EVERY)
                if arrived is None or arrived.si_signo == signal.SIGHUP:
                    self.files.keep()
                    os.kill(pid, signal.SIGHUP)  # it is not reaped, so the pid is its own
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, awaited)

    def _end_without_supervisor(self, reader: int, status: int) -> None:
        pump = Pump(reader, os.path.join(self.folder, OUTPUT), Redactor(self.secrets.values()))
        rules = processes.SweepRules(self._spared, self._own, lambda: self.group.kill(self._spared))
        found = processes.sweep(BRIEF_GRACE, lambda seconds: self._tick(seconds, pump), rules)
        ended = [list(each) for each in [*found, *self.group.end(self._spared)]]
        if self.is_contained:
            ended = self._end_container(pump)  # beside it there is nothing of the user's
        pump.finish()
        if ended:
            self.journal.append("swept", processes=ended[:100], count=len(ended))
        self._tell_of_gpus()
        how = "signal %d" % os.WTERMSIG(status) if os.WIFSIGNALED(status) else "an error; control_log has it"
        self.journal.append(
            "ended",
            reason="supervisor-died",
            code=None,
            signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
            detail="It ended with %s." % how,
            by="guardian",
        )
        if self.is_contained:
            from holdfast.farside.containers.removal import SETTLING, remove

            remove(self.folder, settling=SETTLING)

    def _tell_of_gpus(self) -> None:
        """Write the verdict on GPU use that the supervisor did not get to write."""
        if not os.path.exists(os.path.join(self.folder, GPU_FACTS)):
            return
        from holdfast.farside.gpu.gpu_facts import End
        from holdfast.farside.gpu.judge.verdict import conclude

        events = {str(event["e"]): event for event in self.journal.events()}
        if "gpu" in events:
            return
        started = events["started"]["t"] if "started" in events else None
        self.journal.append(
            "gpu", **conclude(self.folder, End(started, self.journal.clock().now(), None, None, (), (), False))
        )

    def _end_container(self, pump: Pump) -> List[List[Any]]:
        """The launcher in it has heard that no process owns the run any more. Returns what it ended."""
        from holdfast.farside.containers.removal import end, swept

        def pause(seconds: float) -> None:
            pump.move()
            time.sleep(seconds)

        end(self.folder, pause)
        return swept(self.folder)

    def _tick(self, seconds: float, pump: Optional[Pump]) -> None:
        deadline = time.monotonic() + (min(seconds, 0.02) if pump is not None else seconds)
        while time.monotonic() < deadline:
            if pump is not None:
                pump.move()
            try:
                ended = os.waitpid(-1, os.WNOHANG)[0]
                if ended != 0:
                    self.files.ended(ended)
                    return
            except ChildProcessError:
                return
            time.sleep(0.002 if pump is not None else 0.25)
