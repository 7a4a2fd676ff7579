"""The process that stands for a script in a container: has Docker start it, hands on what it is told, ends when the
container does. Its own death, however it comes, is the end of everything in the container: the launcher hears it.

It is forked by the supervisor and never executes anything but `docker`, so that secrets are in no argv and no file.
"""

import json
import os
import select
import signal
import sys
import time
from typing import Any, NamedTuple, Sequence, Tuple

from holdfast.farside.containers.daemon import DockerClient
from holdfast.farside.containers.docker_errors import NAME_TAKEN, NO_GPUS, explain, words
from holdfast.farside.containers.launcher import EVENTS, IN
from holdfast.farside.containers.launcher_words import MOST_LATE, MOST_LINE, is_from_inside, parse_event
from holdfast.farside.system import kernel
from holdfast.farside.system.children import Signals, forget_signals
from holdfast.farside.system.layout import KEEPER_NAME
from holdfast.farside.system.output import widen
from holdfast.farside.system.programs import Attended, Finished

START_PATIENCE = 300.0
"""Seconds for Docker to make and start a container; a busy machine takes its time."""
_ASK_PATIENCE = 30.0
_FIRST_LOOK, _MOST_BETWEEN_LOOKS = 1.0, 8.0
_BRIEFLY = 0.02
_MOST_OPEN = 4096
_MOST_READS, _MOST_EVENTS = 16, 1000


class Attempt(NamedTuple):
    """A way of giving GPUs, and the words of `docker run` that do."""

    way: str
    words: Tuple[str, ...]


class Task(NamedTuple):
    """`folder` is the launcher's, with its pipes; `first` is what it is told first, secrets and all; `root` is where
    Docker keeps its images."""

    docker: DockerClient
    name: str
    attempts: Tuple[Attempt, ...]
    folder: str
    first: bytes
    root: str


class _Over(Exception):
    """The container has ended, or is not wanted any more."""


def start(task: Task) -> Tuple[int, int]:
    """Fork one. Returns its pid and the pipe by which it tells what happens, a line of JSON each: all that the launcher
    says, `refused` where Docker does not start the container, `failed` where nothing in it came up."""
    parent = os.getpid()
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setsid()
            kernel.die_with_parent(signal.SIGKILL, parent)
            kernel.set_name(KEEPER_NAME)
            os.closerange(3, tell)
            os.closerange(tell + 1, _MOST_OPEN)
            _Keeper(task, tell).main()
            code = 0
        except BaseException:  # noqa: BLE001 - nothing is above this
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)
    os.close(tell)
    os.set_blocking(told, False)
    return pid, told


