"""Getting into an account for the first time, and leaving a key of Holdfast's own there when that took a secret."""

from __future__ import annotations

import contextlib
import os
import platform
import re
from collections.abc import Generator, Iterator
from pathlib import Path

from holdfast.errors import FarSideError, HoldfastError, HostKeyRefused, LoginNeeded, UsageError
from holdfast.frozen import dataclass, replace
from holdfast.hosts.client import Client
from holdfast.hosts.connection import Connection
from holdfast.hosts.keys import Key, ensure_key, key_path, remove_key
from holdfast.hosts.replies import Authorized
from holdfast.hosts.ssh import Destination, Login, Near, Ssh
from holdfast.shown_text import pasted
from holdfast.workbench.machines.answers import Answers, Ways, machine_of
from holdfast.workbench.reach import events
from holdfast.workbench.reach.context import PASSWORD_VARIABLE, Context
from holdfast.workbench.reach.targets import near_side

ALONE = Login(shares=False)
"""A login of its own, which ends when its connection does."""


@dataclass(frozen=True)
class Door:
    """Which account, and for whom: the names of the target and the project's id make the key's name."""

    destination: Destination
    home: str
    target: str
    project_id: str


@dataclass(frozen=True)
class NewKey:
    """A key that was put there just now. `made`: whether the file had to be made for it (1), and its folder too (2)."""

    key: Key
    made: int

    def take_away(self, connection: Connection) -> str:
        """Returns why it stays; empty when it does not."""
        try:
            Client(connection).deauthorize(self.key.body, self.made)
        except FarSideError as error:
            return f"{error.message} {error.hint}"
        return ""


@dataclass(frozen=True)
class Entered:
    """`host` gets in without any secret, except what the user is asked for each time. `key` is ours, if there is one;
    `new`: it was put there just now."""

    host: Ssh
    key: Key | None = None
    new: NewKey | None = None


