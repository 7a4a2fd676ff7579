"""The far end of the protocol: answers requests on stdin, pushes a run's new bytes to stdout. One thread, no state
of its own: all truth is on the disk, and any number of agents may run at once."""

import json
import os
import select
import signal
import sys
import time
from typing import Any, Callable, Iterator, List, Optional, Tuple

from holdfast.farside.engines import owners
from holdfast.farside.machine import identity
from holdfast.farside.operations import storage, table
from holdfast.farside.operations.home_lock import Adding
from holdfast.farside.operations.objects import Arrivals
from holdfast.farside.operations.subscription import Subscription, subscribe
from holdfast.farside.run.data_links import require_data
from holdfast.farside.run.liveness import adjudicate, elsewhere, is_alive, wait_until_on_host
from holdfast.farside.run.run_start import give_up, queued, start_or_give_up
from holdfast.farside.system import frames, kernel
from holdfast.farside.system.closed_home import require_closed
from holdfast.farside.system.frames import Message
from holdfast.farside.system.journal import JournalWriter
from holdfast.farside.system.layout import ENTRY, JOURNAL, Home
from holdfast.farside.system.nofollow import describe
from holdfast.farside.system.output import widen
from holdfast.farside.system.refusal import Refused

_LOOK_EVERY = 2.0
"""Seconds between looks at whether a followed run is still alive, and the fallback where inotify is not to be had."""
_TOO_DEEP = "Find the run whose files cause it, and remove it: holdfast experiment clean -r RUN --discard-outputs"
_TOGETHER = 0.01
_MANY = 10
_PAGE = 5000

_ANSWERED = object()
"""What an operation returns that has sent its answer itself."""
_Answer = Any


def serve(home_path: str) -> None:
    """Until the near side, which has been told that this is the far side, closes the connection."""
    home = Home(os.path.expanduser(home_path))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    output = os.fdopen(os.dup(1), "wb", 0)
    os.dup2(2, 1)  # nothing but frames may reach the connection
    _mark(home)
    try:
        Agent(home, output).main(0)
    except frames.FrameError as error:
        sys.exit("holdfast far side: %s" % error)


def _mark(home: Home) -> None:
    """Before anything is put there. What keeps it from being marked is told when more is asked for."""
    try:
        home.make()
    except OSError:
        pass


