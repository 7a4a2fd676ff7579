"""Where the commands of a build run: inside what the run's script will see, their output in control_log, ended with the
run."""

import os
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

from holdfast.farside.system.children import CannotStart, inherited_environment, spawn
from holdfast.farside.system.layout import BUILD, CONTROL
from holdfast.farside.system.nofollow import open_plain
from holdfast.farside.system.output import Pump, Redactor, make_pipe
from holdfast.farside.system.ownership import make_private
from holdfast.farside.system.refusal import Refused

Hear = Callable[[str], None]
Tell = Callable[..., None]


class Result(NamedTuple):
    """`code` None: it was ended by the signal."""

    code: Optional[int]
    output: str
    signal: Optional[int] = None


def _at_once() -> None:
    pass


class Supervision(NamedTuple):
    """What the supervisor lends: `attend` waits for a process, `sweep` ends what it left, `check_stop` raises when the
    run is to end, `wait` does so after some seconds, `tell` writes to the journal; `enter` returns when what is started
    from now on is in the run's control group."""

    folder: str
    attend: Callable[[int, Pump], Any]
    sweep: Callable[[], None]
    check_stop: Callable[[], None]
    wait: Callable[[float], None]
    tell: Tell
    enter: Callable[[], None] = _at_once


class Start(NamedTuple):
    """What is started on this machine to run a program of a build."""

    argv: List[str]
    environment: Dict[str, str]
    directory: str
    given: Optional[bytes]


class Room:
    """Where programs of a build run: this machine. A container is another one."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def __enter__(self) -> "Room":
        return self

    def __exit__(self, kind: Any, problem: Any, trace: Any) -> None:
        """It is not used any more; with an exception, what runs there is ended."""

    def passes(self, inherited: Dict[str, str]) -> Dict[str, str]:
        """What programs there get of this process's variables."""
        return inherited

    def reach(self, texts: Sequence[str]) -> None:
        """Files and folders that stand in these texts have to be seen by the programs that are run from now on."""

    def start(self, argv: List[str], variables: Dict[str, str], given: Optional[bytes]) -> Start:
        return Start(argv, variables, self._directory, given)

    def ended(self, result: Result) -> Result:
        """How the program ended, from how what was started for it did."""
        return result

    def abandon(self) -> None:
        """The run is to end: what still runs there is ended now."""


class Workshop:
    """`secrets` are the run's, of which the programs here are given the `named` ones. None of them gets into the
    log. `room` None: this machine itself, in its root folder."""

    def __init__(
        self, owner: Supervision, secrets: Dict[str, str], named: Sequence[str], room: Optional[Room] = None
    ) -> None:
        self.owner, self.room = owner, room or Room("/")
        self._hidden = list(secrets.values())
        self.secrets = {name: secrets[name] for name in named if name in secrets}

    @property
    def folder(self) -> str:
        return self.owner.folder

    @property
    def build_folder(self) -> str:
        """The folder for what installers read and write. What they run may write there too, so no link is followed."""
        path = os.path.join(self.owner.folder, BUILD)
        make_private(path)
        return path

    def phase(self, text: str) -> None:
        self.owner.tell("phase", name="environment", text=text)

    def run(
        self, argv: List[str], environment: Dict[str, str], hear: Optional[Hear] = None, given: Optional[str] = None
    ) -> Result:
        """`hear` gets each line of output as it comes; `given` is what the program reads, and stands in no file. What
        the process started is gone when this returns."""
        return self._run([argv], environment, hear, None if given is None else given.encode("utf-8"))

    def run_all(self, commands: List[List[str]], environment: Dict[str, str], hear: Hear) -> Result:
        """One after the other, until one fails. To enter a container takes longer than many a program in it, so they
        go in together."""
        return self._run(commands, environment, hear, None)

    def _run(
        self, commands: List[List[str]], environment: Dict[str, str], hear: Optional[Hear], given: Optional[bytes]
    ) -> Result:
        from holdfast.farside.environments.settings import secrets_in  # where nothing is built, it is not needed

        log = os.path.join(self.folder, CONTROL)
        hidden = self._hidden + secrets_in(dict(inherited_environment(), **environment))
        redactor = Redactor(hidden)
        with os.fdopen(open_plain(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab") as target:
            words = "".join("$ %s\n" % " ".join(argv) for argv in commands).encode("utf-8", "surrogateescape")
            target.write(redactor.feed(words) + redactor.finish())
        begin = os.path.getsize(log)
        ear = _Ear(log, begin, hear)
        variables = dict(self.room.passes(inherited_environment()), **environment)
        variables.update(self.secrets)
        begun = self.room.start(_as_one(commands), variables, given)
        reader, writer = make_pipe()
        try:
            result = self._attended(begun, writer, Pump(reader, log, Redactor(hidden), ear.listen))
        finally:
            os.close(reader)
        ear.listen()
        with os.fdopen(open_plain(log), "rb") as source:
            source.seek(begin)
            output = source.read().decode("utf-8", "replace")
        return self.room.ended(Result(result.code, output, result.signal))

    def _attended(self, begun: Start, writer: int, pump: Pump) -> Any:
        """How it ended; where the run is to end, nothing of it is left when this raises."""
        try:
            self.owner.enter()
            with _readable(begun.given) as source:
                pid = spawn(begun.argv, begun.environment, begun.directory, writer, source.fileno())
        except CannotStart as problem:
            raise Refused("preparation", str(problem)) from None
        finally:
            os.close(writer)
        result = self.owner.attend(pid, pump)
        self.owner.sweep()
        pump.finish()
        try:
            self.owner.check_stop()
        except BaseException:
            self.room.abandon()
            raise
        return result


def _as_one(commands: List[List[str]]) -> List[str]:
    if len(commands) == 1:
        return commands[0]
    import shlex

    lines = [" ".join(shlex.quote(word) for word in argv) for argv in commands]
    return ["/bin/sh", "-c", " && ".join(lines[:-1] + ["exec " + lines[-1]])]


def _readable(given: Optional[bytes]) -> Any:
    """A file that has no name, in memory where the system can."""
    if given is None:
        return open(os.devnull, "rb")
    import tempfile  # here: it takes longer than all else that finding a built environment needs

    make = getattr(os, "memfd_create", None)
    target = os.fdopen(make("holdfast"), "w+b") if make else tempfile.TemporaryFile()  # noqa: SIM115 - by the caller
    target.write(given)
    target.seek(0)
    return target


class _Ear:
    """Hands on whole lines of a growing file."""

    def __init__(self, path: str, offset: int, hear: Optional[Hear]) -> None:
        self._path, self._offset, self._hear = path, offset, hear

    def listen(self) -> None:
        if self._hear is None:
            return
        with os.fdopen(open_plain(self._path), "rb") as source:
            source.seek(self._offset)
            data = source.read()
        whole = data.rfind(b"\n") + 1
        self._offset += whole
        for line in data[:whole].decode("utf-8", "replace").splitlines():
            self._hear(line)
