"""Following a run: one process copies its files home, all others show the copies.

A follower that holds the run's `writer.lock` copies, in a thread of its own, so that a terminal that does not take
output (`| less`) does not keep the run from coming home. One that does not hold it waits for the copies to grow, and
takes over when the lock becomes free. Both show bytes from the copies, from their own place, so no line is shown
twice or lost."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

from holdfast.errors import ConfigurationError, FarSideError, HostError, StorageError
from holdfast.frozen import replace
from holdfast.history import journal_fold as journals
from holdfast.history.records import DIVERGED, read_run
from holdfast.history.run_folder import RunFolders
from holdfast.hosts.client import Client, Reply
from holdfast.hosts.connection import Connection, Push
from holdfast.hosts.replies import Followed
from holdfast.model import Run, Submission
from holdfast.project.compute import BUILTIN_LOCAL
from holdfast.project.folder import Project
from holdfast.workbench.following.mirror import Mirror, stopped_writer, writer_lock
from holdfast.workbench.following.missing_file import missing_file_sentence
from holdfast.workbench.following.outputs import OUTPUTS, Collector, collect
from holdfast.workbench.following.transfer import FarRun
from holdfast.workbench.following.view import View
from holdfast.workbench.reach import events, pulse
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.products import DetachedHost, product_for
from holdfast.workbench.reach.reconnection import TRIES, Patience, run_goes_on
from holdfast.workbench.reach.targets import Product, product_of
from holdfast.workbench.reach.whereabouts import require_same

WAIT = 0.25
"""Seconds between looks at copies that another process writes."""

_GREW, _DONE = object(), object()


def follower_of(project: Project, run: str, context: Context) -> Follower:
    """`run` as a person writes it: an id, the beginning or end of one, `last`."""
    folders = RunFolders(project.state_directory)
    run_id = folders.resolve(run)
    try:
        product = product_for(project, run_id, context)
    except ConfigurationError as error:
        if not folders.is_collected(run_id):
            raise
        here = product_of(BUILTIN_LOCAL, context)
        product = replace(here, host=DetachedHost(folders.submission(run_id).target, error.problems))
    return Follower(project, run_id, product, context)


class Follower:
    def __init__(self, project: Project, run_id: str, product: Product, context: Context) -> None:
        self.project, self.run_id, self.product, self._context = project, run_id, product, context
        self.folders = RunFolders(project.state_directory)
        self.folder = self.folders.path(run_id)
        self._connection: Connection | None = None
        self._is_shared = False
        self._was_connected = self._was_reached = self._is_lost = False
        self._asked: Reply[Followed] | None = None
        self._view = View(self.folder)
        self._is_writer = False
        self._warned = False

    @contextlib.contextmanager
    def writing(self, held: bool = False) -> Iterator[bool]:
        """Be the one who copies, for as long as the block lasts; `held`: the caller has the lock already. False:
        another process is, and this one only shows."""
        try:
            with contextlib.nullcontext(True) if held else writer_lock(self.folder) as mine:
                self._is_writer = mine
                yield mine
        finally:
            self._is_writer = False
            self.disconnect()

    @functools.cached_property
    def submission(self) -> Submission:
        return self.folders.submission(self.run_id)

    def connection(self) -> Connection:
        """No password is asked for in the middle of a run's output: only a first connection may ask."""
        if self._connection is None:
            self._connection = self.product.host.connect(may_ask=not self._was_connected)
            self._was_connected = True
        return self._connection

    def share(self, connection: Connection) -> None:
        """Use a connection that the caller made, and will close."""
        self._connection, self._is_shared = connection, True
        self._was_connected = self._was_reached = True

    def adopt(self, connection: Connection) -> None:
        """Use a connection that was begun for this follower, and is its own from now on."""
        self._connection, self._was_connected = connection, True

    def disconnect(self) -> None:
        if self._connection is not None and not self._is_shared:
            self._connection.close()
        self._connection, self._is_shared, self._asked = None, False, None

    def ask(self) -> None:
        """Ask to follow without waiting for the answer, which `follow` takes: it travels with what was sent before."""
        asked = {"project": self.submission.project_id, "run": self.run_id, "have": Mirror(self.folder).have()}
        alive = None if self.product.host.is_here else pulse.PULSE
        self._asked = Client(self.connection()).follow([asked], stay=True, alive=alive)

    def heard(self) -> Followed:
        """The answer to `ask`, which is asked now if it was not."""
        while (reply := self._asked) is None:
            self.ask()
        self._asked = None
        answer = reply.wait()
        self._was_reached = True
        if not answer.missing:
            self.folders.take_up_again(self.run_id)
        return answer

    def follow(self) -> Iterator[events.Event]:
        """Every event until the run has ended and its outputs are at home; last an `Ended`."""
        while not self.folders.is_collected(self.run_id):
            if self._is_writer:
                yield from self._copy_and_show()
            else:
                with self.writing() as mine:
                    yield from self._copy_and_show() if mine else self._show_others_copies()
        yield from self._view.news()
        run = self.read()
        yield events.Ended(run, missing_file_sentence(self.project.root, self.folder, run, self._context.environment))

    def finish(self, limit: int | None = None) -> Iterator[events.Event]:
        """Bring the outputs home; for the writer, after the end. A repeat changes nothing. Raises `collecting.TooLarge`
        where more than `limit` bytes would have to travel."""
        run = self.read()
        if not run.status.is_final or self.folders.is_collected(self.run_id):
            return
        yield from collect(self.connection, self.product.host.is_here, self.folder, run, limit, self.require_place)
        self._keep_lock()

    def _keep_lock(self) -> None:
        """To which packages the spec was resolved over there is what it means from now on."""
        if not (self.folder / "environment.json").exists():
            return
        from holdfast.environments.project_locks import keep_lock, read_lock

        lock, plan = read_lock(self.folder / "environment.json"), self.folders.plan(self.run_id)["environment"]
        if lock is not None and plan and not plan["exact"]:
            with contextlib.suppress(OSError):  # it will be resolved again
                keep_lock(self.project.state_directory, lock, str(plan["spec"]), replace=bool(plan["upgrade"]))

    def now(self) -> float:
        return self._context.now()

    def read(self) -> Run:
        return read_run(self.folders, self.run_id)

    def time_to_finish(self) -> float | None:
        """Seconds that a run which is being ended still has, as far as is known here; None: it is not being ended, or
        it has ended."""
        begun = [each for each in self._view.journal().events if isinstance(each, journals.EndingBegan)]
        if not begun or self.read().ending is not None:
            return None
        now = self.now() + (self.folders.clock_offset(self.run_id) or 0.0)
        return max(0.0, begun[-1].time + begun[-1].grace - now)

    def write_end(self, reason: str, detail: str) -> None:
        """For the writer, when no far side will: the run is not on its host. The near journal then says so itself."""
        ending = {"reason": reason, "code": None, "signal": None, "detail": detail, "by": "client"}
        record = {"t": self._context.now(), "e": "ended", **ending}
        try:
            with (self.folder / "journal.jsonl").open("ab") as target:
                target.write(json.dumps(record).encode() + b"\n")
        except OSError as error:
            raise StorageError(
                f"The end of `{self.run_id}` cannot be recorded: {error.strerror}.", "Make room on the project's disk."
            ) from error

    def settle_missing(self) -> None:
        """The host does not have the run. If it was there once, its files were removed; if not, it must not be started
        any more: the host takes its name, and the next look finds how that went. Raises ElsewhereError."""
        self.require_place()
        if any(isinstance(event, journals.Created) for event in self._view.journal().events):
            self.write_end("lost", "")
            return
        self.give_up()

    def require_place(self) -> None:
        """Raises ElsewhereError where what answers is not the place at which the run was started."""
        known = self.folders.place(self.run_id)
        if known is not None:
            now = Client(self.connection()).hello().wait().place
            require_same(known, now, self.product.host, self.submission)

    def give_up(self, why: str = "") -> bool:
        """Have the host take the run's name, so that it is not started any more. False: it has begun."""
        submission = self.submission
        far = Client(self.connection())
        return far.give_up(submission.project_id, self.run_id, submission.generation, why)

    def copy(self) -> None:
        """For the writer: bring home how the run ended, without showing anything, and without trying again."""
        for _ in (*self._pump(), *self.finish()):
            pass

    def _copy_and_show(self) -> Iterator[events.Event]:
        """Copy in a thread until everything is at home; show what has come meanwhile."""
        happened: queue.SimpleQueue[object] = queue.SimpleQueue()
        copier = threading.Thread(target=self._copy, args=(happened,), daemon=True)
        copier.start()
        yield from self._view.news()  # what is at home already: the machine does not say it again
        while True:
            try:
                item = happened.get(timeout=1.0)
            except queue.Empty:
                yield events.StillWaiting()
                continue
            if isinstance(item, events.Reconnected):  # what has come since then is shown after it
                yield item
            yield from self._view.news()
            if item is _DONE:
                break
            if isinstance(item, BaseException):
                raise item
            if item is not _GREW and not isinstance(item, events.Reconnected):
                yield item  # type: ignore[misc] # the copier puts events, errors and the two marks, nothing else
        copier.join()

    def _copy(self, happened: queue.SimpleQueue[object]) -> None:
        """A lost connection is taken up again where it broke."""
        tries = None if not self.product.host.is_here else len(TRIES)
        patience = Patience(tries, run_goes_on(self.run_id), bytes_at_home(self.folder))
        try:
            while True:
                try:
                    for event in self._pump():
                        happened.put(event)
                    for event in self.finish():
                        for back in self._back():
                            happened.put(back)
                        happened.put(event)
                except HostError as error:
                    self.disconnect()
                    if not self._was_reached:
                        raise
                    pause = patience.pause(error, bytes_at_home(self.folder))
                    self._is_lost = True
                    happened.put(events.ConnectionLost(self.run_id, error.message, pause))
                    time.sleep(pause)
                else:
                    break
        except BaseException as error:  # noqa: BLE001 - handed to the follower, whatever it is
            happened.put(error)
        happened.put(_DONE)

    def _pump(self) -> Iterator[object]:
        """Copy until the journal at home has the run's end; yields whenever something was written."""
        mirror = Mirror(self.folder)
        while not self.read().status.is_final:
            answer = self.heard()
            yield from self._back()
            if answer.missing:
                self.settle_missing()
                yield _GREW
                continue
            yield from self._listen(mirror, answer.alive is not None)

    def _back(self) -> Iterator[events.Event]:
        """The host was heard: a word about that, if one about its silence was said."""
        if self._is_lost:
            self._is_lost = False
            yield events.Reconnected(self.run_id, self.product.host.name)

    def _listen(self, mirror: Mirror, has_pulse: bool) -> Iterator[object]:
        """Until the run ends: write what comes, and now and then fetch the outputs, if that was asked for."""
        connection, host, every = self.connection(), self.product.host.name, self.submission.sync_outputs
        ended: list[Push] = []

        def take(push: Push) -> bool:
            if push.kind == "ended":
                ended.append(push)
            return mirror.apply(push)

        due = time.monotonic() + (every or 0.0)
        while not ended:
            left = None if every is None else due - time.monotonic()
            push = pulse.next_push(connection, host, left, has_pulse) if left is None or left > 0 else None
            if push is not None:
                if take(push):
                    yield _GREW
            elif every is not None and due <= time.monotonic():
                is_well = yield from self._fetch_outputs(connection, take)
                every = every if is_well else None
                due = time.monotonic() + (every or 0.0)

    def _fetch_outputs(self, connection: Connection, take: Callable[[Push], bool]) -> Generator[object, None, bool]:
        """What is there now; the end of the run makes it exact. False: it is not worth trying again before that."""
        far = FarRun(self.submission.project_id, self.run_id, False, self.product.host.name)
        collector = Collector(connection, self.product.host.is_here, far, self.folder, take)
        try:
            yield from collector.bring((OUTPUTS,))
        except (FarSideError, StorageError, OSError) as error:
            text = getattr(error, "message", str(error))
            yield events.Warned(f"Outputs are not fetched any more while the run goes on: {text}", run_id=self.run_id)
            return False
        return True

    def _show_others_copies(self) -> Iterator[events.Event]:
        """One look at what another process has copied, then a pause; the caller tries for the lock again."""
        yield from self._view.news()
        stopped = stopped_writer(self.folder)
        if stopped and not self._warned:
            self._warned = True
            yield events.Warned(
                f"Process {stopped}, which copies this run's output, is stopped; nothing new is seen until it goes on.",
                f"Continue it (fg in its terminal, or kill -CONT {stopped}), or end it: kill {stopped}",
                self.run_id,
            )
        time.sleep(WAIT)
        yield events.StillWaiting()


def bytes_at_home(folder: Path) -> int:
    """Of the run, in whatever file; a copy that was set aside is not progress."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            if DIVERGED not in name:
                with contextlib.suppress(OSError):
                    total += os.lstat(os.path.join(place, name)).st_size
    return total
