"""Who answers what ssh asks while a target is being attached: what was given on the command line first, each thing once
and only to the machine it is for; the user for the rest."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from holdfast.frozen import dataclass
from holdfast.hosts.ssh_questions import Ask, Secret, SshQuestion

_WHOSE = re.compile(r"(?:^|\()([^\s()@]+)@([^\s()]+?)(?:'s password|\))")


@dataclass(frozen=True)
class Ways:
    """What `attach` was given to get in with. Nothing: the user's own keys, agent and configuration, and a password
    that is asked for where they do not suffice."""

    password: Secret | None = None
    private_key: Path | None = None
    passphrase: Secret | None = None
    shows_key: bool = False
    accepted: tuple[str, ...] = ()
    """Fingerprints of host keys that are right."""


@dataclass(frozen=True)
class SshAccount:
    """The account as ssh itself names it when it asks."""

    user: str
    host: str
    is_behind_another: bool


def machine_of(settings: Mapping[str, str]) -> SshAccount | None:
    """What ssh makes of a name (`ssh -G`). None: it could not be asked."""
    if not settings:
        return None
    through = settings.get("proxyjump", "none"), settings.get("proxycommand", "none")
    return SshAccount(settings.get("user", ""), settings.get("hostname", ""), any(each != "none" for each in through))


class Answers:
    """`ssh` asks this (`hosts.ssh_questions.Ask`). Remembers what was asked, and what the user said, for one attach."""

    def __init__(self, ways: Ways, machine: SshAccount | None, ask: Ask | None) -> None:
        self._ways, self._machine, self._ask = ways, machine, ask
        self._accepted = set(ways.accepted)
        self._remembered: dict[str, Secret] = {}
        self._answered: set[str] = set()
        self._given: set[int] = set()
        self.asked: set[str] = set()
        """Kinds of what the machine itself has asked for: `password`, `passphrase`, `other`."""
        self.has_asked_passphrase = False
        """For whichever key."""
        self._has_told_of_key = False
        self.unconfirmed: SshQuestion | None = None
        """A host key that was not confirmed."""
        self.has_withheld = False
        """A password was given and not used, because it is not known which machine asks."""

    def begin(self) -> None:
        """A new connection: what was right in the last one may be given again."""
        self._answered.clear()

    def __call__(self, question: SshQuestion) -> str | None:
        if question.kind == "host-key":
            return self._confirm(question)
        if question.kind == "notice":
            return self._ask(question) if self._ask is not None else None
        self.has_asked_passphrase = self.has_asked_passphrase or question.kind == "passphrase"
        is_ours = self._is_ours(question)
        if is_ours:
            self.asked.add(question.kind)
        given = self._given_answer(question) if is_ours else None
        if given is None and is_ours and question.kind != "passphrase":
            self._tell_of_key()
        return given or self._users_answer(question)

    def _tell_of_key(self) -> None:
        """Once, before the user is asked for something else: the key that was named was not enough. A server may want a
        password besides the key; it does not say which."""
        key, host = self._ways.private_key, self._machine.host if self._machine is not None else "the machine"
        if key is None or self._ask is None or self._has_told_of_key:
            return
        self._has_told_of_key = True
        why = ": its passphrase was not right, or it is not accepted" if "passphrase" in self.asked else ""
        self._ask(SshQuestion("notice", f"The key {key} alone does not open {host}{why}."))

    def _confirm(self, question: SshQuestion) -> str | None:
        if question.fingerprint and question.fingerprint in self._accepted:
            return question.fingerprint
        answer = self._ask(question) if self._ask is not None else None
        if answer is None or answer.strip().lower() in ("no", "n", ""):
            self.unconfirmed = question
            return "no"
        self._accepted.add(question.fingerprint)
        return answer

    def _is_ours(self, question: SshQuestion) -> bool:
        """A machine on the way asks too, and is not to get the password of the one behind it. Where it is not known,
        the question counts as the machine's, so that a key is left there when the user answers."""
        if question.kind == "passphrase":
            return self._ways.private_key is not None and str(self._ways.private_key) in question.text
        whose = _WHOSE.search(question.text)
        if self._machine is None:
            return True
        if whose is None:
            return not self._machine.is_behind_another
        return (whose[1], whose[2]) == (self._machine.user, self._machine.host)

    def _given_answer(self, question: SshQuestion) -> str | None:
        """Where ssh could not be asked which machine is which, no password is sent: a jump host may be asking."""
        secret = {"password": self._ways.password, "passphrase": self._ways.passphrase}.get(question.kind)
        if secret is None or id(secret) in self._given:
            return None
        if question.kind == "password" and self._machine is None:
            self.has_withheld = True
            return None
        self._given.add(id(secret))
        return secret.reveal()

    def _users_answer(self, question: SshQuestion) -> str | None:
        if question.kind != "other" and question.text in self._remembered and question.text not in self._answered:
            self._answered.add(question.text)
            return self._remembered[question.text].reveal()
        answer = self._ask(question) if self._ask is not None else None
        if answer is not None and question.kind != "other":
            self._remembered[question.text] = Secret(answer)
            self._answered.add(question.text)
        return answer
