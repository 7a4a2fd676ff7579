"""The process that owns one run from start to end: binds the plan, makes the files and the environment, runs the
script, ends every process of the run and writes how it ended."""

import errno
import json
import os
import signal
import time
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Set, Tuple

from holdfast.farside import kernel
from holdfast.farside.environments.platforms import build_name
from holdfast.farside.gpu.supervising import REFUSED as NO_GPU
from holdfast.farside.gpu.supervising import GpuWatch, asked_by
from holdfast.farside.layout import JOURNAL, OUTPUT, RESERVE, SHIPPED, SUPERVISOR_BYTE, Home
from holdfast.farside.refusal import Refused
from holdfast.farside.run import files, processes
from holdfast.farside.run.beside import beside
from holdfast.farside.run.binding import bind, holes
from holdfast.farside.run.children import Attendant, CannotStart, Stop, inherited_environment, spawn
from holdfast.farside.run.interpreter import find_python
from holdfast.farside.run.journal import Journal
from holdfast.farside.run.kin import other_guardians
from holdfast.farside.run.memory import Witness
from holdfast.farside.run.output import Pump, Redactor
from holdfast.farside.run.signals import Exit, Signals

if TYPE_CHECKING:
    from holdfast.farside.containers.contained import Script
    from holdfast.farside.containers.supervising import ContainedRun
    from holdfast.farside.environments.workshop import Owner

BRIEF_GRACE = 2.0
LEFT_FOR_THE_END = 16384
LONGEST_GRACE = 10.0
"""For what the script left behind when it ended by itself; a run's own grace time is for its checkpoints."""
_REASONS = {"cancel": "canceled", "time-limit": "time-limit", "stopped": "stopped", "gpu-idle": "gpu-idle"}


class Stopped(Exception):
    """The run is to end before its script was started."""


