"""Following a run: one process copies its files home, everybody shows the copies.

A follower that holds the run's `writer.lock` copies; one that does not waits for the copies to grow, and takes over
when the lock becomes free. Both show bytes from the copies, from their own place, so no line is shown twice or lost.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Generator, Iterator
from pathlib import Path

from holdfast.errors import HostError, StorageError
from holdfast.history import journal as journals
from holdfast.history.folder import RunFolders
from holdfast.history.index import Index
from holdfast.history.records import read_run
from holdfast.hosts.connection import Connection
from holdfast.model import Run
from holdfast.project.folder import Project
from holdfast.workbench import events
from holdfast.workbench.absent import missing_file_sentence
from holdfast.workbench.collecting import collect, is_collected
from holdfast.workbench.mirror import Mirror, writer_lock
from holdfast.workbench.surroundings import Surroundings
from holdfast.workbench.targets import Product

WAIT = 0.25
"""Seconds between looks at copies that another process writes."""
TRIES = (0.2, 1.0, 2.0, 5.0, 10.0)


class Follower:
    def __init__(self, project: Project, run_id: str, product: Product, around: Surroundings) -> None:
        self.project, self.run_id, self.product, self._around = project, run_id, product, around
        self.folders = RunFolders(project.state_directory)
        self.folder = self.folders.path(run_id)
        self._connection: Connection | None = None
        self._view = View(self.folder)
        self._is_writer = False

    @contextlib.contextmanager
    def writing(self) -> Iterator[bool]:
        """Try to be the one who copies, for as long as the block lasts. False: another process is."""
        try:
            with writer_lock(self.folder) as mine:
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
        """Use a connection that somebody else made, for several runs of one host."""
        self._connection = connection

    def disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def follow(self) -> Iterator[events.Event]:
        """Every event until the run has ended and its outputs are at home; last an `Ended`."""
        while not self._view.ended:
            if self._is_writer:
                yield from self._copy_and_show()
            else:
                with self.writing() as mine:
                    yield from self._copy_and_show() if mine else self._show_others_copies()
        while not is_collected(self.folder):
            if self._is_writer:
                yield from self.finish()
            else:
                with self.writing() as mine:
                    if mine:
                        yield from self.finish()
                    else:
                        time.sleep(WAIT)
        run = self.read()
        yield events.Ended(run, missing_file_sentence(self.project.root, self.folder, run))

    def finish(self) -> Iterator[events.Event]:
        """Bring the outputs home and write the index; for the writer, after the end. A repeat changes nothing."""
        run = self.read()
        if not run.status.is_final or is_collected(self.folder):
            return
        yield from collect(self.connection, self.product.host.is_here, self.project.id, self.folder, run)
        try:
            self.update_index()
        except StorageError as error:  # the run's folder has everything; the index takes it in when it can be written
            yield events.Warned(error.message, error.hint)

    def read(self) -> Run:
        return read_run(self.folders, self.run_id)

    def update_index(self) -> None:
        run = self.read()
        if run.submission.tracked:
            Index(self.project.state_directory).update(run)

    def write_end(self, reason: str, detail: str) -> None:
        """For the writer, when no far side will: the run is not on its host. The near journal then says so itself."""
        record = {
            "t": self._around.now(),
            "e": "ended",
            "reason": reason,
            "code": None,
            "signal": None,
            "detail": detail,
            "by": "client",
        }
        with (self.folder / "journal.jsonl").open("ab") as target:
            target.write(json.dumps(record).encode() + b"\n")
        self.update_index()

    def _copy_and_show(self) -> Iterator[events.Event]:
        """Until the run has ended. A lost connection is taken up again where it broke."""
        failures = 0
        while True:
            yield from self._view.news()
            if self._view.ended:
                return
            try:
                for each in self._pump():
                    failures = 0
                    yield each
            except HostError as error:
                self.disconnect()
                if failures == len(TRIES):
                    raise
                yield events.ConnectionLost(error.message, TRIES[failures])
                time.sleep(TRIES[failures])
                failures += 1

    def _pump(self) -> Iterator[events.Event]:
        connection, mirror = self.connection(), Mirror(self.folder)
        asked = {"project": self.project.id, "run": self.run_id, "have": mirror.have()}
        answer = connection.request("follow", {"runs": [asked], "stay": True})
        if self.run_id in answer["missing"]:
            self.settle_missing()
            return
        while not self._view.ended:
            push = connection.next_push(None)
            while push is not None and push.kind != "ended":
                mirror.apply(push)
                push = connection.next_push(0)
            yield from self._view.news()

    def settle_missing(self) -> None:
        """The host does not have the run. If it was there once, its files were removed; if not, nobody shall start it
        any more: the host takes its name, and the next look finds how that went."""
        if any(isinstance(event, journals.Created) for event in self._view.journal().events):
            self.write_end("lost", "")
            return
        submission = self.folders.submission(self.run_id)
        fields = {"project": self.project.id, "run": self.run_id, "generation": submission.generation}
        self.connection().request("give-up", fields)

    def _show_others_copies(self) -> Generator[events.Event, None, None]:
        """One look at what another process has copied, then a pause; the caller tries for the lock again."""
        yield from self._view.news()
        if not self._view.ended:
            time.sleep(WAIT)


class View:
    """What one reader has shown of a run's copies so far."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shown = {"journal.jsonl": 0, "driver_log": 0}
        self.ended = False

    def journal(self) -> journals.Journal:
        try:
            return journals.parse_journal((self._folder / "journal.jsonl").read_bytes())
        except FileNotFoundError:
            return journals.parse_journal(b"")

    def news(self) -> Iterator[events.Event]:
        """What the copies have that was not shown. The journal is read first, so that its end implies the whole
        output."""
        lines = self._take("journal.jsonl", whole_lines=True)
        output = self._take("driver_log")
        parsed = journals.parse_journal(lines).events
        phases = [each for each in parsed if isinstance(each, journals.PhaseBegan | journals.ScriptStarted)]
        for event in parsed:
            if event in phases[-1:]:  # those before it are over
                yield _phase(event)
            elif isinstance(event, journals.EnvironmentUsed):
                yield events.EnvironmentReady(event.id, len(event.packages), event.built, event.seconds)
            elif isinstance(event, journals.EndingBegan):
                yield events.EndingBegan(event.cause, event.grace)
            elif isinstance(event, journals.Noted):
                yield events.Noted(event.text)
        if output:
            yield events.OutputArrived(output)
        self.ended = self.ended or any(isinstance(event, journals.RunEnded) for event in parsed)

    def _take(self, name: str, whole_lines: bool = False) -> bytes:
        try:
            with (self._folder / name).open("rb") as source:
                size = source.seek(0, 2)
                if size < self._shown[name]:  # the copy was set aside and begun again
                    self._shown[name] = 0
                source.seek(self._shown[name])
                data = source.read()
        except FileNotFoundError:
            return b""
        if whole_lines:
            data = data[: data.rfind(b"\n") + 1]
        self._shown[name] += len(data)
        return data


def _phase(event: journals.JournalEvent) -> events.PhaseChanged:
    if isinstance(event, journals.PhaseBegan):
        return events.PhaseChanged(event.name, event.text)
    return events.PhaseChanged("script", "running the script")
