"""The outer subreaper: starts the supervisor, does nothing but outlive it, and sweeps up if it dies without a word."""

import errno
import json
import os
import signal
import time
from typing import Any, Dict, List, Optional, Set, Tuple

from holdfast.farside import kernel
from holdfast.farside.layout import (
    CONTROL,
    FIFO,
    GPU_FACTS,
    GUARDIAN_BYTE,
    GUARDIAN_NAME,
    JOURNAL,
    OUTPUT,
    READER_NAME,
    RESERVE,
    SAMPLER_NAME,
    SHIPPED,
    STACKS,
    Home,
)
from holdfast.farside.machine import identity
from holdfast.farside.refusal import Refused
from holdfast.farside.run import detaching, processes
from holdfast.farside.run.files import remove_tree
from holdfast.farside.run.journal import Journal
from holdfast.farside.run.kin import other_guardians
from holdfast.farside.run.output import Pump, Redactor, make_fifo, make_pipe
from holdfast.farside.run.supervisor import BRIEF_GRACE, Supervisor

UNANSWERED = "unanswered"
"""Of a refusal: a guardian was asked for, and may come yet."""
_RESERVE_SIZE = 1 << 16


def start(home: Home, plan: Dict[str, Any], secrets: Dict[str, str], records: Dict[str, Any]) -> bool:
    """Start a run. False if this very run (same generation) was started before; another run of that name is refused.
    `records` of it (`submission`, `configuration`) are kept for whoever did not submit it.

    The run's folder appears under its name only when a living guardian holds its lock, so a cut at any moment leaves
    the run existing once or not at all.
    """
    final = home.run(plan["project"], plan["run"])
    if _is_started(final, plan):
        return False
    request = {"plan": plan, "secrets": secrets, "records": records}
    answer = detaching.start(home, GUARDIAN_NAME, become_guardian, request)
    if answer == "ok":
        return True
    if _is_started(final, plan):
        return False
    if answer == detaching.NO_ANSWER:
        raise Refused(UNANSWERED, "The run could not be started: %s." % answer)
    number, _, reason = answer.partition(" ")
    if number.isdigit():
        raise OSError(int(number), reason, home.path)
    raise Refused("storage", "The run could not be created in `%s`: %s" % (home.path, answer or "its guardian died"))


def _is_started(final: str, plan: Dict[str, Any]) -> bool:
    try:
        with open(os.path.join(final, "plan.json")) as source:
            there = json.load(source)
    except FileNotFoundError:
        return False
    except ValueError:  # a power cut took it; the journal had been kept before
        created = [event for event in Journal(os.path.join(final, JOURNAL)).events() if event["e"] == "created"]
        there = created[0] if created else {}
    if there.get("generation") != plan["generation"]:
        raise Refused("exists", "There is another run `%s` on this host." % plan["run"])
    if there.get("given_up"):
        raise Refused("exists", "The run `%s` was given up before it started." % plan["run"])
    return True


def become_guardian(home: Home, request: detaching.Request, tell: int) -> None:
    """In a process of its own (`detaching.Work`). Never returns. Everything up to the rename may fail and is told;
    after it the run is this process's, listened to or not."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)  # the supervisor hears these; this process only outlives
    new, plan = "", request["plan"]
    try:
        new = home.new_run(plan["project"], "%s-%d" % (plan["generation"], os.getpid()))
        create_folder(new, plan, request["records"])
        detaching.let_go(os.open(os.path.join(new, CONTROL), os.O_WRONLY | os.O_APPEND), keep=tell)
        kernel.become_subreaper()
        kernel.set_name(GUARDIAN_NAME)
        lock = os.open(os.path.join(new, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        kernel.lock(lock, GUARDIAN_BYTE)
        write_created(new, plan, identity.machine_id(home))
        folder = home.run(plan["project"], plan["run"])
        os.rename(new, folder)
    except BaseException as error:  # noqa: BLE001 - whoever asked is told whatever it is
        is_numbered = isinstance(error, OSError) and error.errno is not None
        detaching.tell(tell, str(error) if not is_numbered else "%s %s" % error.args[:2])
        _forget(new)
        os._exit(1)
    detaching.tell(tell, "ok")
    os.close(tell)
    Guardian(home, folder, request["secrets"], plan).main()


def _forget(folder: str) -> None:
    try:
        remove_tree(folder)
    except OSError:
        pass  # `clean` finds it


def create_folder(path: str, plan: Dict[str, Any], records: Dict[str, Any]) -> None:
    os.makedirs(path, mode=0o700)
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


def write_created(folder: str, plan: Dict[str, Any], machine: str) -> None:
    Journal(os.path.join(folder, JOURNAL)).append(
        "created",
        format=plan["format"],
        run=plan["run"],
        project=plan["project"],
        generation=plan["generation"],
        boot=kernel.boot_id(),
        machine=machine,
        host=os.uname().nodename,
        user=_user(),
        farside=os.path.basename(SHIPPED),
    )


def _keep(path: str) -> None:
    """Let a file survive a power cut. It is not waited for before the run starts, as that can take longer than all the
    rest: a power cut ends the run in any case, and its journal is what then says so."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError:
        pass


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _holding(plan: Dict[str, Any]) -> Tuple[Any, Any]:
    """Where leases of GPUs are kept, and the way there, for a run that asks for some: they are to be free when its last
    process is gone, so they are this process's, and nobody has to do anything for it."""
    if not (plan.get("gpu") or {}).get("gpus"):
        return None, None
    from holdfast.farside.gpu.leasing.holding import pair

    return pair()