class Entrance:
    """One attempt to get in."""

    def __init__(self, door: Door, ways: Ways, context: Context) -> None:
        self._door, self._ways, self._context = door, ways, context
        near = near_side(context)
        environment = {name: value for name, value in near.environment.items() if name != PASSWORD_VARIABLE}
        near = replace(near, environment=environment)
        self._answers = Answers(ways, machine_of(Ssh(door.destination, near).settings()), context.ask)
        self._near: Near = replace(near, ask=self._answers)
        self._homes: list[str] = []
        """Folders on the host that this attempt has used."""

    @property
    def was_asked_for_passphrase(self) -> bool:
        return self._answers.has_asked_passphrase

    def enter(self) -> Generator[events.Event, None, Entered]:
        """Raises LoginNeeded, HostKeyRefused or another HostError; then nothing that came from here is left there."""
        ways, name = self._ways, str(self._door.destination)
        if ways.shows_key:
            return (yield from self._by_shown_key())
        if ways.private_key is not None:
            host = self._host(ways.private_key, ALONE)
        else:
            host = self._host(None, Login(shares=False, only_password=True) if ways.password else ALONE)
        yield events.Doing(f"connecting to {name} …")
        with self.connected(host) as connection:
            asked = set(self._answers.asked)
            if not asked & {"password", "passphrase"}:
                whose = f"the key {ways.private_key}" if ways.private_key is not None else "your own keys"
                yield events.Done(f"{name} can be entered with {whose}.")
                return Entered(host)
            try:
                entered = yield from self._leave_key(connection, "other" in asked)
            except BaseException:
                self._take_back(connection)
                raise
        return entered or Entered(self._host(ways.private_key, ALONE))

    @contextlib.contextmanager
    def connected(self, host: Ssh) -> Iterator[Connection]:
        """A login of its own that has been greeted; its end is waited for."""
        self._answers.begin()
        connection = host.connect()
        try:
            try:
                Client(connection).hello().wait()
            except HostKeyRefused as error:
                raise self._unconfirmed(error) from error
            except LoginNeeded as error:
                raise self._not_let_in(error, host) from error
            self._homes = [each for each in self._homes if each != host.home] + [host.home]
            yield connection
        finally:
            connection.finish()

    def forget(self, entered: Entered, start_was_set: bool) -> None:
        """Take back all that came from here: the key that `enter` put there, the way of starting runs, the far side,
        where that can be done. What was there before, and what is in use, stays."""
        host = replace(entered.host, home=self._homes[-1] if self._homes else self._door.home)
        with contextlib.suppress(HoldfastError), self.connected(host) as connection:
            if entered.new is not None and not entered.new.take_away(connection):
                remove_key(entered.new.key.path)
            if start_was_set:
                Client(connection).start_by("")
            self._take_back(connection)

    def _take_back(self, connection: Connection) -> None:
        """The far side with its folder, the one that speaks to us last."""
        with contextlib.suppress(HoldfastError):
            for home in self._homes:
                Client(connection).leave(home)

    def _host(self, key: Path | None, login: Login) -> Ssh:
        return Ssh(replace(self._door.destination, private_key=key), self._near, self._door.home, login)

    def _key(self) -> tuple[Key, bool]:
        door = self._door
        path = key_path(self._context.home, door.target, door.project_id, str(door.destination))
        is_new = not path.exists()
        return ensure_key(path, _comment(door.target, self._context), self._near.environment), is_new

    def _by_shown_key(self) -> Generator[events.Event, None, Entered]:
        key, _ = self._key()
        host = self._host(key.path, Login(shares=False, only_key=True))
        yield events.Doing(f"trying the key on {self._door.destination} …")
        try:
            with self.connected(host):
                yield events.Done(f"{self._door.destination} takes the key.")
        except HoldfastError:
            yield events.KeyShown(key.line, _appending(key.line))
            raise
        return Entered(host, key)

    def _leave_key(
        self, connection: Connection, has_second_factor: bool
    ) -> Generator[events.Event, None, Entered | None]:
        """Put our key there and prove that it opens the account, alone. None: it does not, and the user is asked for
        a code each time anyway, so the account can be used as it is."""
        key, is_new = self._key()
        put = Client(connection).authorize(key.line)
        new = NewKey(key, put.made) if put.added else None
        yield events.Done(f"put a key of Holdfast's own into {put.file}")
        host = self._host(key.path, Login(shares=False, only_key=True))
        yield events.Doing(f"logging in to {host.name} with the key alone …")
        try:
            with self.connected(host):
                pass
        except HoldfastError as error:
            stays = new.take_away(connection) if new is not None else ""
            if is_new and not stays:
                remove_key(key.path)
            if not isinstance(error, LoginNeeded):
                raise
            if not has_second_factor and not self._wants_more_than_a_key(host, error):
                raise _keys_refused(host.name, error, put, stays) from error
            if stays:
                yield events.Warned(stays, "It opens nothing by itself.")
            yield events.Warned(
                f"{host.name} does not let a key in alone: each new connection will ask you again.",
                "History and status will say `login needed` when it is not open.",
            )
            return None
        yield events.Done(f"{host.name} takes the key; what you typed is forgotten.")
        return Entered(host, key, new)

    def _wants_more_than_a_key(self, host: Ssh, error: LoginNeeded) -> bool:
        """A server that takes a key and then a password offers keys first, and after ours not any more."""
        program = (*self._near.program, "-o", "PreferredAuthentications=none")
        try:
            with self.connected(replace(host, near=replace(self._near, program=program), login=ALONE)):
                return False
        except LoginNeeded as refusal:
            first, then = refusal.methods.split(","), error.methods.split(",")
            return "publickey" in first and "publickey" not in then
        except HoldfastError:
            return False

    def _unconfirmed(self, error: HostKeyRefused) -> HostKeyRefused:
        question = self._answers.unconfirmed
        if question is None:
            return error
        whose = question.host or self._door.destination.address
        others = (
            f" It is not the one that was accepted ({', '.join(self._ways.accepted)})." if self._ways.accepted else ""
        )
        return HostKeyRefused(
            f"The host key of {whose} is not known here: {question.fingerprint}.{others}",
            "Ask the machine's administrator whether that is its fingerprint. If it is, the same command again with: "
            f"--accept-host-key {question.fingerprint}",
        )

    def _not_let_in(self, error: LoginNeeded, host: Ssh) -> LoginNeeded:
        ways, name = self._ways, host.name
        offered = f"It takes: {error.methods.replace(',', ', ')}." if error.methods else ""
        takes_passwords = "password" in error.methods or "keyboard-interactive" in error.methods
        if ways.shows_key:
            command = "Run the command shown above over there, then this one again."
            return LoginNeeded(f"The key does not open {name} yet. {offered}".strip(), command, error.methods)
        if host.login.only_key:
            return error
        if self._answers.has_withheld:
            return LoginNeeded(
                f"The password was not given to {name}: `ssh -G` could not say which machine asks for it.",
                "In a terminal you are asked for it. Else give a key: --private-key-file F, or -k",
                error.methods,
            )
        if ways.password is not None and not takes_passwords:
            hint = "Give the key that opens it (--private-key-file F), or append one of ours: -k"
            return LoginNeeded(f"{name} does not take passwords. {offered}".strip(), hint, error.methods)
        if ways.password is not None:
            hint = "Check the user name and the password."
            return LoginNeeded(f"{name} did not accept the password.", hint, error.methods)
        if ways.private_key is not None:
            hint = f"Is its public half in ~/.ssh/authorized_keys over there? By hand: {_by_hand(host)}"
            return LoginNeeded(
                f"The key `{ways.private_key}` does not open {name}. {offered}".strip(), hint, error.methods
            )
        hint = f"By hand: {_by_hand(host)} true. To append a key of ours over there: the same command with -k"
        if self._context.ask is None and takes_passwords:
            hint = f"In a terminal you are asked for the password; in scripts set {PASSWORD_VARIABLE}. {hint}"
        return LoginNeeded(f"Your own keys do not open {name}. {offered}".strip(), hint, error.methods)


