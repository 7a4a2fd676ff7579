"""Bringing the records of unfinished runs up to date: hosts in parallel, one connection per host however many runs, and
the user is never asked for anything."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from holdfast.errors import (
    ElsewhereError,
    FarSideError,
    HoldfastError,
    HostError,
    HostKeyRefused,
    LoginNeeded,
    Unreachable,
)
from holdfast.frozen import dataclass, field
from holdfast.history.index import Index
from holdfast.hosts.client import Client
from holdfast.hosts.connection import Asked, Connection
from holdfast.hosts.host import Host
from holdfast.project.folder import Project
from holdfast.workbench.following.mirror import Mirror, stopped_writer
from holdfast.workbench.following.output_choice import staying
from holdfast.workbench.following.outputs import TooLarge, collect
from holdfast.workbench.following.session import Session
from holdfast.workbench.reach import contacts, events
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.run_hosts import RunHosts
from holdfast.written_files import path_at_home

FETCHED_BY_THE_WAY = 20 << 20
"""Bytes of a run's outputs that a look at its host brings home over a link; more wait until they are asked for."""
TICK = 1.0
"""Seconds between words about the hosts that are waited for."""
_AT_ONCE = 16
_LOOK_EVERY = 0.2


@dataclass(frozen=True)
class Looking:
    """`only` these runs are asked about, None for all; outputs of the runs in `whole` come home whatever their size.
    `first` and `later` are the seconds without a word after which a host is left: before its first one, and afterwards.
    ssh itself notices a link that died; these are for what hangs in spite of that."""

    only: frozenset[str] | None = None
    whole: frozenset[str] = frozenset()
    first: float = 12.0
    later: float = 60.0


@dataclass(frozen=True)
class HostRuns:
    """Runs of one host; `target` is the name of a compute target that leads there. Runs in
    `given_up` are asked about only if there is a connection anyway, and no event tells that one is missing."""

    host: Host
    target: str
    sessions: list[Session] = field(default_factory=list)
    given_up: list[Session] = field(default_factory=list)


def refresh(project: Project, context: Context, looking: Looking | None = None) -> Iterator[events.Event]:
    """Ask the hosts about every unfinished run that no other process is copying. If a host cannot be asked, an event
    says so."""
    if not project.id:
        return
    looking, index = looking or Looking(), Index(project.state_directory)
    of_project, hosts = RunHosts(project, context), dict[tuple[str, str], HostRuns]()
    for run_id, target in index.unfinished(abandoned=looking.only or ()):
        if looking.only is not None and run_id not in looking.only:
            continue
        try:
            host = of_project.of_run(run_id)
        except HoldfastError as error:
            why = " ".join(line.strip() for line in error.lines)
            yield events.Warned(f"{run_id} on `{target}` could not be asked about: {why}", error.hint, run_id)
            continue
        runs = hosts.setdefault(place_of(host), HostRuns(host, target))
        runs.sessions.append(Session(project, run_id, host, context))
    # A host that is asked anyway may know of runs that were given up while it could not be.
    for run_id, _ in index.abandoned() if hosts and looking.only is None else ():
        with contextlib.suppress(HoldfastError):  # its target cannot be read: it is not waited for
            host = of_project.of_run(run_id)
            if place_of(host) in hosts:
                hosts[place_of(host)].given_up.append(Session(project, run_id, host, context))
    happened: _Happened = queue.SimpleQueue()
    slots = threading.BoundedSemaphore(_AT_ONCE)
    asking = [_Asking(runs, looking, happened, slots) for runs in hosts.values()]
    for each in asking:
        each.start()
    yield from _listen(project, asking, happened, context)


def place_of(host: Host) -> tuple[str, str]:
    """The machine, and Holdfast's folder on it: a connection leads to both."""
    return host.name, str(getattr(host, "home", ""))


