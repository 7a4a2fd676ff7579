"""The operations of the far side: a method for each, with what it takes, what it returns and what it raises.

Every method raises FarSideError with the far side's word for what it refuses, StorageError where a disk there is full
or cannot be read, Unreachable or another HostError when the link is gone, and HostError for an answer that no far side
of this build gives.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from holdfast.codec import Malformed, decode
from holdfast.errors import HostError
from holdfast.hosts import replies
from holdfast.hosts.connection import Connection
from holdfast.hosts.machine_report import DockerReport, GpuInventory, MachineFacts, Trial

_FACTS_TIMEOUT = 10.0
"""Seconds that the far side gives each program that it asks."""
_Value = TypeVar("_Value")
Fields = Mapping[str, Any]


class Reply(Generic[_Value]):
    """The answer to a request that was sent, for requests that travel together."""

    def __init__(self, connection: Connection, number: int, operation: str, shape: Any) -> None:
        self._connection, self._number, self._operation, self._shape = connection, number, operation, shape

    def is_here(self, timeout: float) -> bool:
        """Returns when it is, or when nothing came for so long."""
        return self._connection.has_answer(self._number, timeout)

    def wait(self) -> _Value:
        value: _Value = understood(self._operation, self._shape, self._connection.answer(self._number))
        return value

    def wait_with_body(self) -> tuple[_Value, bytes]:
        answer, body = self._connection.answer_with_body(self._number)
        return understood(self._operation, self._shape, answer), body


def understood(operation: str, shape: Any, answer: Any) -> Any:
    """The answer as a value of `shape`. Raises HostError where it is not one."""
    try:
        return decode(shape, answer)
    except Malformed as error:
        raise HostError(
            f"The far side answered `{operation}` in a way that is not understood.",
            f"Try again. Is Holdfast's folder there damaged? ({error})",
        ) from error


class Client:
    """Speaks over a connection that the caller opens and closes."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def hello(self) -> Reply[replies.Hello]:
        """Who answers, and what time it is there."""
        return self._send("hello", replies.Hello)

    # Sending a snapshot, starting and following a run

    def prepare(
        self, snapshot: str, base: str | None = None, difference: bytes = b""
    ) -> Reply[replies.MissingContents]:
        """Announce a snapshot: as what changed since `base`, or, without one, by a manifest that was put before."""
        fields = {"snapshot": snapshot} | ({} if base is None else {"base": base})
        return self._send("prepare", replies.MissingContents, fields, difference)

    def pack(self, count: int, fields: Fields, body: bytes) -> Reply[Any]:
        """Store `count` small contents that come as one body; `z` in `fields`: it is compressed. Raises FarSideError
        `damaged`."""
        return self._send("pack", Any, {"count": count, **fields}, body)

    def put(self, digest: str, offset: int, more: bool, fields: Fields, body: bytes) -> Reply[Any]:
        """Store a content, or the piece of it that begins at `offset`. Raises FarSideError `damaged`."""
        return self._send("put", Any, {"digest": digest, "offset": offset, "more": more, **fields}, body)

    def tool(self, name: str, digest: str) -> None:
        """Make a program of a content that has arrived. A repeat changes nothing."""
        self._request("tool", Any, {"name": name, "digest": digest})

    def platform(self) -> replies.Platform:
        """What such a program has to be built for."""
        return self._request("platform", replies.Platform)

    def start(self, order: Fields, secrets: Mapping[str, str]) -> Reply[replies.Started]:
        """Start a run by its `plan`; answered when something owns it that outlives this connection. A repeat changes
        nothing. `place` in the order: the only one that may start it. Raises FarSideError `incomplete`, `tools` or
        `packages` when something has to be sent first, `exists` when another run has this id, `elsewhere` when this is
        not the place. When the link is gone the run may have started."""
        return self._send("start", replies.Started, order, json.dumps({**secrets}).encode() if secrets else b"")

    def earlier(self, project: str, run: str, path: str) -> replies.LeftFiles:
        """What the run left at `path`, empty for all, for another to go on from. Raises FarSideError `not-found`,
        `living`, `nothing`."""
        return self._request("earlier", replies.LeftFiles, {"project": project, "run": run, "path": path})

    def give_up(self, project: str, run: str, generation: str, detail: str) -> bool:
        """Take the run's name, so that it cannot be started any more. False: it has begun."""
        fields = {"project": project, "run": run, "generation": generation, "detail": detail}
        return self._value("give-up", "given_up", bool, fields)

    def cancel(self, project: str, run: str, grace: float | None) -> bool:
        """Ask a run to end; returns at once. False when it had ended already, which is success too. Raises FarSideError
        `not-found`, `elsewhere`."""
        fields = {"project": project, "run": run, "grace": grace}
        return self._value("cancel", "state", str, fields) == "asked"

    def follow(self, runs: Sequence[Fields], stay: bool, alive: float | None = None) -> Reply[replies.Followed]:
        """Have what each run has written pushed, as far as it is not in `have`; with `stay` until it ends, and a word
        every `alive` seconds."""
        fields = {"runs": list(runs), "stay": stay} | ({} if alive is None else {"alive": alive})
        return self._send("follow", replies.Followed, fields)

    def list(self, run: Fields, roots: Sequence[str], begin: int, alive: float | None) -> Reply[replies.FilePage]:
        """A page of the files that a run keeps in its folders `roots`, from number `begin` on."""
        return self._send("list", replies.FilePage, {"roots": list(roots), "from": begin, **run, **_pulse(alive)})

    def stream(self, run: Fields, files: Sequence[Any], alive: float | None) -> Reply[replies.Streaming]:
        """Have files of a run pushed, each from where what is here of it ends. No files: push no more."""
        return self._send("stream", replies.Streaming, {**run, "files": list(files), **_pulse(alive)})

    def link(self, run: Fields, path: str, destination: str) -> Reply[Any]:
        """Put a file of a run to `destination` on the same machine, whole or not at all. Raises FarSideError
        `not-found`, `refused`."""
        return self._send("link", Any, {"path": path, "destination": destination, **run})

    def stacks(self, project: str, run: str) -> tuple[replies.Stack, ...]:
        """Where the processes of a living run are; parents before what they started. Raises FarSideError `ended`,
        `not-ready`, `not-found`."""
        return self._value("stacks", "processes", tuple[replies.Stack, ...], {"project": project, "run": run})

    def shell(self, fields: Fields, words: Sequence[str]) -> str:
        """The token of a shell that the far side as a program opens then. Raises FarSideError `not-built`, `not-found`,
        `ambiguous`."""
        return self._value("shell", "token", str, {**fields, "words": [*words]})

    # What is on the host

    def known_projects(self) -> tuple[replies.FarProject, ...]:
        return self._request("known-projects", tuple[replies.FarProject, ...])

    def known_runs(self, project: str | None, match: str | None, after: Sequence[str] | None) -> replies.RunPage:
        """A page of runs that began, of a project or of all, whose id is, begins or ends with `match`."""
        return self._request("known-runs", replies.RunPage, {"project": project, "match": match, "after": after})

    def records(self, runs: Sequence[Sequence[str]]) -> tuple[replies.RunRecord | None, ...]:
        """What the host has written down of `runs` (project, run): of as many as fit into an answer, the first at
        least. None: it is gone."""
        return self._request("records", tuple[replies.RunRecord | None, ...], {"runs": [[*each] for each in runs]})

    def objects(self, project: str, run: str, digests: Sequence[str], offset: int) -> Reply[replies.Contents]:
        """Contents of a run's snapshot, in the answer's body, compressed."""
        return self._send(
            "objects",
            replies.Contents,
            {"project": project, "run": run, "digests": [*digests], "offset": offset},
        )

    def data_keep(self, digest: str, name: str) -> replies.LeftFiles:
        """Make a data folder of contents that have arrived. Raises FarSideError `incomplete` where some have not."""
        return self._request("data-keep", replies.LeftFiles, {"digest": digest, "name": name})

    def data_list(self) -> tuple[replies.KeptData, ...]:
        """The one that was used last first."""
        return self._request("data-list", tuple[replies.KeptData, ...])

    def data_look(self, path: str) -> replies.SeenData:
        """What lies at a path of the host. Raises FarSideError `not-found`."""
        return self._request("data-look", replies.SeenData, {"path": path})

    def data_remove(self, digest: str) -> Reply[replies.Bytes]:
        """Gone already is success. Raises FarSideError `living` while a run reads it."""
        return self._send("data-remove", replies.Bytes, {"digest": digest})

    def remove(self, what: Fields) -> Reply[replies.Bytes]:
        """Remove a run (`project`, `run`) or an `environment`; gone already is success. Raises FarSideError
        `living`."""
        return self._send("remove", replies.Bytes, what)

    def sweep(self, cache: bool) -> replies.Swept:
        """Remove what no run needs, with `cache` also what installers keep."""
        return self._request("sweep", replies.Swept, {"cache": cache})

    def sizes(self) -> replies.Inventory:
        return self._request("sizes", replies.Inventory)

    def purge(self) -> replies.Purged:
        """Remove all that Holdfast has there. Raises FarSideError while a run lives."""
        return self._request("purge", replies.Purged)

    def leave(self, home: str) -> None:
        """Remove the far side from the folder `home`, if nothing else of Holdfast's is in there."""
        self._request("leave", Any, {"home": home})

    # Environments

    def environments(self) -> tuple[str, ...]:
        """Their names."""
        return self._request("environments", tuple[str, ...])

    def environment_list(self, sizes: bool) -> tuple[replies.ListedEnvironment, ...]:
        """The one that was used last first."""
        return self._request("environment-list", tuple[replies.ListedEnvironment, ...], {"sizes": sizes})

    def environment_show(self, environment: str) -> replies.Shown:
        return self._request("environment-show", replies.Shown, {"environment": environment})

    def environment_check(self, question: Fields) -> replies.Installed:
        """What the environment that `plan` means, or else the Python `python`, is built for."""
        return self._request("environment-check", replies.Installed, question)

    def environment_target(self, question: Fields) -> replies.ResolutionTarget:
        """What packages have to be for. Raises FarSideError `preparation`, `cannot-start`."""
        return self._request("environment-target", replies.ResolutionTarget, question)

    def environment_trim(self, older: float | None, keep: int | None) -> replies.Trimmed:
        """Remove environments not used for `older` seconds; then until all take less than `keep` bytes."""
        return self._request("environment-trim", replies.Trimmed, {"older": older, "keep": keep})

    # The machine and the account

    def facts(self, timeout: float = _FACTS_TIMEOUT) -> MachineFacts:
        """What there is. Takes a moment, and at most `timeout` seconds more where something there does not answer."""
        return self._request("facts", MachineFacts, {"timeout": timeout})

    def gpus(self) -> GpuInventory:
        """Who uses the GPUs."""
        return self._request("gpus", GpuInventory)

    def docker(self) -> DockerReport:
        """Raises FarSideError with what keeps this user from Docker, and what to do about it."""
        return self._request("docker", DockerReport)

    def docker_try(self, container: Fields, pull: bool, gpus: bool) -> Reply[Trial]:
        """Try a container as runs have it; pushes say how far that is. Raises FarSideError in the words that a run
        would get."""
        return self._send("docker-try", Trial, {"container": container, "pull": pull, "gpus": gpus})

    def places(self) -> replies.HomePlaces:
        """Whether Holdfast's folder is on a network file system, and a better place for it."""
        return self._request("places", replies.HomePlaces)

    def settle(self) -> replies.Settled:
        """Close Holdfast's folder to other accounts. Raises FarSideError `not-ours`."""
        return self._request("settle", replies.Settled)

    def authorize(self, line: str) -> replies.Authorized:
        """Let a public key open the account."""
        return self._request("authorize", replies.Authorized, {"line": line})

    def deauthorize(self, key: str, made: int = 0) -> None:
        """Take a key away, and the file and folder that were `made` for it. Raises FarSideError `key-stays`."""
        self._request("deauthorize", Any, {"key": key, "made": made})

    def login_python(self) -> str:
        """The Python of a login shell; empty where it has none of its own."""
        return self._value("login-python", "python", str)

    def has_python(self, python: str, start: bool = False) -> replies.FoundPython:
        """Whether that Python can be used; with `start` it is started, and says its version."""
        return self._request("has-python", replies.FoundPython, {"python": python, "start": start})

    def after_logout(self) -> replies.LogoutRules:
        return self._request("after-logout", replies.LogoutRules)

    def start_by(self, start: str) -> None:
        """How runs are started from now on: `user-unit`, or empty for a plain process."""
        self._request("start-by", Any, {"start": start})

    def prove_begin(self, token: str) -> None:
        """Start a process that is to outlive this login. Raises FarSideError `cannot-start`."""
        self._request("prove-begin", Any, {"token": token})

    def prove_look(self, token: str, patience: float) -> bool:
        """Whether it lives, after the system had `patience` seconds to end it; it is ended then."""
        return self._value("prove-look", "alive", bool, {"token": token, "patience": patience})

    def _send(self, operation: str, shape: Any, fields: Fields | None = None, body: bytes = b"") -> Reply[Any]:
        return Reply(self._connection, self._connection.send(operation, fields, body), operation, shape)

    def _request(self, operation: str, shape: type[_Value], fields: Fields | None = None) -> _Value:
        value: _Value = understood(operation, shape, self._connection.request(operation, fields))
        return value

    def _value(self, operation: str, name: str, kind: type[_Value], fields: Fields | None = None) -> _Value:
        """Of an answer that says one thing, by its name."""
        answer: Fields = understood(operation, Fields, self._connection.request(operation, fields))
        value: _Value = understood(operation, kind, answer.get(name))
        return value


def _pulse(alive: float | None) -> Fields:
    return {} if alive is None else {"alive": alive}