class Agent:
    def __init__(self, home: Home, output: Any) -> None:
        self.home, self._output = home, output
        self._subscriptions: List[Subscription] = []
        self._watch: Any = None
        self._pushed = self._spoke = 0.0
        self._quick = 0
        self._pulse: Optional[float] = None
        self._listing: Tuple[List[List[Any]], List[str]] = ([], [])
        self._arrivals = Arrivals(home)
        self._sending: Optional[Iterator[Tuple[Message, bytes]]] = None
        self._is_own = False
        self._answered: Any = None

    def main(self, source: int) -> None:
        """Until the near side closes the connection."""
        while True:
            poll = select.poll()
            poll.register(source, select.POLLIN)
            if self._watch is not None and self._watch.works:
                poll.register(self._watch.descriptor, select.POLLIN)
            timeout = _LOOK_EVERY if self._watch is None or self._watch.works else 0.1
            timeout = min(timeout, self._pulse or timeout)
            ready = poll.poll(0 if self._sending else int(timeout * 1000) if self._subscriptions else None)
            if any(descriptor == source for descriptor, _ in ready):
                frame = frames.decode(lambda size: _read_exactly(source, size))
                if frame is None:
                    return
                self._handle(*frame)
            elif ready or not self._sending or time.monotonic() - self._pushed > timeout:
                self._push_all()
            self._send_next_piece()

    def _handle(self, message: Message, body: bytes) -> None:
        number = message.get("id")
        try:
            answer = self._answer(table.find(str(message.get("op"))), message, body)
            if answer is _ANSWERED:
                return
            if isinstance(answer, bytes):
                self._reply({"id": number, "ok": len(answer)}, answer)
            else:
                self._reply({"id": number, "ok": answer})
        except Refused as refusal:
            self._fail(number, refusal.kind, refusal.message, refusal.hint)
        except OSError as error:
            self._fail_to_store(number, error)
        except RecursionError:
            self._fail(number, "refused", "`%s` met something that is nested too deep." % message.get("op"), _TOO_DEEP)
        except frames.FrameError as error:
            self._fail(number, "too-large", "The answer to `%s` does not fit: %s." % (message.get("op"), error), "")
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            self._fail(number, "malformed", "The request `%s` is malformed: %r" % (message.get("op"), error), "")

    def _answer(self, operation: table.Operation, message: Message, body: bytes) -> _Answer:
        if not self._is_own:
            require_closed(self.home)
            self._is_own = True
        if operation.module == table.AGENT:
            return getattr(self, "_" + operation.function)(message, body)
        return table.run(operation, self.home, message, self._tell)

    def _tell(self, text: str) -> None:
        """Of something that takes long: how far it is."""
        self._reply({"push": "progress", "run": "", "file": text})

    def _reply(self, message: Message, body: bytes = b"", is_checked: bool = True) -> None:
        self._spoke = time.monotonic()
        self._answered = message.get("id", self._answered)
        for block in frames.encode_apart(message, body, is_checked):
            data = memoryview(block)
            while data:
                data = data[self._output.write(data) :]

    def _fail(self, number: Any, kind: str, text: str, hint: str) -> None:
        self._refuse(number, {"kind": kind, "message": text, "hint": hint})

    def _refuse(self, number: Any, about: Message) -> None:
        """A request is answered once. An error after that ends this process, and what it last says is the reason."""
        if number is not None and number == self._answered:
            sys.exit(str(about["message"]))
        self._reply({"id": number, "error": about})

    def _fail_to_store(self, number: Any, error: OSError) -> None:
        """With what the near side needs to say it in its own words: a full disk is not a damaged one."""
        text = "%s: %s" % (error.filename, error.strerror) if error.filename else str(error.strerror or error)
        place = error.filename if isinstance(error.filename, str) else self.home.path
        about = {"kind": "storage", "message": text, "hint": "", "errno": error.errno, "path": place}
        self._refuse(number, about)

    def _hello(self, message: Message, body: bytes) -> _Answer:
        self.home.make()
        machine, folder = identity.place(self.home)
        return {
            "machine": machine,
            "folder": folder,
            "host": os.uname().nodename,
            "home": self.home.path,
            "uid": os.getuid(),
            "python": "%d.%d.%d" % sys.version_info[:3],
            "boot": kernel.boot_id(),
            "time": time.time(),
            "executable": sys.executable,
            "entry": ENTRY,
        }

    def _objects(self, message: Message, body: bytes) -> _Answer:
        """What a client asks that did not submit the run; imported then."""
        from holdfast.farside.operations.known_runs import objects

        answer, contents = objects(self.home, message)
        self._reply({"id": message.get("id"), "ok": answer}, contents)
        return _ANSWERED

    def _require_sent(self, environment: Any) -> None:
        """The programs and packages that its build needs."""
        if environment and (environment.get("tools") or environment.get("packages")):
            from holdfast.farside.environments import shipped_packages, uv

            uv.require_tools(self.home, environment.get("tools") or [])
            if environment.get("packages"):
                shipped_packages.require_packages(self.home, environment["packages"])

    def _prepare(self, message: Message, body: bytes) -> _Answer:
        with Adding(self.home):
            return self._arrivals.prepare(message, body)

    def _pack(self, message: Message, body: bytes) -> _Answer:
        return self._arrivals.pack(message, body)

    def _put(self, message: Message, body: bytes) -> _Answer:
        return self._arrivals.put(message, body)

    def _start(self, message: Message, body: bytes) -> _Answer:
        if message.get("place") not in (None, identity.place(self.home)):
            raise Refused("elsewhere", "This is `%s`, not the machine that is meant." % os.uname().nodename)
        self._arrivals.require(message["plan"].get("snapshot"))
        secrets = json.loads(body.decode("utf-8")) if body else {}
        records = {name: message[name] for name in ("submission", "configuration") if message.get(name) is not None}
        self.home.make()
        with Adding(self.home):
            self._require_sent(message["plan"].get("environment"))
            require_data(self.home, message["plan"].get("data") or [])
            is_new = start_or_give_up(self.home, message["plan"], secrets, records)
        waits = queued(self.home, message["plan"])
        return {"again": not is_new, "queued": waits}

    def _give_up(self, message: Message, body: bytes) -> _Answer:
        self.home.make()
        return {"given_up": give_up(self.home, message)}

    def _follow(self, message: Message, body: bytes) -> _Answer:
        """Name the runs that are not here; then send what each other has that the follower has not, and a `level`
        when it has all; with `stay`, go on sending until the run ends. The answer comes first, so that no
        pushes collect. One that stays may ask for a word every `alive` seconds, and then gets one, news or not: a link
        that died says nothing either."""
        missing, found, clocks = {}, [], {}
        for asked in message["runs"]:
            folder = self.home.run(asked["project"], asked["run"])
            try:
                found.append(subscribe(folder, asked))
                clocks[asked["run"]] = JournalWriter(os.path.join(folder, JOURNAL)).clock().now()
            except Refused as refusal:
                missing[asked["run"]] = refusal.message
        pulse = message.get("alive") if message.get("stay") else None
        if pulse is not None:
            self._pulse = max(0.05, float(pulse))
        self._reply({"id": message.get("id"), "ok": {"missing": missing, "alive": pulse, "clocks": clocks}})
        self._judge(found)
        for subscription in found:
            if message.get("stay"):
                self._watch = self._watch or kernel.Watch()
                self._watch.add(subscription.folder)
                self._watch.add(os.path.join(subscription.folder, "metrics"))
                self._subscriptions.append(subscription)
            self._push(subscription)
            self._reply({"push": "level", "run": subscription.run})
            self._drop_ended()
        return _ANSWERED

    def _list(self, message: Message, body: bytes) -> _Answer:
        """A page of a run's files. The first page looks, the others come from the same look."""
        begin = int(message.get("from", 0))
        if begin == 0:
            self._listing = storage.list_files(self.home, message, self._beating(message))
        rows, problems = self._listing
        return {"files": rows[begin : begin + _PAGE], "total": len(rows), "problems": problems[:100]}

    def _stream(self, message: Message, body: bytes) -> _Answer:
        """Say yes, then send the files between all other work. A new request ends the one before: one without files
        only ends it."""
        files = storage.wanted(self.home, message)
        widen(self._output.fileno())
        self._sending = storage.stream(self.home, message, files, self._beating(message))
        return {"files": len(files), "alive": message.get("alive")}

    def _beating(self, message: Message) -> Callable[[], None]:
        """For work that takes long without a word: says that it goes on, every `alive` seconds, to a client that wants
        that."""
        pulse = message.get("alive")
        every = None if pulse is None else max(0.05, float(pulse))

        def beat() -> None:
            if every is not None and time.monotonic() - self._spoke >= every:
                self._reply({"push": "alive", "run": message["run"]})

        return beat

    def _send_next_piece(self) -> None:
        if self._sending is None:
            return
        frame = next(self._sending, None)
        if frame is None:
            self._sending = None
        else:
            message, body = frame
            self._reply(message, body, is_checked=message["push"] != "piece")  # the file's digest follows

    def _push_all(self) -> None:
        if self._watch is not None and self._watch.works:
            self._watch.drain()
        now = time.monotonic()
        self._quick = self._quick + 1 if now - self._pushed < _TOGETHER else 0
        if self._quick > _MANY:
            time.sleep(_TOGETHER)  # a script that prints character by character becomes a frame now and then
        self._pushed = time.monotonic()
        for subscription in self._subscriptions:
            self._push(subscription)
        due = [each for each in self._subscriptions if not each.ended and now - each.looked > each.pace]
        for each in due:
            each.looked = now
        self._judge(due)
        self._drop_ended()
        if self._pulse is not None and self._subscriptions and time.monotonic() - self._spoke >= self._pulse:
            self._reply({"push": "alive", "run": self._subscriptions[0].run})

    def _judge(self, subscriptions: List[Subscription]) -> None:
        """Say of runs that cannot be judged why that is, once for each reason."""
        unclear = adjudicate(*(each.folder for each in subscriptions))
        for each in subscriptions:
            self._tell_problem(each, unclear.get(each.folder))

    def _push(self, subscription: Subscription) -> None:
        try:
            subscription.push(self._reply)
        except OSError as error:
            self._tell_problem(subscription, error)

    def _tell_problem(self, subscription: Subscription, error: Optional[OSError]) -> None:
        text = describe(error) if error is not None else ""
        if text and text != subscription.problem:
            self._reply({"push": "problem", "run": subscription.run}, text.encode("utf-8", "replace"))
        subscription.problem = text

    def _drop_ended(self) -> None:
        for subscription in [each for each in self._subscriptions if each.ended]:
            self._subscriptions.remove(subscription)
            self._reply({"push": "ended", "run": subscription.run})

    def _cancel(self, message: Message, body: bytes) -> _Answer:
        """Ask the run to end. Gone already is success. The request is on disk before the supervisor is woken, so it
        is not lost."""
        folder = self.home.run(message["project"], message["run"])
        if not wait_until_on_host(folder):
            raise Refused("not-found", "The run `%s` is not on this host." % message["run"])
        _require_clear(folder)
        if elsewhere(folder):
            about = (message["run"], elsewhere(folder), os.uname().nodename)
            hint = "Attach the machine by its own name, so that it is the one that is asked."
            raise Refused("elsewhere", "The run `%s` is on `%s`, and `%s` answers." % about, hint)
        if not is_alive(folder):
            return {"state": "ended"}
        storage.write_request(folder, "cancel", {"detail": message.get("detail", ""), "grace": message.get("grace")})
        owners.end(self.home, folder, message.get("grace"))
        adjudicate(folder)
        return {"state": "asked"}


def _require_clear(folder: str) -> None:
    for error in adjudicate(folder).values():
        raise error


def _read_exactly(descriptor: int, size: int) -> bytes:
    """Unbuffered, so that `poll` sees every byte that has not been taken."""
    blocks = []
    while size:
        data = os.read(descriptor, min(size, 1 << 20))
        if not data:
            break
        blocks.append(data)
        size -= len(data)
    return b"".join(blocks)