class Guardian:
    def __init__(self, home: Home, folder: str, secrets: Dict[str, str], plan: Dict[str, Any]) -> None:
        self.home, self.folder, self.secrets = home, folder, secrets
        self.is_contained = plan.get("container") is not None
        self.held, self.given = _holding(plan)
        self.journal = Journal(os.path.join(folder, JOURNAL), os.path.join(folder, RESERVE))

    def main(self) -> None:
        pipe = make_fifo(os.path.join(self.folder, FIFO)) if self.is_contained else make_pipe()
        supervisor = os.fork()
        if supervisor == 0:
            self._become_supervisor(pipe)
        os.close(pipe[1])
        if self.given is not None:
            self.given.close()
        _keep(os.path.join(self.folder, "plan.json"))
        status = self._wait_for(supervisor)
        if self.journal.ended() is None:
            self._end_without_supervisor(pipe[0], status)
        while True:  # what the kernel would not let go keeps the run's lock
            left = processes.descendants(os.getpid(), self._spared)
            if not left:
                break
            if self.held is not None and all(each.name in (READER_NAME, SAMPLER_NAME) for each in left):
                self.held.close()  # what asks a sick driver is nobody's work: the GPUs are free
                self.held = None
            self._tick(1.0, None)
        os._exit(0)

    def _spared(self) -> Set[int]:
        spared = other_guardians(self.home, self.folder)
        if self.is_contained:
            from holdfast.farside.containers.monitors import monitors

            spared |= monitors(self.folder)
        return spared

    def _become_supervisor(self, pipe: List[int]) -> None:
        try:
            if self.held is not None:
                self.held.close()
            Supervisor(self.home, self.folder, self.secrets, pipe, self.given).main()
            os._exit(0)
        except BaseException:  # noqa: BLE001 - it goes to control_log, and the guardian takes over
            import traceback

            traceback.print_exc()
        finally:
            os._exit(70)

    def _wait_for(self, pid: int) -> int:
        """Until the supervisor ends. Orphans come here only after its death: until then it is the nearer subreaper."""
        while True:
            try:
                ended, status = os.waitpid(-1, 0)
            except InterruptedError:
                continue
            if ended == pid:
                return status

    def _end_without_supervisor(self, reader: int, status: int) -> None:
        pump = Pump(reader, os.path.join(self.folder, OUTPUT), Redactor(self.secrets.values()))
        found = processes.sweep(BRIEF_GRACE, lambda seconds: self._tick(seconds, pump), self._spared)
        ended = [list(each) for each in found]
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
            from holdfast.farside.containers.ending import SETTLING, remove

            remove(self.folder, settling=SETTLING)

    def _tell_of_gpus(self) -> None:
        """What can still be said of them."""
        if not os.path.exists(os.path.join(self.folder, GPU_FACTS)):
            return
        from holdfast.farside.gpu.judging.concluding import conclude
        from holdfast.farside.gpu.judging.facts import End

        events = {str(event["e"]): event for event in self.journal.events()}
        if "gpu" in events:
            return
        started = events["started"]["t"] if "started" in events else None
        self.journal.append("gpu", **conclude(self.folder, End(started, time.time(), None, None, (), (), False)))

    def _end_container(self, pump: Pump) -> List[List[Any]]:
        """The launcher in it has heard that nobody owns the run any more. Returns what it ended."""
        from holdfast.farside.containers.ending import end, swept

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
                if os.waitpid(-1, os.WNOHANG)[0] != 0:
                    return
            except ChildProcessError:
                return
            time.sleep(0.002 if pump is not None else 0.25)
