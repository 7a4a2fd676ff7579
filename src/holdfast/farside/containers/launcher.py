"""The first process in a container: starts the script, hands on signals, ends what the script leaves, and says how it
ended. Run by the image's or the environment's own Python: `main.py inside FOLDER`.

Three named pipes lead to the machine. `in`: what to start, then signals; its end means that no process owns the run any
more, and then nothing may be left running. `events`: what is happening here; its end means that this process is gone.
`../output.fifo`: the script's output. Nothing that counts goes by way of Docker.
"""

import errno
import fcntl
import json
import os
import select
import signal
import sys
import time
from typing import Any, Dict, List, Optional, Tuple

from holdfast.farside.system import processes
from holdfast.farside.system.children import Exit, Signals, ended_children, forget_signals
from holdfast.farside.system.files import write_whole
from holdfast.farside.system.layout import FIFO

IN, EVENTS, STATUS, LOCK = "in", "events", "status.json", "lock"
_FORMAT = 1
_OWNERLESS = 125
"""Exit code if no process waits for this container."""
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
_HANDED_ON = _ENDING + (signal.SIGUSR1, signal.SIGUSR2)
_SLACK = 2.0
_COUNTERS = (
    ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory.max"),
    ("/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


class Gone(Exception):
    """No process owns the run any more."""


def main(folder: str) -> None:
    """Never returns. Ends with the script's own code, or 128 + its signal, for those who look at the container."""
    if os.getpid() != 1:  # by an option of the user's (`--init`, `--pid`): orphans are to come here all the same
        from holdfast.farside.system import kernel

        kernel.become_subreaper()
    try:
        launcher = _Launcher(folder)
    except OSError as error:
        sys.stderr.write("holdfast: no run waits for this container: %s\n" % error)
        os._exit(_OWNERLESS)
    try:
        code = launcher.run()
    except Gone:
        code = _OWNERLESS
    os._exit(code)


class _Unfit(Exception):
    """The script must use a GPU, and what is installed here cannot: a sentence and a remedy."""


class _Launcher:
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._lock = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0, os.SEEK_SET)  # proves that this process lives
        self._in = os.open(os.path.join(folder, IN), os.O_RDONLY | os.O_NONBLOCK)
        self._events = _opened(os.path.join(folder, EVENTS))
        self._output = _opened(os.path.join(os.path.dirname(folder), FIFO))
        self._heard = _read_now(self._in)  # one that is not open for writing would never wake us
        self._script = 0
        self._ended: Optional[Exit] = None
        self._outside: Optional[Tuple[int, float]] = None
        self._grace, self._is_owned = 0.0, True
        self._signals = Signals(_HANDED_ON)

    def run(self) -> int:
        task = json.loads(self._first_line())
        self._grace = float(task["grace"])
        kills = _counted()
        try:
            if task.get("looks"):
                self._describe(task)
        except _Unfit as problem:
            self._say("unfit", message=problem.args[0], hint=problem.args[1])
            return _OWNERLESS
        try:
            self._script = _start(task, self._output)
        except OSError as error:
            self._say("cannot-start", text=_explained(error, task["argv"][0]))
            return _OWNERLESS
        os.close(self._output)
        self._say("started", pid=self._script)
        if self._outside is not None:  # it came before there was a script
            self._kill(self._outside[0])
        self._is_owned = self._attend()
        swept = [
            list(each)
            for each in processes.sweep(self._grace if self._is_owned else 0.0, self._tick, processes.SweepRules())
        ]
        self._write_status(swept, None if kills is None else (_counted() or 0) - kills)
        code, number = self._ended or Exit(None, signal.SIGKILL)
        return code if code is not None else 128 + int(number or 0)

    def _first_line(self) -> str:
        while b"\n" not in self._heard:
            if not self._hear(None):
                raise Gone()
        line, _, self._heard = self._heard.partition(b"\n")
        return line.decode("ascii")

    def _describe(self, task: Dict[str, Any]) -> None:
        """The image's own Python, which cannot be seen from outside. Nothing of this keeps the script from starting."""
        from holdfast.farside.environments.user_python import beside

        python = str(task["python"])
        try:
            packages = beside(python)[1]
            version = "%d.%d.%d" % sys.version_info[:3]
            self._say("python", version=version, packages=packages)
            if task.get("gpus"):
                self._judge(task, python, version)
        except (OSError, ValueError, LookupError) as error:
            self._say("note", text="The image's own Python could not be looked at: %s." % error)

    def _judge(self, task: Dict[str, Any], python: str, version: str) -> None:
        """Whether what is installed can use the machine's GPUs; said to people where the script gets any."""
        from holdfast.farside.environments.build_findings import looked_at, prefix_of
        from holdfast.farside.gpu.judge.checks import fatal_finding

        findings, frameworks = looked_at(prefix_of(python), version, task["gpus"])
        self._say("frameworks", names=frameworks, findings=[list(each) for each in findings])
        for each in findings if task.get("gets_gpus") else []:
            self._say("note", text="%s %s" % (each.sentence, each.remedy))
        fatal = fatal_finding(findings, frameworks)
        if fatal is not None and task.get("must_use_gpu"):
            raise _Unfit(fatal.sentence, fatal.remedy)

    def _attend(self) -> bool:
        """Until the script has ended; False when no process owns it any more."""
        while self._ended is None:
            if not self._hear(None):
                return False
            self._obey()
        return True

    def _hear(self, seconds: Optional[float]) -> bool:
        """Wait for a word from outside, a signal or the end of a process. False: there will be no more words."""
        poll = select.poll()
        poll.register(self._in, select.POLLIN)
        poll.register(self._signals.descriptor, select.POLLIN)
        poll.poll(None if seconds is None else int(seconds * 1000) + 1)
        self._hand_on(self._signals.arrived())
        self._reap()
        try:
            data = os.read(self._in, 65536)
        except BlockingIOError:
            return True
        self._heard += data
        return bool(data)

    def _obey(self) -> None:
        while b"\n" in self._heard:
            line, _, self._heard = self._heard.partition(b"\n")
            self._kill(int(json.loads(line.decode("ascii"))["signal"]))

    def _hand_on(self, arrived: List[int]) -> None:
        for number in arrived:
            if number in _ENDING and self._outside is None and self._ended is None:
                self._outside = (number, time.monotonic())
            if number in _HANDED_ON:
                self._kill(number)

    def _kill(self, number: int) -> None:
        if self._script and self._ended is None:  # it is our unreaped child, so the pid is its own
            os.kill(self._script, number)

    def _reap(self) -> None:
        for pid, ended in ended_children():
            if pid == self._script:
                self._ended = ended
                self._settle_outside()

    def _settle_outside(self) -> None:
        """A script that goes on after such a signal was not ended by it."""
        if self._outside is not None and time.monotonic() - self._outside[1] > self._grace + _SLACK:
            self._outside = None

    def _tick(self, seconds: float) -> None:
        if not self._hear(seconds):
            for process in processes.descendants(os.getpid(), set):
                processes.send(process, signal.SIGKILL)
            time.sleep(0.002)

    def _write_status(self, swept: List[List[Any]], kills: Optional[int]) -> None:
        code, number = self._ended or Exit(None, signal.SIGKILL)
        status = {
            "format": _FORMAT,
            "code": code,
            "signal": number,
            "owned": self._is_owned,
            "outside": None if self._outside is None else self._outside[0],
            "swept": swept[:100],
            "count": len(swept),
            "memory_kills": kills,
            "memory_limit": _limit(),
        }
        try:
            write_whole(os.path.join(self._folder, STATUS), json.dumps(status))
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            self._say("status", status=status)

    def _say(self, event: str, **keys: Any) -> None:
        line = json.dumps(dict(keys, e=event)).encode("ascii") + b"\n"
        try:
            while line:
                line = line[os.write(self._events, line) :]
        except BrokenPipeError:
            pass  # the end of `in` says it too


def _read_now(pipe: int) -> bytes:
    """What is in it. OSError if the other end is closed."""
    try:
        data = os.read(pipe, 65536)
    except BlockingIOError:
        return b""
    if not data:
        raise OSError(errno.EPIPE, "no process owns the run any more")
    return data


def _opened(path: str) -> int:
    """For writing; one without a reader is not waited for."""
    descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)
    return descriptor


