"""Following a run: one process copies its files home, everybody shows the copies.

A follower that holds the run's `writer.lock` copies, in a thread of its own, so that a terminal that does not take
output (`| less`) does not keep the run from coming home. One that does not hold it waits for the copies to grow, and
takes over when the lock becomes free. Both show bytes from the copies, from their own place, so no line is shown
twice or lost."""

from __future__ import annotations

import contextlib
import json
import queue
import threading
import time
from collections.abc import Iterator

from holdfast.errors import HostError, StorageError
from holdfast.history import journal as journals
from holdfast.history.folder import RunFolders
from holdfast.history.records import read_run
from holdfast.hosts.connection import Connection
from holdfast.model import Run
from holdfast.project.folder import Project
from holdfast.workbench import events
from holdfast.workbench.absent import missing_file_sentence
from holdfast.workbench.collecting import collect
from holdfast.workbench.mirror import Mirror, stopped_writer, writer_lock
from holdfast.workbench.surroundings import Surroundings
from holdfast.workbench.targets import Product
from holdfast.workbench.view import View

WAIT = 0.25
"""Seconds between looks at copies that another process writes."""
TRIES = (0.2, 1.0, 2.0, 5.0, 10.0)

_GREW, _DONE = object(), object()


class Follower:
    def __init__(self, project: Project, run_id: str, product: Product, around: Surroundings) -> None:
        self.project, self.run_id, self.product, self._around = project, run_id, product, around
        self.folders = RunFolders(project.state_directory)
        self.folder = self.folders.path(run_id)
        self._connection: Connection | None = None
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

    def connection(self) -> Connection:
        if self._connection is None:
            self._connection = self.product.host.connect()
        return self._connection

    def share(self, connection: Connection) -> None:
        """Use a connection that somebody else made."""
        self._connection = connection

    def disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

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
        yield events.Ended(run, missing_file_sentence(self.project.root, self.folder, run, self._around.environment))

    def finish(self) -> Iterator[events.Event]:
        """Bring the outputs home; for the writer, after the end. A repeat changes nothing."""
        run = self.read()
        if not run.status.is_final or self.folders.is_collected(self.run_id):
            return
        yield from collect(self.connection, self.product.host.is_here, self.project.id, self.folder, run)

    def read(self) -> Run:
        return read_run(self.folders, self.run_id)

    def write_end(self, reason: str, detail: str) -> None:
        """For the writer, when no far side will: the run is not on its host. The near journal then says so itself."""
        ending = {"reason": reason, "code": None, "signal": None, "detail": detail, "by": "client"}
        record = {"t": self._around.now(), "e": "ended", **ending}
        try:
            with (self.folder / "journal.jsonl").open("ab") as target:
                target.write(json.dumps(record).encode() + b"\n")
        except OSError as error:
            raise StorageError(
                f"The end of `{self.run_id}` cannot be recorded: {error.strerror}.", "Make room on the project's disk."
            ) from error

    def settle_missing(self) -> None:
        """The host does not have the run. If it was there once, its files were removed; if not, nobody shall start it
        any more: the host takes its name, and the next look finds how that went."""
        if any(isinstance(event, journals.Created) for event in self._view.journal().events):
            self.write_end("lost", "")
            return
        submission = self.folders.submission(self.run_id)
        fields = {"project": self.project.id, "run": self.run_id, "generation": submission.generation}
        self.connection().request("give-up", fields)

    def _copy_and_show(self) -> Iterator[events.Event]:
        """Copy in a thread until everything is at home; show what has come meanwhile."""
        happened: queue.SimpleQueue[object] = queue.SimpleQueue()
        copier = threading.Thread(target=self._copy, args=(happened,), daemon=True)
        copier.start()
        while True:
            try:
                item = happened.get(timeout=1.0)
            except queue.Empty:
                yield events.StillWaiting()
                continue
            yield from self._view.news()
            if item is _DONE:
                break
            if isinstance(item, BaseException):
                raise item
            if item is not _GREW:
                yield item  # type: ignore[misc] # the copier puts events, errors and the two marks, nothing else
        copier.join()

    def _copy(self, happened: queue.SimpleQueue[object]) -> None:
        """A lost connection is taken up again where it broke."""
        failures = 0
        try:
            while True:
                try:
                    for _ in self._pump():
                        failures = 0
                        happened.put(_GREW)
                    for event in self.finish():
                        happened.put(event)
                except HostError as error:
                    self.disconnect()
                    if failures == len(TRIES):
                        raise
                    happened.put(events.ConnectionLost(error.message, TRIES[failures]))
                    time.sleep(TRIES[failures])
                    failures += 1
                else:
                    break
        except BaseException as error:  # noqa: BLE001 - handed to whoever follows, whatever it is
            happened.put(error)
        happened.put(_DONE)

    def _pump(self) -> Iterator[None]:
        """Copy until the journal at home has the run's end; yields whenever something was written."""
        mirror = Mirror(self.folder)
        while not self.read().status.is_final:
            connection = self.connection()
            asked = {"project": self.project.id, "run": self.run_id, "have": mirror.have()}
            answer = connection.request("follow", {"runs": [asked], "stay": True})
            if self.run_id in answer["missing"]:
                self.settle_missing()
                yield
                continue
            while (push := connection.next_push(None)) is None or push.kind != "ended":
                if push is not None and mirror.apply(push):
                    yield

    def _show_others_copies(self) -> Iterator[events.Event]:
        """One look at what another process has copied, then a pause; the caller tries for the lock again."""
        yield from self._view.news()
        stopped = stopped_writer(self.folder)
        if stopped and not self._warned:
            self._warned = True
            yield events.Warned(
                f"Process {stopped}, which copies this run's output, is stopped; nothing new is seen until it goes on.",
                f"Continue it (fg in its terminal, or kill -CONT {stopped}), or end it: kill {stopped}",
            )
        time.sleep(WAIT)