def look(
    runs: HostRuns, connect: Callable[[], Connection], whole: Collection[str], heard: Callable[[], None] = lambda: None
) -> Iterator[events.Event]:
    """Copy what is new of the runs of one host, and bring home what ended. `connect` is called at most once; the
    caller closes the connection. `heard` is called whenever the host has said something."""
    with contextlib.ExitStack() as stack:
        mine = [session for session in runs.sessions if stack.enter_context(session.writing())]
        yield from _stopped(session for session in runs.sessions if session not in mine)
        if not mine:
            return
        expected = list(mine)
        mine += [session for session in runs.given_up if stack.enter_context(session.writing())]
        connection = connect()
        for session in mine:
            session.share(connection)
        changed: set[str] = set()
        missing = _pull(connection, mine, heard, changed)
        elsewhere = _Elsewhere(runs)
        for session in missing:
            with elsewhere.noticed(session):
                session.settle_missing()
                changed.add(session.run_id)
        _pull(connection, [session for session in missing if session not in elsewhere], heard, changed)
        yield from (session.warning() for session in mine if session.problem)
        for session in mine:
            with elsewhere.noticed(session):
                yield from _finish(session, runs.target, None if session.run_id in whole else FETCHED_BY_THE_WAY)
            if session.run_id in changed:
                yield events.RunChanged(session.run_id)
        yield from elsewhere.told(expected)


class _Elsewhere:
    """Runs that were started elsewhere than on the machine that answers, so their state is unknown. The host's other
    runs are refreshed all the same."""

    def __init__(self, runs: HostRuns) -> None:
        self._runs = runs
        self._errors: dict[str, ElsewhereError] = {}

    def __contains__(self, session: Session) -> bool:
        return session.run_id in self._errors

    @contextlib.contextmanager
    def noticed(self, session: Session) -> Iterator[None]:
        try:
            yield
        except ElsewhereError as error:
            self._errors[session.run_id] = error

    def told(self, asked: Sequence[Session]) -> Iterator[events.Event]:
        """An event for each reason, remembered for those who show the runs; `asked` are all that are waited for."""
        host, session = self._runs.host, asked[0]
        errors = {each.run_id: self._errors[each.run_id] for each in asked if each in self}
        first = {error.reason: error for error in reversed(errors.values())}
        if host.is_here:
            yield from (events.Warned(error.message, error.hint) for error in first.values())
            return
        reasons = {run: error.reason for run, error in errors.items()}
        others = [each.run_id for each in asked if each not in self]
        since = contacts.found(session.project, host.name, reasons, others, session.context.now())
        for reason, error in first.items():
            yield events.HostSilent(self._runs.target, since, reason, remedy=f"{error.message}\n{error.hint}")


class _Outcome(NamedTuple):
    """The end of asking one host; `error` is why it came to nothing."""

    error: BaseException | None


class _Asking:
    """One host being asked, in a thread of its own."""

    def __init__(
        self, runs: HostRuns, looking: Looking, happened: _Happened, slots: threading.BoundedSemaphore
    ) -> None:
        self.runs, self._looking, self._happened, self._slots = runs, looking, happened, slots
        self._connection: Connection | None = None
        self.began: float | None = None
        self.heard: float | None = None

    def start(self) -> None:
        threading.Thread(target=self._ask, daemon=True).start()

    def is_overdue(self) -> bool:
        now = time.monotonic()
        if self.heard is not None:
            return now - self.heard > self._looking.later
        return self.began is not None and now - self.began > self._looking.first

    def abandon(self, error: HostError) -> None:
        """Wake the thread, if it waits for a word of the host, so that it lets go of the runs."""

        def give_up() -> None:
            raise error

        if self._connection is not None:
            threading.Thread(target=self._connection.hand_over, args=(Asked(give_up),), daemon=True).start()

    def _ask(self) -> None:
        error: BaseException | None = None
        with self._slots:
            self.began = time.monotonic()
            try:
                for event in look(self.runs, self._connect, self._looking.whole, self._hear):
                    self._hear()
                    self._happened.put((self, event))
            except BaseException as problem:  # noqa: BLE001 - handed to the listener, whatever it is
                error = problem
            finally:
                if self._connection is not None:
                    self._connection.close()
        self._happened.put((self, _Outcome(error)))

    def _connect(self) -> Connection:
        self._connection = self.runs.host.connect(may_ask=False)
        return self._connection

    def _hear(self) -> None:
        self.heard = time.monotonic()


_Happened = queue.SimpleQueue[tuple[_Asking, events.Event | _Outcome]]


def _listen(project: Project, asking: list[_Asking], happened: _Happened, context: Context) -> Iterator[events.Event]:
    waiting = list(asking)
    next_tick = time.monotonic() + TICK
    while waiting:
        try:
            each, item = happened.get(timeout=_LOOK_EVERY)
        except queue.Empty:
            pass
        else:
            if each not in waiting:
                continue  # one that was given up
            if not isinstance(item, _Outcome):
                yield item
                continue
            waiting.remove(each)
            yield from _settle(project, each, item.error, context)
        for each in [each for each in waiting if each.is_overdue()]:
            waiting.remove(each)
            error = Unreachable(f"{each.runs.host.name} does not answer.")
            each.abandon(error)
            yield from _settle(project, each, error, context)
        if waiting and time.monotonic() > next_tick:
            next_tick = time.monotonic() + TICK
            yield events.AskingHosts(tuple(each.runs.target for each in waiting))