def _start(task: Dict[str, Any], output: int) -> int:
    """The script in a session of its own. Raises OSError as its exec did."""
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            forget_signals()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.umask(int(task["umask"]))
            os.chdir(_bytes(task["directory"]))
            variables = dict(os.environb)
            variables.update((_bytes(name), _bytes(value)) for name, value in task["environment"].items())
            argv = [_bytes(each) for each in task["argv"]]
            os.execvpe(argv[0], argv, variables)  # noqa: S606 - there is no shell on purpose
        except OSError as error:
            os.write(tell, b"%d" % (error.errno or 0))
        finally:
            os._exit(127)
    os.close(tell)
    problem = os.read(told, 16)
    os.close(told)
    if problem:
        os.waitpid(pid, 0)
        raise OSError(int(problem), os.strerror(int(problem)))
    return pid


def _bytes(text: str) -> bytes:
    """Not by the locale, which an image seldom has."""
    return text.encode("utf-8", "surrogateescape")


def _explained(error: OSError, program: str) -> str:
    if error.errno == errno.ENOENT:
        return "there is no program `%s` %s" % (program, "in the container" if "/" in program else "on its PATH there")
    if error.errno == errno.ENOEXEC:
        return "`%s` is not a program for this container" % program
    return "`%s`: %s" % (program, error.strerror)


def _counted() -> Optional[int]:
    """How many processes of this container the kernel has ended for memory; None where it does not say."""
    for counter, _ in _COUNTERS:
        for line in _read(counter).splitlines():
            name, _, number = line.partition(" ")
            if name == "oom_kill":
                return int(number)
    return None


def _limit() -> Optional[int]:
    for _, limit in _COUNTERS:
        text = _read(limit).strip()
        if text.isdigit():
            return int(text) if int(text) < 1 << 60 else None
    return None


def _read(path: str) -> str:
    try:
        with open(path) as source:
            return source.read()
    except OSError:
        return ""