def check_key_file(path: Path) -> Path:
    if not path.is_file() or not os.access(path, os.R_OK):
        raise UsageError(f"There is no key `{path}` that you may read.", "Give the private half: --private-key-file F")
    if path.suffix == ".pub":
        raise UsageError(f"`{path}` is the public half.", f"--private-key-file {pasted(str(path.with_suffix('')))}")
    return path


def _by_hand(host: Ssh) -> str:
    key = host.destination.private_key
    line = host.destination.by_hand()
    return line if key is None else line.replace("ssh ", f"ssh -i {pasted(str(key))} ", 1)


def _comment(target: str, context: Context) -> str:
    user = context.environment.get("USER") or context.environment.get("USERNAME") or context.user_home.name
    return re.sub(r"[^\x21-\x7e ]", "_", f"holdfast {target} {user}@{platform.node()}")


def _appending(line: str) -> str:
    """One line for the host's shell. It begins with a line break, as the last line of the file may lack its own."""
    quoted = "'" + line.replace("'", "") + "'"
    file = "~/.ssh/authorized_keys"
    return f"mkdir -p -m 700 ~/.ssh && printf '\\n%s\\n' {quoted} >> {file} && chmod 600 {file}"


def _keys_refused(name: str, error: LoginNeeded, put: Authorized, stays: str) -> LoginNeeded:
    undone = stays or "The key was taken away again, and nothing was written."
    methods = error.methods.replace(",", ", ") or "nothing that could be tried"
    if "publickey" not in error.methods.split(","):
        return LoginNeeded(
            f"{name} does not take keys, which Holdfast needs after the first login; it takes: {methods}. {undone}",
            "Its administrator has to allow them: `PubkeyAuthentication yes` in /etc/ssh/sshd_config.",
            error.methods,
        )
    if put.open_to_others:
        return LoginNeeded(
            f"{name} takes no keys from this account, because others may write to {put.open_to_others[0]}. {undone}",
            f"Over there: chmod go-w {' '.join(map(pasted, put.open_to_others))}. Then attach again.",
            error.methods,
        )
    return LoginNeeded(
        f"{name} takes keys, but not the one in {put.file}. {undone}",
        "Does your own ~/.ssh/config forbid keys (`PubkeyAuthentication no`, `PreferredAuthentications`)? If not, "
        "its administrator knows where it looks for keys (`AuthorizedKeysFile` in /etc/ssh/sshd_config), and of which "
        "kinds (`PubkeyAcceptedAlgorithms`).",
        error.methods,
    )
