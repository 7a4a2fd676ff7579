"""The process that owns one run from start to end: binds the plan, makes the files and the environment, runs the
script, ends every process of the run and writes how it ended."""

import errno
import json
import os
import signal
import time
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

from holdfast.farside.engines.engine import DIRECT, PREEMPTED
from holdfast.farside.engines.owners import engine_name, look
from holdfast.farside.environments.platforms import build_name
from holdfast.farside.run.attendance import BRIEF_GRACE, Attendance, Stopped
from holdfast.farside.run.bare_run import BareRun, Ending
from holdfast.farside.run.data_links import link_data
from holdfast.farside.run.gpu_steps import REFUSED as NO_GPU
from holdfast.farside.run.gpu_steps import DriverAsked, DriverHeard, GpusChecked, GpuStep, asked_by
from holdfast.farside.run.guarded import FromGuardian
from holdfast.farside.run.laid_files import lay
from holdfast.farside.system import files, kernel
from holdfast.farside.system.bound_plan import RunCommand, bind
from holdfast.farside.system.children import CannotStart, Exit, Stop
from holdfast.farside.system.held_lock import HeldLock
from holdfast.farside.system.laid_record import read_laid
from holdfast.farside.system.layout import BOUND, LOCK, OUTPUT, SHIPPED, SUPERVISOR_BYTE, SUPERVISOR_NAME, Home
from holdfast.farside.system.nofollow import open_plain, read_plain
from holdfast.farside.system.output import Pump, Redactor
from holdfast.farside.system.own_files import READY, moment_after, written
from holdfast.farside.system.ownership import closed_to_others, make_private
from holdfast.farside.system.refusal import Refused
from holdfast.farside.system.working_tree import WorkingTree, checked_place

if TYPE_CHECKING:
    from holdfast.farside.environments.prepare import PreparedEnvironment

_LONGEST_GRACE = 10.0
"""Seconds for processes that a script left behind when it ended; a run's own grace time is for its checkpoints."""
_REASONS = {"cancel": "canceled", "time-limit": "time-limit", "stopped": "stopped", "gpu-idle": "gpu-idle"}


