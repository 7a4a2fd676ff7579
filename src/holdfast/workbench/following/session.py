"""One run and its host: the connection, whether what answers is where the run was started, and what is said about the
run. Starting, canceling, refreshing and cleaning need no more; a `Follower` copies and shows over a session.

One name may lead to several machines, and a target's files may be edited while a run goes on: only the place where the
run was started can say that it is gone, or never began."""

from __future__ import annotations

import contextlib
import functools
import json
import os
from collections.abc import Iterator
from typing import Any

from holdfast.errors import ConfigurationError, ElsewhereError, StorageError
from holdfast.farside.system.whole_lines import pieces
from holdfast.history import journal_fold as journals
from holdfast.history.records import read_run
from holdfast.history.run_folder import RunFolders
from holdfast.hosts.client import Client, Reply
from holdfast.hosts.connection import Connection, Push
from holdfast.hosts.host import Host
from holdfast.hosts.replies import Followed
from holdfast.model import Place, Run, Submission
from holdfast.project.folder import Project
from holdfast.regular_files import open_regular
from holdfast.shown_text import pasted
from holdfast.workbench.following.mirror import Mirror, writer_lock
from holdfast.workbench.reach import events, link
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.run_hosts import DetachedHost, RunHosts

_LONGEST = 1000
"""Characters of what a host says about a run."""
_SAME_MOMENT = 0.5
"""Seconds that two answers of a host may differ by, as they take time to come."""
ANOTHER_MACHINE = "another machine answers at this address"
ANOTHER_FOLDER = "the target's folder is another one now"


def session_of(project: Project, run: str, context: Context) -> Session:
    """`run` as a user writes it: an id, the beginning or end of one, `last`."""
    folders = RunFolders(project.state_directory)
    run_id = folders.resolve(run)
    host: Host
    try:
        host = RunHosts(project, context).of_run(run_id)
    except ConfigurationError as error:
        if not folders.is_collected(run_id):
            raise
        host = DetachedHost(folders.submission(run_id).target, error.problems)
    return Session(project, run_id, host, context)


