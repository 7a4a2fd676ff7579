"""Where the commands of a build run: inside what the run's script will see, their output in control_log, ended with the
run."""

import os
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

from holdfast.farside.layout import CONTROL
from holdfast.farside.refusal import Refused
from holdfast.farside.run.binding import bind
from holdfast.farside.run.children import CannotStart, inherited_environment, spawn
from holdfast.farside.run.output import Pump, Redactor, make_pipe

Hear = Callable[[str], None]
Tell = Callable[..., None]


class Result(NamedTuple):
    """`code` None: it was ended by the signal."""

    code: Optional[int]
    output: str
    signal: Optional[int] = None


class Owner(NamedTuple):
    """What the supervisor lends: `attend` waits for a process, `sweep` ends what it left, `check_stop` raises when the
    run is to end, `wait` does so after some seconds, `tell` writes to the journal."""

    folder: str
    attend: Callable[[int, Pump], Any]
    sweep: Callable[[], None]
    check_stop: Callable[[], None]
    wait: Callable[[float], None]
    tell: Tell


class Workshop:
    """`step` is the plan's command with a hole for the argv; `secrets` are the run's, of which the programs here are
    given the `named` ones. None of them gets into the log."""

    def __init__(
        self, owner: Owner, step: Dict[str, Any], facts: Dict[str, Any], secrets: Dict[str, str], named: Sequence[str]
    ) -> None:
        self.owner, self._step, self._facts = owner, step, facts
        self._hidden = list(secrets.values())
        self.secrets = {name: secrets[name] for name in named if name in secrets}

    @property
    def folder(self) -> str:
        return self.owner.folder

    def phase(self, text: str) -> None:
        self.owner.tell("phase", name="environment", text=text)

    def run(
        self, argv: List[str], environment: Dict[str, str], hear: Optional[Hear] = None, given: Optional[str] = None
    ) -> Result:
        """`hear` gets each line of output as it comes; `given` is what the program reads, and stands in no file. What
        the process started is gone when this returns."""
        command = bind(self._step, dict(self._facts, command=argv))
        log = os.path.join(self.folder, CONTROL)
        from holdfast.farside.environments.settings import secrets_in  # where nothing is built, it is not needed

        hidden = self._hidden + secrets_in(dict(inherited_environment(), **environment))
        redactor = Redactor(hidden)
        with open(log, "ab") as target:
            words = ("$ %s\n" % " ".join(argv)).encode("utf-8", "surrogateescape")
            target.write(redactor.feed(words) + redactor.finish())
        begin = os.path.getsize(log)
        reader, writer = make_pipe()
        ear = _Ear(log, begin, hear)
        pump = Pump(reader, log, Redactor(hidden), ear.listen)
        variables = dict(inherited_environment(), **environment)
        variables.update(command["environment"], **self.secrets)
        try:
            with _readable(given) as source:
                pid = spawn(command["argv"], variables, command["directory"], writer, source.fileno())
        except CannotStart as problem:
            os.close(reader)
            raise Refused("preparation", str(problem)) from None
        finally:
            os.close(writer)
        result = self.owner.attend(pid, pump)
        self.owner.sweep()
        pump.finish()
        os.close(reader)
        self.owner.check_stop()
        ear.listen()
        with open(log, "rb") as source:
            source.seek(begin)
            return Result(result.code, source.read().decode("utf-8", "replace"), result.signal)


def _readable(given: Optional[str]) -> Any:
    """A file that has no name, in memory where the system can."""
    if given is None:
        return open(os.devnull, "rb")
    import tempfile  # here: it takes longer than all else that finding a built environment needs

    make = getattr(os, "memfd_create", None)
    target = os.fdopen(make("holdfast"), "w+b") if make else tempfile.TemporaryFile()  # noqa: SIM115 - by the caller
    target.write(given.encode("utf-8"))
    target.seek(0)
    return target


class _Ear:
    """Hands on whole lines of a growing file."""

    def __init__(self, path: str, offset: int, hear: Optional[Hear]) -> None:
        self._path, self._offset, self._hear = path, offset, hear

    def listen(self) -> None:
        if self._hear is None:
            return
        with open(self._path, "rb") as source:
            source.seek(self._offset)
            data = source.read()
        whole = data.rfind(b"\n") + 1
        self._offset += whole
        for line in data[:whole].decode("utf-8", "replace").splitlines():
            self._hear(line)