class Supervisor:
    """`given` is where leases of GPUs are handed to the guardian, if the plan has any."""

    def __init__(
        self,
        home: Home,
        folder: str,
        secrets: Dict[str, str],
        pipe: List[int],
        given: Any,
        from_guardian: FromGuardian,
    ) -> None:
        self.home, self.folder, self.secrets, self.pipe = home, folder, secrets, pipe
        self._given = given
        self.plan: Dict[str, Any] = json.loads(read_plain(os.path.join(folder, "plan.json"), files.LARGEST_RECORD))
        self.tree = WorkingTree(folder, checked_place(self.plan.get("place", "")))
        self.work = self.tree.project
        self.attendance = Attendance(home, folder, float(self.plan["limits"]["grace"]), from_guardian)
        self.attendant, self.journal = self.attendance.attendant, self.attendance.journal
        self.runner = BareRun(home, self.attendance.supervision(), self.attendant)
        """Where the command runs: this machine itself, until the plan's container is known."""
        self.laid_out = self.since = 0
        """When the disk says that the snapshot's last file was written, and from when on changes are the run's own."""
        self.gpus: Optional[GpuStep] = None
        self.exited: Optional[Tuple[float, Exit]] = None
        self.prepared: Optional[PreparedEnvironment] = None
        """Keeps the environment in use until nothing of the run needs it any more."""

    def main(self) -> None:
        """Everything, in order. Whatever goes wrong becomes the reason in the journal's last line."""
        kernel.become_subreaper()
        kernel.set_name(SUPERVISOR_NAME)
        path = os.path.join(self.folder, LOCK)
        lock = open_plain(path, os.O_RDWR)
        if not kernel.lock(lock, SUPERVISOR_BYTE) or self.journal.ended() is not None:
            return  # the guardian was killed before this, and who found nothing here writes or wrote the end
        self.attendance.keepers.append(HeldLock(path, SUPERVISOR_BYTE, lock).keep)
        self.attendance.hear_earlier_cancel()
        ending = self._ending()
        if self.gpus is not None:
            self.gpus.stop_asking()
        self.attendance.sweep(BRIEF_GRACE)
        self.runner.end()
        if self.gpus is not None:
            self.gpus.finish(*(self.exited or (None, None)))
        if self.prepared is not None:
            self.prepared.environment.leave()  # who reads that the run has ended may remove it
        self._write_ended(ending)
        self.runner.remove()  # nothing needs to wait for it

    def _ending(self) -> Ending:
        try:
            return self._run()
        except Refused as refusal:
            return self._refused_ending(refusal)
        except CannotStart as problem:
            return {"reason": "cannot-start", "detail": str(problem)}
        except Stopped:
            return self._stopped_ending(self.attendant.stop or Stop("stopped", ""))
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO):
                raise
            return {"reason": "storage", "detail": "%s: %s" % (error.filename or self.folder, error.strerror)}

    def _run(self) -> Ending:
        """The story of the run, step by step; how it ended."""
        facts = self._begin()
        runner = self._choose_runner(facts)
        asked = self._ask_driver()
        self._write_files(facts)
        facts.update(runner.find(self.plan, self.work, asked.require_driver))
        self._make_share(facts)
        heard = asked.hear(self.attendance.wait)
        self._prepare_environment(facts, heard)
        self.attendance.check_stop()
        if self.plan["command"] is None:  # only the environment was asked for
            return {"reason": "completed", "code": 0}
        bound = bind(self.plan["command"], facts)
        self._make_directory(bound["directory"])
        self._look_at_frameworks(bound["python"], heard)
        shown = heard.lease().show(bound["environment"], runner.variables)
        checked = shown.check(runner.give(shown.units()))
        self._keep(bound)
        return self._run_command(self._command(bound, facts, checked), checked)

    def _begin(self) -> Dict[str, str]:
        """Returns the values for the plan's holes that are known so far."""
        self.journal.append("phase", name="files", text="writing the snapshot's files")
        self.attendance.check_stop()
        return self._facts()

    def _choose_runner(self, facts: Dict[str, str]) -> BareRun:
        container = self.plan.get("container")
        if container is not None:
            from holdfast.farside.run.contained_run import ContainedRun

            data = bind(self.plan.get("data") or [], facts)
            bound = dict(bind(container, facts), asked_by=asked_by(self.plan), data=data)
            self.runner = ContainedRun(self.home, self.attendance.supervision(), self.attendant, bound)
            self.attendance.monitors, self.attendance.tells_swept = self.runner.monitors, self.runner.tells_swept
        return self.runner

    def _ask_driver(self) -> DriverAsked:
        """Beside everything else, until `hear`."""
        asked = DriverAsked(self.plan, self.attendance.supervision(), self.attendant, self._given)
        self.gpus, self.attendance.helpers = asked, asked.spared
        return asked

    def _write_files(self, facts: Dict[str, str]) -> None:
        os.makedirs(self.work)
        self.laid_out = files.materialise(self.plan["snapshot"], bind(self.plan["stores"], facts), self.work)
        if self.plan.get("earlier") is not None:
            self._lay_earlier(bind(self.plan["earlier"], facts))
        if self.plan.get("data"):
            link_data(self.home, bind(self.plan["data"], facts), self.work, self.plan.get("container") is not None)

    def _lay_earlier(self, earlier: Dict[str, Any]) -> None:
        self.journal.append("phase", name="files", text="copying what %s wrote" % earlier["run"])
        laid = lay(self.home, earlier, self.folder, self.attendance.check_stop)
        self.laid_out = max(self.laid_out, laid.last)
        for note in laid.notes:
            self.journal.append("note", text=note)

    def _make_directory(self, path: str) -> None:
        """The working folder: no file of the snapshot need be in it."""
        try:
            os.makedirs(path, exist_ok=True)
        except OSError as error:  # a link that leads nowhere, for one
            raise CannotStart("`%s`: %s" % (path, error.strerror))

    def _make_share(self, facts: Dict[str, str]) -> None:
        make_private(bind(self.plan["share"], facts))

    def _facts(self) -> Dict[str, str]:
        inherited = os.environ.get("PYTHONPATH", "")
        return {
            "home": self.home.path,
            "run": self.folder,
            "work": self.work,
            "farside": SHIPPED,
            "environment": "",
            "architecture": build_name(),
            "path": os.environ.get("PATH", os.defpath),
            "pythonpath": os.pathsep + inherited if inherited else "",
            "account": os.path.expanduser("~"),
        }

    def _prepare_environment(self, facts: Dict[str, str], heard: DriverHeard) -> None:
        """Find or build it, if the plan has one. Its folder fills the hole of that name."""
        if self.plan["environment"] is None:
            return
        from holdfast.farside.environments.built_environment import Known
        from holdfast.farside.environments.prepare import prepare
        from holdfast.farside.environments.workshop import Workshop

        plan = bind(self.plan["environment"], facts)
        self.journal.append("phase", name="environment", text="looking for the environment")
        with self.runner.room() as room:
            shop = Workshop(self.attendance.supervision(), self.secrets, plan["secrets"], room)
            known = Known(self.home, plan, heard.report, self.runner.place())
            with closed_to_others():  # runs use what is made here long after, whatever the umask of this one is
                self.prepared = prepare(known, shop, bool(self.plan["prepare"]))
        environment = self.prepared.environment
        self.attendance.keepers.append(environment.keep)
        self.journal.append(
            "environment",
            id=environment.id,
            path=environment.path,
            built=self.prepared.built,
            seconds=self.prepared.seconds,
            packages=self.prepared.packages,
            python=self.prepared.python,
        )
        facts["environment"] = str(environment.path)

    def _look_at_frameworks(self, python: str, heard: DriverHeard) -> None:
        """What keeps the command's Python from using the GPUs, where that can be seen from here."""
        is_seen = self.prepared is not None or self.runner.tell_python(python)
        if not is_seen or not heard.report["devices"]:
            return
        from holdfast.farside.environments.build_findings import prefix_of

        version = "" if self.prepared is None else self.prepared.python
        heard.look_at(prefix_of(python), version, self.runner.platform)

    def _keep(self, bound: Dict[str, Any]) -> None:
        path = os.path.join(self.folder, BOUND)
        files.write_whole(path, json.dumps(bound))
        self.since = moment_after(self.laid_out, path)
        self.journal.append(READY, since=self.since)

    def _command(self, bound: Dict[str, Any], facts: Dict[str, str], gpus: GpusChecked) -> RunCommand:
        secrets = {name: self.secrets[name] for name in self.plan["secrets"] if name in self.secrets}
        return RunCommand(
            argv=bound["argv"],
            environment=dict(bound["environment"], **secrets),
            directory=bound["directory"],
            python=bound["python"],
            prefix="" if self.prepared is None else str(self.prepared.environment.path),
            share=str(bind(self.plan["share"], facts)),
            grace=self.attendant.grace,
            gpus=gpus.report if gpus.report["devices"] else None,
            gets_gpus=gpus.is_given,
            must_use_gpu=gpus.request.require,
        )

    def _run_command(self, command: RunCommand, checked: GpusChecked) -> Ending:
        reader, writer = self.pipe
        pump = Pump(reader, os.path.join(self.folder, OUTPUT), Redactor(self.secrets.values()))
        watched = checked.watch()
        self.attendance.enter()
        os.write(writer, checked.header())  # through the pipe: it is before the script's first byte in every case
        try:
            pid = self.runner.start(command, pump, writer)
        finally:
            watched.learn(*self.runner.learned())
            os.close(writer)
        self.journal.append("started", pid=pid, argv=command.argv)
        limit, watchdog = self.plan["limits"]["time"], watched.watchdog()
        result = self.attendant.attend(pid, pump, limit, self.attendance.tell_stopping, watchdog)
        stop = self.attendant.stop  # a request that comes later finds a script that ended by itself
        result, ending = self.runner.finish(result, pump, stop)
        self.exited = (self.journal.clock().now(), result)
        self.journal.append("exited", code=result.code, signal=result.signal)
        left = self.attendant.grace_left() if stop else min(self.attendant.grace, _LONGEST_GRACE)
        self.attendance.sweep(max(left, BRIEF_GRACE), pump)
        self.attendance.finish_output(pump)
        self._list_files()
        if stop:
            return dict(self._stopped_ending(stop), code=result.code)
        return ending or self._own_ending(pid, result)

    def _own_ending(self, pid: int, result: Exit) -> Ending:
        """Of a command that ended without being asked to."""
        if result.signal == signal.SIGKILL:
            proven, detail = self.runner.killed_for_memory(pid)
            return {"reason": "out-of-memory" if proven else "killed", "signal": result.signal, "detail": detail}
        if result.signal is not None:
            return {"reason": "signal", "signal": result.signal}
        return {"reason": "exit-code" if result.code else "completed", "code": result.code}

    def _refused_ending(self, refusal: Refused) -> Ending:
        whole = ("%s %s" % (refusal.message, refusal.hint)).strip()
        if refusal.kind in ("storage", "preparation"):
            return {"reason": refusal.kind, "detail": whole}
        if refusal.kind == NO_GPU:
            return {"reason": "gpu-required", "detail": whole}
        if "cannot-start" in (self.runner.refused_as, refusal.kind):
            return {"reason": "cannot-start", "detail": refusal.message}
        return {"reason": self.runner.refused_as, "detail": whole}

    def _stopped_ending(self, stop: Stop) -> Ending:
        detail = stop.detail
        if stop.cause == "time-limit":
            detail = _duration(float(self.plan["limits"]["time"]))
        preempted = self._preempted() if stop.cause == "stopped" else None
        if preempted is not None:
            return {"reason": "preempted", "detail": preempted, "signal": stop.signal}
        return {"reason": _REASONS[stop.cause], "detail": detail, "signal": stop.signal}

    def _preempted(self) -> Optional[str]:
        """What the run's engine says, if it ends the run for another; None if it does not."""
        if engine_name(self.plan) == DIRECT:
            return None
        seen = look(self.home, [self.folder])[self.folder]
        return seen.said if seen.state == PREEMPTED else None

    def _list_files(self) -> None:
        outputs = written(self.tree, self.since, read_laid(self.folder))
        self.journal.append("files", outputs=outputs[:10000], others=[], others_count=0)

    def _write_ended(self, ending: Ending) -> None:
        """The last line must get out: on a disk that is full in spite of the reserve it waits for room."""
        record = dict({"code": None, "signal": None, "detail": "", "by": "supervisor"}, **ending)
        while True:
            try:
                self.journal.append("ended", **record)
                break
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                time.sleep(1.0)
        self.journal.give_up_reserve()


def _duration(seconds: float) -> str:
    parts: List[Tuple[int, str]] = []
    rest = int(seconds)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        if rest >= size:
            parts.append((rest // size, unit))
            rest %= size
    return "".join("%d%s" % part for part in parts) or "%gs" % seconds