def _settle(project: Project, asking: _Asking, error: BaseException | None, context: Context) -> Iterator[events.Event]:
    """Remember whether the host was reached, and say so where it was not."""
    runs = asking.runs
    if isinstance(error, HostError) and _is_of_the_host(error):
        yield silent(project, runs.host, runs.target, error, context)
        return
    if asking.heard is not None:
        contacts.reached(project, runs.host.name, context.now())
    if isinstance(error, HoldfastError):
        yield events.Warned(f"{runs.target} could not be asked: {error.message}", error.hint)
    elif error is not None:
        raise error


def silent(
    project: Project, host: Host, target: str, error: HostError, context: Context
) -> events.HostSilent | events.Warned:
    """Remember that the host could not be asked, and since when."""
    if host.is_here:
        return events.Warned(f"{host.name} could not be asked: {error.message}", error.hint)
    reason = contacts.short_reason(error, host.name)
    remedy = f"{error.message}\n{error.hint}" if isinstance(error, HostKeyRefused | ElsewhereError) else ""
    since = contacts.unreachable(project, host.name, context.now(), reason)
    return events.HostSilent(target, since, reason, isinstance(error, LoginNeeded), remedy)


def _is_of_the_host(error: HoldfastError) -> bool:
    """It could not be used, rather than that it answered with an error."""
    return isinstance(error, HostError) and not isinstance(error, FarSideError)


def _stopped(sessions: Iterator[Session]) -> Iterator[events.Event]:
    for session in sessions:
        stopped = stopped_writer(session.folder)
        if stopped:
            yield events.Warned(
                f"What is shown of {session.run_id} is old: process {stopped}, which copies it, is stopped.",
                f"Continue it (kill -CONT {stopped}) or end it (kill {stopped}).",
                session.run_id,
            )


def _pull(
    connection: Connection, sessions: list[Session], heard: Callable[[], None], changed: set[str]
) -> list[Session]:
    """Copy what is new of each run; returns those that the host does not have. `changed` gets those of which something
    was new."""
    if not sessions:
        return []
    mirrors = {session.run_id: Mirror(session.folder) for session in sessions}
    of_id = {session.run_id: session for session in sessions}
    answer = Client(connection).follow([each.to_follow() for each in sessions], stay=False).wait()
    heard()
    waiting = set(mirrors) - set(answer.missing)
    for session in sessions:
        if session.run_id in waiting:
            session.folders.take_up_again(session.run_id)
            session.hear_clock(answer)
    while waiting:
        push = connection.next_push(None)
        heard()
        if push is None:
            continue
        if push.run_id not in mirrors:
            raise HostError(f"The far side sent something of a run `{push.run_id}` that was not asked about.")
        if mirrors[push.run_id].apply(push):
            changed.add(push.run_id)
        elif push.kind == "problem":
            of_id[push.run_id].hear_problem(push)
        elif push.kind == "level":
            waiting.discard(push.run_id)
    return [session for session in sessions if session.run_id in answer.missing]


def _finish(session: Session, target: str, limit: int | None) -> Iterator[events.Event]:
    size = 0 if limit is None or session.host.is_here else _listed(session)
    if limit is not None and size > limit:
        yield events.OutputsWait(session.run_id, target, size)
        return
    try:
        yield from collect(session, limit)
    except TooLarge as large:
        yield events.OutputsWait(session.run_id, target, large.size)
    except HoldfastError as error:
        if _is_of_the_host(error):
            raise
        yield events.Warned(error.message, error.hint, session.run_id)


def _listed(session: Session) -> int:
    """Bytes of outputs that are not at home, as the run's own record lists them: the host need not be asked."""
    run = session.read()
    is_wanted = run.status.is_final and run.submission.fetch_outputs
    if not is_wanted or session.folders.is_collected(session.run_id):
        return 0
    away = set(staying(run.outputs, run.submission.output_wishes))
    coming = (each for each in run.outputs if each not in away)
    return sum(each.size for each in coming if not _is_here(session.folder / path_at_home(each.path), each.size))


def _is_here(file: Path, size: int) -> bool:
    try:
        return file.stat().st_size == size
    except OSError:
        return False