class _Keeper:
    def __init__(self, task: Task, tell: int) -> None:
        self._task, self._tell = task, tell
        forget_signals()  # the supervisor's
        self._signals = Signals((signal.SIGTERM,))
        inwards = os.path.join(task.folder, IN)
        self._reader = os.open(inwards, os.O_RDONLY | os.O_NONBLOCK)  # a pipe without a reader cannot be opened
        self._writer = os.open(inwards, os.O_WRONLY | os.O_NONBLOCK)
        widen(self._writer)
        self._events = os.open(os.path.join(task.folder, EVENTS), os.O_RDONLY | os.O_NONBLOCK)
        self._unsent = task.first
        self._heard, self._count = b"", 0
        self._is_cut = self._has_spoken = self._is_started = self._has_ended = False
        self._docker = task.docker.attended_by(Attended(self._wait, {}))

    def main(self) -> None:
        try:
            if self._is_run():
                self._await_start()
                while True:
                    self._wait(60.0, ())
        except _Over:
            pass

    def _is_run(self) -> bool:
        """Have Docker start it, in the first way that works."""
        answer = Finished(None, "", "")
        for attempt in self._task.attempts:
            self._say("trying", way=attempt.way)
            answer = self._docker.call(attempt.words, START_PATIENCE)
            if answer.is_good:
                return True
            if explain(answer).kind != NO_GPUS:
                break
            self._docker.call(["rm", "-f", self._task.name], _ASK_PATIENCE)  # it was made, and could not be started
        refusal = explain(answer, self._task.root)
        about = {"kind": refusal.kind, "message": refusal.message, "hint": refusal.hint, "words": words(answer)}
        self._say("refused", made=refusal.kind != NAME_TAKEN, **about)
        return False

    def _await_start(self) -> None:
        """The launcher speaks as soon as its Python is up. Where it does not, the container tells why."""
        pause = _FIRST_LOOK
        while not self._is_started:
            deadline = time.monotonic() + pause
            while not self._is_started and time.monotonic() < deadline:
                self._wait(deadline - time.monotonic(), ())
            if not self._is_started and not self._is_up():
                logs = self._docker.call(["logs", "--tail", "20", self._task.name], _ASK_PATIENCE)
                said = (logs.errors + logs.output).strip() if logs.is_good else ""
                self._say("failed", text=said[-2000:])
                raise _Over()
            pause = min(pause * 2, _MOST_BETWEEN_LOOKS)

    def _is_up(self) -> bool:
        """Whether it may speak yet. A daemon that does not answer has not said no."""
        answer = self._docker.call(["inspect", "--format", "{{.State.Status}}", self._task.name], _ASK_PATIENCE)
        if answer.is_good:
            return answer.output.strip() in ("created", "running", "paused", "restarting", "configured", "initialized")
        return "no such" not in words(answer).lower()

    def _wait(self, seconds: float, others: Sequence[int]) -> None:
        """Attend to all that may come; raises Over when there is no more to come."""
        poll = select.poll()
        for descriptor in list(others) + [self._signals.descriptor, self._events]:
            poll.register(descriptor, select.POLLIN)
        if self._unsent:
            poll.register(self._writer, select.POLLOUT)
        poll.poll(int(max(0.0, seconds) * 1000) + 1)
        self._send()
        self._relay()
        if signal.SIGTERM in self._signals.arrived():
            if not self._is_started:
                raise _Over()
            self._unsent += json.dumps({"signal": int(signal.SIGTERM)}).encode("ascii") + b"\n"
            self._send()

    def _send(self) -> None:
        while self._unsent:
            try:
                self._unsent = self._unsent[os.write(self._writer, self._unsent) :]
            except BlockingIOError:
                return

    def _relay(self) -> None:
        for _ in range(_MOST_READS):  # one that speaks without end must not keep signals from being heard
            try:
                data = os.read(self._events, 65536)
            except BlockingIOError:
                return
            if not data:
                if self._is_started:
                    raise _Over()
                if self._has_spoken:
                    time.sleep(_BRIEFLY)  # it died on its way: the container is looked at soon
                return
            self._has_spoken = True
            lines = (self._heard + data).split(b"\n")
            self._heard = lines.pop()
            for line in lines:
                if not self._is_cut:
                    self._take(line)
                self._is_cut = False
            if len(self._heard) > MOST_LINE:
                self._heard, self._is_cut = b"", True

    def _take(self, line: bytes) -> None:
        """The script can write to the pipe too. After its start the launcher has one more thing to say at most."""
        event = parse_event(line)
        if event is None or not is_from_inside(event) or self._count > _MOST_EVENTS:
            return
        self._count += 1
        if self._is_started:
            if event["e"] != "status" or self._has_ended or len(line) > MOST_LATE:
                return
            self._has_ended = True
        self._is_started = self._is_started or event["e"] in ("started", "cannot-start", "unfit")
        self._pass_on(line)

    def _say(self, event: str, **keys: Any) -> None:
        self._pass_on(json.dumps(dict(keys, e=event)).encode("ascii"))

    def _pass_on(self, line: bytes) -> None:
        data = line + b"\n"
        while data:
            data = data[os.write(self._tell, data) :]
