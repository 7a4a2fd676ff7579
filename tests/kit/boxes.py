"""Boxes to run on: an account behind a server behind a link, as a client sees them."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from kit.accounts import Account, premises
from kit.link import Link
from kit.sshd import Alias, Client, Options, Server


@dataclass(frozen=True)
class Box:
    """One account on one server, and how one client reaches it."""

    name: str
    """The name by which the client's ssh configuration knows it."""
    account: Account
    server: Server
    link: Link
    client: Client
    key: Path | None
    """The private key that the account accepts; None when it was made without."""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.link.port}"

    @property
    def home(self) -> Path:
        """The folder of Holdfast on the box."""
        return self.account.home / ".holdfast"

    @property
    def compute(self) -> str:
        """The text of a `.compute` file."""
        lines = ["type: remote", f"address: {self.address}", f"username: {self.account.name}"]
        if self.key is not None:
            lines.append(f"privateKey: {self.key}")
        return "\n".join(lines) + "\n"

    @property
    def environment(self) -> dict[str, str]:
        """What the `holdfast` command needs in its environment."""
        return self.client.environment

    def seen_from(self, client: Client) -> Box:
        """The same account from a second laptop, which has its own key."""
        key = client.make_key(f"{self.name}.key")
        self.account.authorize(key.with_name(f"{key.name}.pub").read_text())
        client.know(Alias(self.name, self.link.port, self.account.name, key))
        client.trust(self.server, self.link.port)
        return replace(self, client=client, key=key)


class Boxes:
    """Makes boxes below one folder and removes them all at `close`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count(1)
        self._closing = contextlib.ExitStack()

    def client(self) -> Client:
        """A laptop that knows no box yet."""
        return Client(self._folder / f"client{next(self._numbers)}")

    def server(self, options: Options = Options()) -> Server:  # noqa: B008 - it is frozen
        return self._closing.enter_context(Server(self._folder / f"server{next(self._numbers)}", options))

    def account(self, shell: str = "/bin/bash", password: str = "") -> Account:
        account = Account.create(self._folder, shell, password)
        self._closing.callback(account.remove)
        return account

    def link(self, server: Server) -> Link:
        return self._closing.enter_context(Link(server.port))

    def box(self, name: str, client: Client, account: Account, server: Server, key: bool = True) -> Box:
        """Put `account` behind `server` and its own link. `client` knows it as `name`, with its host key.

        Without `key` the client has none that the account accepts.
        """
        box = Box(name, account, server, self.link(server), client, None)
        if key:
            return box.seen_from(client)
        client.know(Alias(name, box.link.port, account.name))
        client.trust(server, box.link.port)
        return box

    def close(self) -> None:
        self._closing.close()


@contextlib.contextmanager
def boxes() -> Iterator[Boxes]:
    """For programs: `with boxes() as kit: box = kit.box("gpu1", kit.client(), kit.account(), kit.server())`."""
    with premises() as folder, contextlib.closing(Boxes(folder)) as kit:
        yield kit