class Supervisor:
    """`given` is where leases of GPUs are handed to the guardian, if the plan has any."""

    def __init__(self, home: Home, folder: str, secrets: Dict[str, str], pipe: List[int], given: Any = None) -> None:
        self.home, self.folder, self.secrets, self.pipe = home, folder, secrets, pipe
        self._given = given
        self.work = os.path.join(folder, "work")
        self.journal = Journal(os.path.join(folder, JOURNAL), os.path.join(folder, RESERVE))
        self.signals = Signals((signal.SIGUSR1, signal.SIGTERM, signal.SIGINT))
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with open(os.path.join(folder, "plan.json")) as source:
            self.plan: Dict[str, Any] = json.load(source)
        self.attendant = Attendant(self.signals, float(self.plan["limits"]["grace"]), self._cancel_request)
        self.stamps: Dict[str, files.Stamp] = {}
        self.gpus: Optional[GpuWatch] = None
        self.exited: Optional[Tuple[float, Exit]] = None
        self.prepared: Any = None
        """Keeps the environment in use until nothing of the run needs it any more."""
        self.contained: Optional[ContainedRun] = None

    def main(self) -> None:
        """Everything, in order. Whatever goes wrong becomes the reason in the journal's last line."""
        kernel.become_subreaper()
        kernel.set_name("hf-supervisor")
        lock = os.open(os.path.join(self.folder, "lock"), os.O_RDWR | os.O_CLOEXEC)
        if not kernel.lock(lock, SUPERVISOR_BYTE) or self.journal.ended() is not None:
            return  # the guardian was killed before this, and whoever found nobody here writes or wrote the end
        if os.path.exists(os.path.join(self.folder, "cancel")):
            self.attendant.stop = self._cancel_request()
        try:
            ending = self._run()
        except Refused as refusal:
            ending = self._refused_ending(refusal)
        except CannotStart as problem:
            ending = {"reason": "cannot-start", "detail": str(problem)}
        except Stopped:
            ending = self._stopped_ending(self.attendant.stop or Stop("stopped", ""))
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EIO):
                raise
            ending = {"reason": "storage", "detail": "%s: %s" % (error.filename or self.folder, error.strerror)}
        if self.gpus is not None:
            self.gpus.stop_asking()
        self._sweep(BRIEF_GRACE)
        if self.contained is not None:
            self.contained.end()
        if self.gpus is not None:
            self.gpus.finish(*(self.exited or (None, None)))
        if self.prepared is not None:
            self.prepared.environment.leave()  # who reads that the run has ended may remove it
        self._write_ended(ending)
        if self.contained is not None:
            self.contained.remove()  # nobody needs to wait for it

    def _run(self) -> Dict[str, Any]:
        self.journal.append("phase", name="files", text="writing the snapshot's files")
        self._check_stop()
        facts: Dict[str, Any] = self._facts()
        container: Any = self.plan.get("container")
        if container is not None:
            from holdfast.farside.containers.supervising import ContainedRun

            container = dict(bind(container, facts), asked_by=asked_by(self.plan))
            self.contained = ContainedRun(self.home, container, self._owner(), self.attendant)
        gpus = self.gpus = GpuWatch(self.plan, self._owner(), self.attendant, self._given)
        os.makedirs(self.work)
        stores = bind(self.plan["stores"], facts)
        self.stamps = files.materialise(self.plan["snapshot"], stores, self.work)
        if self.contained is None:
            facts["python"] = self._python()  # it may be one of the files
        else:
            gpus.require_driver()
            is_script_alone = self.plan["environment"] is None and self.plan["command"] is not None
            facts.update(self.contained.look_at_image(self.plan.get("python"), is_script_alone))
        os.makedirs(bind(self.plan["share"], facts), exist_ok=True)
        gpus.hear(self._wait_or_stop)
        environment = self.plan["environment"]
        if environment is not None:
            facts["environment"] = self._prepare(bind(environment, facts))
        self._check_stop()
        if self.plan["command"] is None:  # only the environment was asked for
            return {"reason": "completed", "code": 0}
        command = bind(self.plan["command"], facts)
        if environment is None and self.contained is None:
            version, packages = beside(command["argv"][0])
            self.journal.append("environment", id="", python=version, packages=packages, built=False, seconds=0)
        if environment is not None or self.contained is None:  # else the launcher looks at it
            self._look_at_frameworks(gpus, command["argv"][0])
        self._give_gpus(gpus, command["environment"])
        with open(os.path.join(self.folder, "bound.json"), "w") as target:
            target.write(json.dumps(command))
        return self._run_script(command, gpus)

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

    def _python(self) -> str:
        """Looked for only where the plan leaves it open: a run here was told which one."""
        if "python" not in holes([self.plan["command"], self.plan["environment"]]):
            return ""
        return find_python(self.plan.get("python"), self.work)

    def _owner(self) -> "Owner":
        from holdfast.farside.environments.workshop import Owner

        return Owner(
            self.folder,
            self._attend_step,
            lambda: self._sweep(BRIEF_GRACE),
            self._check_stop,
            self._wait_or_stop,
            self.journal.append,
        )

    def _attend_step(self, pid: int, pump: Pump) -> Exit:
        self.attendant.expect(pid)
        return self.attendant.attend(pid, pump, None, self._tell_stopping)

    def _prepare(self, plan: Dict[str, Any]) -> str:
        """Find or build the environment; returns its folder."""
        from holdfast.farside.environments.known import Known
        from holdfast.farside.environments.preparing import prepare
        from holdfast.farside.environments.workshop import Workshop

        self.journal.append("phase", name="environment", text="looking for the environment")
        gpus = {} if self.gpus is None else self.gpus.report
        may_build = bool(self.plan["prepare"])
        if self.contained is None:
            shop = Workshop(self._owner(), self.secrets, plan["secrets"])
            self.prepared = prepare(Known(self.home, plan, gpus), shop, may_build)
        else:
            with self.contained.room() as room:
                shop = Workshop(self._owner(), self.secrets, plan["secrets"], room)
                self.prepared = prepare(Known(self.home, plan, gpus, self.contained.place()), shop, may_build)
        environment = self.prepared.environment
        self.journal.append(
            "environment",
            id=environment.id,
            path=environment.path,
            built=self.prepared.built,
            seconds=self.prepared.seconds,
            packages=self.prepared.packages,
            python=self.prepared.python,
        )
        return str(environment.path)

    def _look_at_frameworks(self, gpus: GpuWatch, python: str) -> None:
        """What keeps the script's environment from using the GPUs."""
        if not gpus.report["devices"]:
            return
        from holdfast.farside.environments.advice import prefix_of

        version = "" if self.prepared is None else self.prepared.python
        platform = "" if self.contained is None else self.contained.platform
        gpus.look_at(prefix_of(python), version, platform)

    def _give_gpus(self, gpus: GpuWatch, variables: Dict[str, str]) -> None:
        gpus.lease()
        image = {} if self.contained is None else self.contained.variables
        variables.update(gpus.variables(variables, image))
        gpus.check("" if self.contained is None else self.contained.give(gpus.units()))

    def _run_script(self, command: Dict[str, Any], gpus: GpuWatch) -> Dict[str, Any]:
        reader, writer = self.pipe
        pump = Pump(reader, os.path.join(self.folder, OUTPUT), Redactor(self.secrets.values()))
        witness = Witness()
        gpus.start()
        os.write(writer, gpus.header())  # through the pipe, so that it is before the script's first byte in every case
        try:
            if self.contained is None:
                pid = self._start(command, writer)
            else:
                try:
                    pid = self.contained.start(self._contained_script(command, gpus), pump)
                finally:
                    gpus.learn(*self.contained.learned())
        finally:
            os.close(writer)
        self.journal.append("started", pid=pid, argv=command["argv"])
        limit, watchdog = self.plan["limits"]["time"], gpus.watchdog()
        result = self.attendant.attend(pid, pump, limit, self._tell_stopping, watchdog)
        stop = self.attendant.stop  # a request that comes later finds a script that ended by itself
        ending: Optional[Dict[str, Any]] = None
        if self.contained is not None:
            result, ending = self.contained.finish(pump, stop)
        self.exited = (time.time(), result)
        self.journal.append("exited", code=result.code, signal=result.signal)
        left = self.attendant.grace_left() if stop else min(self.attendant.grace, LONGEST_GRACE)
        self._sweep(max(left, BRIEF_GRACE), pump)
        self._finish_output(pump)
        self._list_files()
        is_killed = self.contained is None and result.signal == signal.SIGKILL
        proven, detail = witness.verdict(pid) if is_killed else (False, "")
        witness.close()
        if stop:
            return dict(self._stopped_ending(stop), code=result.code)
        return ending or _own_ending(result, proven, detail)

    def _start(self, command: Dict[str, Any], writer: int) -> int:
        environment = dict(inherited_environment(), **command["environment"])
        environment.update(self._script_secrets())
        pid = spawn(command["argv"], environment, command["directory"], writer)
        self.attendant.expect(pid)
        return pid

    def _script_secrets(self) -> Dict[str, str]:
        return {name: self.secrets[name] for name in self.plan["secrets"] if name in self.secrets}

    def _contained_script(self, command: Dict[str, Any], gpus: GpuWatch) -> "Script":
        from holdfast.farside.containers.contained import Script

        return Script(
            argv=command["argv"],
            environment=dict(command["environment"], **self._script_secrets()),
            directory=command["directory"],
            prefix="" if self.prepared is None else str(self.prepared.environment.path),
            share=str(bind(self.plan["share"], self._facts())),
            grace=self.attendant.grace,
            gpus=gpus.report if gpus.report["devices"] else None,
            gets_gpus=gpus.is_given,
            must_use_gpu=gpus.request.require,
        )

    def _finish_output(self, pump: Pump) -> None:
        """On a full disk the last output gets the reserve; what is more waits for room, as the script did. `cancel`
        ends the waiting."""
        pump.move()
        if pump.blocked:
            self.journal.shrink_reserve(LEFT_FOR_THE_END)
            pump.move()
        if pump.blocked:
            self.journal.append("note", text="The disk is full; the last output waits for room.")
        while pump.blocked and self.attendant.stop is None:
            self.attendant.wait(1.0, pump)
        lost = pump.finish()
        if lost:
            self.journal.append("note", text="%d bytes of output were lost because the disk is full." % lost)

    def _refused_ending(self, refusal: Refused) -> Dict[str, Any]:
        if refusal.kind in ("storage", "preparation"):
            return {"reason": refusal.kind, "detail": refusal.message}
        if refusal.kind == NO_GPU:
            return {"reason": "gpu-required", "detail": ("%s %s" % (refusal.message, refusal.hint)).strip()}
        if self.contained is None or refusal.kind == "cannot-start":
            return {"reason": "cannot-start", "detail": refusal.message}
        return {"reason": "container", "detail": ("%s %s" % (refusal.message, refusal.hint)).strip()}

    def _stopped_ending(self, stop: Stop) -> Dict[str, Any]:
        detail = stop.detail
        if stop.cause == "time-limit":
            detail = _duration(float(self.plan["limits"]["time"]))
        return {"reason": _REASONS[stop.cause], "detail": detail, "signal": stop.signal}

    def _tell_stopping(self, stop: Stop) -> None:
        self.journal.append("ending", cause=stop.cause, grace=self.attendant.grace, detail=stop.detail)

    def _sweep(self, grace: float, pump: Optional[Pump] = None) -> None:
        ended = processes.sweep(
            grace, lambda seconds: self.attendant.wait(seconds, pump), self._spared, own=self._watching
        )
        if ended and self.contained is None:  # beside a container there is nothing of the user's
            shown = [list(each) for each in ended[:100]]
            self.journal.append("swept", processes=shown, count=len(ended))

    def _watching(self) -> Set[int]:
        """What asks the driver for this run."""
        return self.gpus.spared() - set(self.attendant.exits) if self.gpus is not None else set()

    def _spared(self) -> Set[int]:
        spared = other_guardians(self.home, self.folder)
        return spared if self.contained is None else spared | self.contained.monitors()

    def _list_files(self) -> None:
        outputs, others, count = files.written(self.work, self.stamps)
        self.journal.append("files", outputs=outputs[:10000], others=others, others_count=count)

    def _cancel_request(self) -> Optional[Stop]:
        try:
            with open(os.path.join(self.folder, "cancel")) as source:
                request = json.load(source)
        except (OSError, ValueError):
            return None
        if request.get("grace") is not None:
            self.attendant.grace = float(request["grace"])
        return Stop("cancel", str(request.get("detail", "")))

    def _check_stop(self) -> None:
        self.attendant.wait(0, None)
        if self.attendant.stop is not None:
            raise Stopped()

    def _wait_or_stop(self, seconds: float) -> None:
        self.attendant.wait(seconds, None)
        if self.attendant.stop is not None:
            raise Stopped()

    def _write_ended(self, ending: Dict[str, Any]) -> None:
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


def _own_ending(result: Exit, proven: bool, detail: str) -> Dict[str, Any]:
    """Of a script that nobody asked to end."""
    if result.signal == signal.SIGKILL:
        return {"reason": "out-of-memory" if proven else "killed", "signal": result.signal, "detail": detail}
    if result.signal is not None:
        return {"reason": "signal", "signal": result.signal}
    return {"reason": "exit-code" if result.code else "completed", "code": result.code}


def _duration(seconds: float) -> str:
    parts: List[Tuple[int, str]] = []
    rest = int(seconds)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        if rest >= size:
            parts.append((rest // size, unit))
            rest %= size
    return "".join("%d%s" % part for part in parts) or "%gs" % seconds