class Session:
    """Connects when something is asked. `writing` is the right to change the run's copies here."""

    def __init__(self, project: Project, run_id: str, host: Host, context: Context) -> None:
        self.project, self.run_id, self.host, self.context = project, run_id, host, context
        self.folders = RunFolders(project.state_directory)
        self.folder = self.folders.path(run_id)
        self.is_writer = False
        self.was_reached = False
        """Whether the host has answered: then a lost link is worth trying again."""
        self.problem = ""
        """Why the host cannot say whether the run is alive, as it said last."""
        self._connection: Connection | None = None
        self._is_shared = self._was_connected = False
        self._asked: Reply[Followed] | None = None

    @functools.cached_property
    def submission(self) -> Submission:
        return self.folders.submission(self.run_id)

    def read(self) -> Run:
        return read_run(self.folders, self.run_id)

    def time_to_finish(self) -> float | None:
        """Seconds that a run which is being ended still has, as far as is known here. None if it is not being ended, or
        has ended."""
        begun = None
        for event in self._journal():
            begun = event if isinstance(event, journals.EndingBegan) else begun
        if begun is None or self.read().ending is not None:
            return None
        return max(0.0, begun.time + begun.grace - self.time_there())

    def time_there(self) -> float:
        """Now, by the run's clock as its host told it last. If this machine was restarted since, or cannot tell: by the
        clocks of both machines."""
        since_boot = self.context.boot_clock()
        ahead = None if since_boot is None else self.folders.run_ahead(self.run_id, since_boot.boot)
        if since_boot is None or ahead is None:
            return self.context.now() + (self.folders.clock_offset(self.run_id) or 0.0)
        return since_boot.seconds + ahead

    def hear_clock(self, answer: Followed) -> None:
        """Keep what the host told, unless that is known."""
        there, since_boot = answer.clocks.get(self.run_id), self.context.boot_clock()
        if there is None or since_boot is None:
            return
        known, ahead = self.folders.run_ahead(self.run_id, since_boot.boot), round(there - since_boot.seconds, 3)
        if known is None or abs(known - ahead) > _SAME_MOMENT:
            self.folders.write_run_ahead(self.run_id, since_boot.boot, ahead)

    @contextlib.contextmanager
    def writing(self, held: bool = False) -> Iterator[bool]:
        """Holds the run's `writer.lock` for the block, which ends with a disconnect; `held`: the caller has the lock
        already. False: another process has it, and this one only shows."""
        try:
            with contextlib.nullcontext(True) if held else writer_lock(self.folder) as mine:
                self.is_writer = mine
                yield mine
        finally:
            self.is_writer = False
            self.disconnect()

    def connection(self) -> Connection:
        """Only the first connection may ask for a password: none is asked for in the middle of a run's output."""
        if self._connection is None:
            self._connection = self.host.connect(may_ask=not self._was_connected)
            self._was_connected = True
        return self._connection

    def far(self) -> Client:
        return Client(self.connection())

    def hear_problem(self, push: Push) -> None:
        """The host cannot judge the run, which stays as it is."""
        self.problem = push.data.decode("utf-8", "replace")[:_LONGEST]

    def warning(self) -> events.Warned:
        """Of the problem."""
        return events.Warned(
            f"Cannot tell whether {self.run_id} is alive: {self.problem}.",
            "If it is over, remove it with what it wrote: "
            f"holdfast experiment clean -r {pasted(self.run_id)} --discard-outputs",
            self.run_id,
        )

    def share(self, connection: Connection) -> None:
        """Use a connection that answers, and that the caller closes."""
        self._connection, self._is_shared = connection, True
        self._was_connected = self.was_reached = True

    def adopt(self, connection: Connection) -> None:
        """Use a connection that was begun for this session, which closes it."""
        self._connection, self._was_connected = connection, True

    def disconnect(self) -> None:
        if self._connection is not None and not self._is_shared:
            self._connection.close()
        self._connection, self._is_shared, self._asked = None, False, None

    def patience(self, is_followed: bool = True, progress: int = 0) -> link.Patience:
        """How long to try again after a lost link: for ever while a run on another machine `is_followed`."""
        tries = None if is_followed and not self.host.is_here else len(link.TRIES)
        advice = f"The run goes on. Follow it again: holdfast logs -f -r {pasted(self.run_id)}"
        return link.Patience(tries, advice, progress)

    def to_follow(self) -> dict[str, Any]:
        """The run and what is at home of it, as the far side is asked to follow it."""
        return {"project": self.submission.project_id, "run": self.run_id, "have": Mirror(self.folder).have()}

    def ask(self) -> None:
        """Ask to follow without waiting for the answer, which `heard` returns: it travels with what was sent before."""
        alive = None if self.host.is_here else link.PULSE
        self._asked = self.far().follow([self.to_follow()], stay=True, alive=alive)

    def heard(self) -> Followed:
        """The answer to `ask`, which is asked now if it was not."""
        while (reply := self._asked) is None:
            self.ask()
        self._asked = None
        answer = reply.wait()
        self.was_reached = True
        if not answer.missing:
            self.folders.take_up_again(self.run_id)
            self.hear_clock(answer)
        return answer

    def require_place(self) -> None:
        """Raises ElsewhereError where what answers is not the place at which the run was started."""
        known = self.folders.place(self.run_id)
        if known is not None:
            self.require_same(known, self.far().hello().wait().place)

    def require_same(self, known: Place | None, now: Place | None) -> None:
        """Raises ElsewhereError where `now` is not `known`, the place of the run; one that was never recorded may be
        any."""
        if known is None or (now is not None and known.is_same(now)):
            return
        if now is None or known.machine != now.machine:
            raise self._other_machine(known, now)
        raise self._other_folder(known, now)

    def give_up(self, why: str = "") -> bool:
        """Have the host take the run's name, so that the run can no longer start. False: it has begun."""
        submission = self.submission
        return self.far().give_up(submission.project_id, self.run_id, submission.generation, why)

    def settle_missing(self) -> None:
        """For the writer, when the host does not have the run. If it was there once, its files were removed. If not, it
        must not start any more: the host takes its name, and the next look finds how that went. Raises
        ElsewhereError."""
        self.require_place()
        if any(isinstance(event, journals.Created) for event in self._journal()):
            self.write_end("lost", "")
        else:
            self.give_up()

    def write_end(self, reason: str, detail: str) -> None:
        """For the writer, when the host will not record an end because it does not have the run."""
        ending = {"reason": reason, "code": None, "signal": None, "detail": detail, "by": "client"}
        record = {"t": self.context.now(), "e": "ended", **ending}
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            with os.fdopen(open_regular(self.folder / "journal.jsonl", flags, follows_link=False), "ab") as target:
                target.write(json.dumps(record).encode() + b"\n")
        except OSError as error:
            raise StorageError(
                f"The end of `{self.run_id}` cannot be recorded: {error.strerror}.", "Make room on the project's disk."
            ) from error

    def _journal(self) -> Iterator[journals.JournalEvent]:
        reader = journals.JournalReader()
        with contextlib.suppress(FileNotFoundError), (self.folder / "journal.jsonl").open("rb") as source:
            for piece in pieces(source):
                yield from reader.feed(piece)

    def _other_machine(self, known: Place, now: Place | None) -> ElsewhereError:
        names = (now.node if now is not None else "", known.node)
        which = f": `{names[0]}`, not `{names[1]}`" if all(names) and names[0] != names[1] else ""
        return ElsewhereError(
            f"Another machine than the one that {self.run_id} was sent to answers at {self.host.name}{which}. The run "
            "may be on the other one.",
            f"Put the name by which `{known.node or 'that machine'}` alone is reached into `address` of "
            f"{self.submission.target}.compute, then: holdfast status -r {pasted(self.run_id)}\n"
            "To use several machines behind one name, attach each by a name of its own.",
            ANOTHER_MACHINE,
        )

    def _other_folder(self, known: Place, now: Place) -> ElsewhereError:
        again = f"holdfast status -r {pasted(self.run_id)}"
        if self.host.is_here:
            remedy = f"Look with that one: HOLDFAST_HOME={known.folder} {again}"
        else:
            remedy = f"Set `holdfastHome: {known.folder}` in {self.submission.target}.compute again, then: {again}"
        return ElsewhereError(
            f"Holdfast's folder on {self.host.name} is `{now.folder}` now, and {self.run_id} was started in "
            f"`{known.folder}`. It may go on there.",
            remedy,
            ANOTHER_FOLDER,
        )
