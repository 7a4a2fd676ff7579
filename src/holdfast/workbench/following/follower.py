"""Following a run: one process copies its files home, all others show the copies.

A follower that holds the run's `writer.lock` copies, in a thread of its own, so that a terminal that does not take
output (`| less`) does not keep the run from coming home. One that does not hold it waits for the copies to grow, and
takes over when the lock becomes free. Both show bytes from the copies, from their own place, so no line is shown
twice or lost."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

from holdfast.errors import FarSideError, HostError, StorageError
from holdfast.farside.system.folders import walked
from holdfast.history.records import DIVERGED
from holdfast.hosts.connection import Push
from holdfast.model import Reason, Run
from holdfast.workbench.following.far_listing import WRITTEN
from holdfast.workbench.following.mirror import Mirror, View, stopped_writer
from holdfast.workbench.following.outputs import collect, collector_of
from holdfast.workbench.following.session import Session
from holdfast.workbench.reach import events, link

_WAIT = 0.25
"""Seconds between looks at copies that another process writes."""
_SHOWN_EVERY = 0.1
"""Seconds between looks at what has come while thousands of files are fetched."""

_GREW, _DONE = object(), object()


class Follower:
    def __init__(self, session: Session) -> None:
        self._session, self._view = session, View(session.folder)
        self._is_lost = self._warned = False

    def follow(self) -> Iterator[events.Event]:
        """Every event until the run has ended and its outputs are at home; last an `Ended`."""
        session = self._session
        while not session.folders.is_collected(session.run_id):
            if session.is_writer:
                yield from self._copy_and_show()
            else:
                with session.writing() as mine:
                    yield from self._copy_and_show() if mine else self._show_others_copies()
        yield from self._view.news()
        run = session.read()
        yield events.Ended(run, _what_it_missed(session, run))

    def copy(self) -> None:
        """For the writer: bring home how the run ended, without showing anything, and without trying again."""
        for _ in (*self._pump(), *collect(self._session)):
            pass

    def _copy_and_show(self) -> Iterator[events.Event]:
        """Copy in a thread until everything is at home; show what has come meanwhile."""
        happened: queue.SimpleQueue[object] = queue.SimpleQueue()
        copier = threading.Thread(target=self._copy, args=(happened,), daemon=True)
        copier.start()
        yield from self._view.news()  # what is at home already: the machine does not say it again
        shown = time.monotonic()
        while True:
            try:
                item = happened.get(timeout=1.0)
            except queue.Empty:
                yield events.StillWaiting()
                continue
            if isinstance(item, events.Reconnected):  # what has come since then is shown after it
                yield item
            if not isinstance(item, events.Fetched) or time.monotonic() - shown > _SHOWN_EVERY:
                yield from self._view.news()
                shown = time.monotonic()
            if item is _DONE:
                break
            if isinstance(item, BaseException):
                raise item
            if item is not _GREW and not isinstance(item, events.Reconnected):
                yield item  # type: ignore[misc] # the copier puts events, errors and the two marks, nothing else
        copier.join()

    def _copy(self, happened: queue.SimpleQueue[object]) -> None:
        """A lost connection is taken up again where it broke."""
        session = self._session
        patience = session.patience(progress=_bytes_at_home(session.folder))
        try:
            while True:
                try:
                    for event in self._pump():
                        happened.put(event)
                    for event in collect(session):
                        for back in self._back():
                            happened.put(back)
                        happened.put(event)
                except HostError as error:
                    session.disconnect()
                    if not session.was_reached:
                        raise
                    pause = patience.pause(error, _bytes_at_home(session.folder))
                    self._is_lost = True
                    happened.put(events.ConnectionLost(session.run_id, error.message, pause))
                    time.sleep(pause)
                else:
                    break
        except BaseException as error:  # noqa: BLE001 - handed to the follower, whatever it is
            happened.put(error)
        happened.put(_DONE)

    def _pump(self) -> Iterator[object]:
        """Copy until the journal at home has the run's end; yields whenever something was written."""
        mirror = Mirror(self._session.folder)
        while not self._session.read().status.is_final:
            answer = self._session.heard()
            yield from self._back()
            if answer.missing:
                self._session.settle_missing()
                yield _GREW
                continue
            yield from self._listen(mirror, answer.alive is not None)

    def _back(self) -> Iterator[events.Event]:
        """The host was heard: a word about that, if one about its silence was said."""
        if self._is_lost:
            self._is_lost = False
            yield events.Reconnected(self._session.run_id, self._session.host.name)

    def _listen(self, mirror: Mirror, has_pulse: bool) -> Iterator[object]:
        """Until the run ends: write what comes, and now and then fetch the outputs, if that was asked for."""
        session = self._session
        connection, every = session.connection(), session.submission.sync_outputs
        ended: list[Push] = []

        def take(push: Push) -> bool:
            if push.kind == "ended":
                ended.append(push)
            return mirror.apply(push)

        connection.spill = take
        due = time.monotonic() + (every or 0.0)
        while not ended:
            left = None if every is None else due - time.monotonic()
            push = link.next_push(connection, session.host.name, left, has_pulse) if left is None or left > 0 else None
            if push is not None:
                if push.kind == "problem":
                    session.hear_problem(push)
                    yield session.warning()
                elif take(push):
                    yield _GREW
            elif every is not None and due <= time.monotonic():
                is_well = yield from self._fetch_outputs(take)
                every = every if is_well else None
                due = time.monotonic() + (every or 0.0)

    def _fetch_outputs(self, take: Callable[[Push], bool]) -> Generator[object, None, bool]:
        """What is there now; the end of the run makes it exact. False: it is not worth trying again before that."""
        try:
            yield from collector_of(self._session, has_ended=False, other=take).bring(WRITTEN)
        except (FarSideError, StorageError, OSError) as error:
            text, run_id = getattr(error, "message", str(error)), self._session.run_id
            yield events.Warned(f"Outputs are not fetched any more while the run goes on: {text}", run_id=run_id)
            return False
        return True

    def _show_others_copies(self) -> Iterator[events.Event]:
        """One look at what another process has copied, then a pause; the caller tries for the lock again."""
        yield from self._view.news()
        stopped = stopped_writer(self._session.folder)
        if stopped and not self._warned:
            self._warned = True
            yield events.Warned(
                f"Process {stopped}, which copies this run's output, is stopped; nothing new is seen until it goes on.",
                f"Continue it (fg in its terminal, or kill -CONT {stopped}), or end it: kill {stopped}",
                self._session.run_id,
            )
        time.sleep(_WAIT)
        yield events.StillWaiting()


def _bytes_at_home(folder: Path) -> int:
    """Of the run, in whatever file; a copy that was set aside is not progress."""
    total = 0
    for place, _, names in walked(os.fspath(folder)):
        for name in names:
            if DIVERGED not in name:
                with contextlib.suppress(OSError):
                    total += os.lstat(os.path.join(place, name)).st_size
    return total


def _what_it_missed(session: Session, run: Run) -> str:
    """Why it failed, if it lacked a file, module or program. What finds that out is loaded for a run that failed."""
    if run.ending is None or run.ending.reason is Reason.COMPLETED:
        return ""
    from holdfast.workbench.following.missing_file import missing_file_sentence

    return missing_file_sentence(session.project.root, session.folders, run, session.context.environment)
