"""What ssh or the other shell said when there was no far side to talk to, as an error with a remedy."""

from __future__ import annotations

import os
import re

from holdfast.errors import HostError, HostKeyRefused, LoginNeeded, StorageError, Unreachable
from holdfast.frozen import dataclass
from holdfast.hosts.far_end import Said
from holdfast.shown_text import pasted

_OLDEST_PYTHON = "3.6"

# Compiled when there is a complaint.
_DENIED = r"Permission denied \(([^)]*)\)"
_OFFENDING = r"Offending (?:\S+ )?key in (.+?):(\d+)"
_FINGERPRINT = r"\b(SHA256:[A-Za-z0-9+/]+)"
_UNREACHABLE = (
    r"(?i)Could not resolve hostname|connect to host|Connection refused|timed out|No route to host"
    r"|Network is unreachable"
    r"|Connection reset|Connection closed|Connection to .* closed|Broken pipe|not responding"
    r"|kex_exchange_identification|banner exchange|read from master failed|client_loop|Host is down|UNKNOWN port 65535"
)
_ANOTHER_HOME = "give Holdfast another folder there: holdfast computetarget attach … --home DIR"
_NOISE = r"^(Warning: Permanently added|Identity file .* not accessible|Pseudo-terminal will not)"


@dataclass(frozen=True)
class SshAddress:
    """A machine for people: `me@gpu1:2222`, and what they would type to get there."""

    name: str
    by_hand: str


def _misses_python(said: str) -> bool:
    """What shells say: `python3: command not found`, `fish: Unknown command: python3`."""
    for line in said.lower().split("\n"):
        after = line.partition("python3")[2].partition(" ")[2]
        unknown = re.search("unknown command:? ", line)
        if "not found" in after or "no such file" in after or (unknown and "python3" in line[unknown.end() :]):
            return True
    return False


def explain(host: SshAddress, said: Said) -> HostError:
    """Why there is no far side at the other end."""
    text = said.stderr
    if "REMOTE HOST IDENTIFICATION HAS CHANGED" in text or "Host key verification failed" in text:
        return _host_key(host, text)
    denied = re.search(_DENIED, text)
    if denied or "Too many authentication failures" in text:
        return _denied(host, denied[1] if denied else "")
    last = _last_line(text)
    if said.code == 127 or _misses_python(text + said.before):
        return HostError(
            f"{host.name} has no `python3` that a login without a terminal finds.",
            f"Install Python {_OLDEST_PYTHON} or newer there, or put it on PATH in a file that such a login reads. "
            f"To see what it finds: {host.by_hand} python3 --version" + (f"\nIt said: {last}" if last else ""),
        )
    if re.search(_UNREACHABLE, text):
        return Unreachable(f"{host.name} cannot be reached: {last}", _reach_hint(host, text))
    if last:
        all_of_it = text if "\n" in text else f"Try by hand: {host.by_hand} true"
        return HostError(f"The far side on {host.name} is gone: {last}", all_of_it)
    if said.before.strip():
        return HostError(
            f"The login on {host.name} ended before Holdfast could start there: {_last_line(said.before)}",
            f"Does the account run commands? Try: {host.by_hand} true",
        )
    return Unreachable(f"The connection to {host.name} ended without a word.", "Try again.")


def refused(host: SshAddress, word: str, rest: str) -> HostError | StorageError:
    """The other end's python3 answered, and said why it cannot be the far side."""
    if word == "old":
        return HostError(
            f"The `python3` of {host.name} is {rest}; Holdfast needs {_OLDEST_PYTHON} or newer there.",
            "Install a newer Python on it and put it on PATH as `python3`, for example with uv or from the "
            "distribution's packages.",
        )
    if word == "foreign":
        return HostError(
            f"Holdfast does not use `{rest}` on {host.name}: it belongs to another account.",
            f"Have its owner or an administrator give it to you (chown).\nOr {_ANOTHER_HOME}",
        )
    if word == "open":
        return HostError(
            f"Holdfast does not use `{rest}` on {host.name}: others may write to it.",
            f"If it is yours: {host.by_hand} {_over_there('chmod', 'go-rwx', rest)}\nIf not, {_ANOTHER_HOME}",
        )
    if word == "cannot":
        number, _, path = rest.partition(" ")
        return cannot_write(host, int(number) if number.isdigit() else 0, path)
    return HostError(f"{host.name} answered with `{word}`, which this version does not know.", "Update Holdfast.")


def _over_there(*words: str) -> str:
    """A command as a word for ssh: two shells read it."""
    line = " ".join(map(pasted, words))
    return line if line == " ".join(words) else pasted(line)


def cannot_write(host: SshAddress, number: int, path: str) -> StorageError:
    """Why a folder on the host cannot be written, and what to do about it."""
    another = f"or {_ANOTHER_HOME}"
    sentences = {  # by Linux's numbers, which this system's own need not be
        30: ("is on a read-only file system", f"Have it mounted for writing, {another}"),
        28: ("cannot be written: the disk is full (or out of inodes)", f"Make room there, {another}"),
        122: ("cannot be written: your quota is used up", f"Make room in your quota, {another}"),
        13: ("may not be written by this account", f"Fix its permissions, {another}"),
    }
    what, remedy = sentences.get(number, (f"cannot be written: {os.strerror(number)}", f"Fix it, {another}"))
    return StorageError(f"`{path}` on {host.name} {what}.", remedy)


def silent(host: SshAddress, seconds: float) -> Unreachable:
    return Unreachable(
        f"{host.name} did not answer within {seconds:g} s.",
        f"Is it up, and is its login quick? Try: {host.by_hand} true",
    )


def _host_key(host: SshAddress, text: str) -> HostKeyRefused:
    shown = re.search(_FINGERPRINT, text)
    fingerprint = f" (now {shown[1]})" if shown else ""
    offending = re.search(_OFFENDING, text)
    if "HAS CHANGED" not in text and not offending:
        return HostKeyRefused(
            f"The host key of {host.name} is not known here, and was not confirmed.",
            f"Connect once by hand ({host.by_hand} true) and compare the fingerprint, or attach it from a terminal; in "
            "scripts: --accept-host-key FINGERPRINT",
        )
    where = f", recorded in {offending[1]}, line {offending[2]}" if offending else ""
    return HostKeyRefused(
        f"The host key of {host.name} is not the one it had{fingerprint}{where}. The connection was refused: somebody "
        "may be in between, or the machine was installed anew.",
        "Ask the machine's administrator for its fingerprint. If the new key is right, remove the old one: "
        + (f"sed -i {offending[2]}d {pasted(offending[1])}" if offending else "ssh-keygen -R HOST"),
    )


def _denied(host: SshAddress, methods: str) -> LoginNeeded:
    offered = f" It takes: {methods.replace(',', ', ')}." if methods else ""
    return LoginNeeded(
        f"{host.name} refused the login: no key or answer was accepted.{offered}",
        f"Try by hand: {host.by_hand} true. To give Holdfast a key of its own there: "
        "holdfast computetarget attach remote",
        methods,
    )


def _reach_hint(host: SshAddress, text: str) -> str:
    if "Could not resolve" in text:
        return "Check `address`: a host name, an IP address, or a name of ~/.ssh/config."
    return f"Is it up, and the port right? Try: {host.by_hand} true"


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not re.match(_NOISE, line.strip())]
    return lines[-1] if lines else ""
