"""ssh's error messages become sentences with a remedy. The texts are OpenSSH's own, from 7.4 to 9.9."""

from __future__ import annotations

import errno

import pytest

from holdfast.errors import HostError, HostKeyRefused, LoginNeeded, StorageError, Unreachable
from holdfast.hosts.far_end import Said
from holdfast.hosts.ssh_errors import SshAddress, cannot_write, explain, refused, silent

GPU1 = SshAddress("me@gpu1:2222", "ssh -p 2222 me@gpu1")

CHANGED = """@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
The fingerprint for the ED25519 key sent by the remote host is
SHA256:8Zk4Qe0yRjwqG1nq3zq7Jv4r9wq0s1m2n3o4p5q6r7s.
Offending ED25519 key in known_hosts:7
Host key verification failed."""


@pytest.mark.parametrize(
    ("stderr", "kind", "words"),
    [
        ("me@gpu1: Permission denied (publickey,password).", LoginNeeded, "publickey, password"),
        ("Received disconnect from 10.0.0.1: Too many authentication failures", LoginNeeded, "refused the login"),
        ("ssh: connect to host gpu1 port 2222: Connection refused", Unreachable, "Connection refused"),
        ("ssh: connect to host gpu1 port 22: Connection timed out", Unreachable, "timed out"),
        ("ssh: connect to host gpu1 port 22: No route to host", Unreachable, "No route"),
        ("ssh: Could not resolve hostname gpu1: Name or service not known", Unreachable, "Could not resolve"),
        ("kex_exchange_identification: Connection closed by remote host", Unreachable, "closed"),
        ("Connection reset by 10.0.0.1 port 22", Unreachable, "Connection reset"),
        ("Read from remote host gpu1: Connection reset by peer", Unreachable, "Connection reset"),
        ("ssh: connect to host gpu1 port 22: Network is unreachable", Unreachable, "Network is unreachable"),
        ("Connection closed by UNKNOWN port 65535", Unreachable, "UNKNOWN port"),
        ("Connection to gpu1 closed by remote host.", Unreachable, "closed by remote host"),
        ("Timeout, server gpu1 not responding.", Unreachable, "not responding"),
        ("client_loop: send disconnect: Broken pipe", Unreachable, "Broken pipe"),
        ("Connection timed out during banner exchange\nConnection to 1 port 22 timed out", Unreachable, "timed out"),
        ("bash: line 1: python3: command not found", HostError, "no `python3`"),
        ("python3: Command not found.", HostError, "no `python3`"),
        ("fish: Unknown command: python3", HostError, "no `python3`"),
        ("/home/me/.ssh/config: line 3: Bad configuration option: fo", HostError, "Bad configuration option"),
        (CHANGED, HostKeyRefused, "known_hosts, line 7"),
        ("Host key verification failed.", HostKeyRefused, "not known here"),
        ("", Unreachable, "without a word"),
    ],
)
def test_each_failure_of_ssh_has_its_kind_and_its_sentence(stderr, kind, words):
    found = explain(GPU1, Said(255, stderr, ""))
    assert type(found) is kind
    assert words in found.message
    assert found.hint


def test_a_changed_key_shows_the_new_fingerprint_and_how_to_accept_it():
    found = explain(GPU1, Said(255, CHANGED, ""))
    assert "SHA256:8Zk4Qe0yRjwqG1nq3zq7Jv4r9wq0s1m2n3o4p5q6r7s" in found.message
    assert "sed -i 7d known_hosts" in found.hint


def test_an_account_that_runs_no_commands_is_quoted_and_one_without_python_known_by_its_code():
    found = explain(GPU1, Said(1, "", "Welcome\nThis account is currently not available.\n"))
    assert "This account is currently not available." in found.message
    assert "ssh -p 2222 me@gpu1 true" in found.hint
    assert "no `python3`" in explain(GPU1, Said(127, "sh: 1: python3: niet gevonden", "")).message


def test_what_the_other_python_says_of_itself_is_a_sentence():
    old = refused(GPU1, "old", "3.5")
    assert old.message == "The `python3` of me@gpu1:2222 is 3.5; Holdfast needs 3.6 or newer there."
    full = refused(GPU1, "cannot", f"{errno.ENOSPC} /home/me/.holdfast")
    assert isinstance(full, StorageError)
    assert "`/home/me/.holdfast` on me@gpu1:2222 cannot be written: the disk is full" in full.message


def test_each_reason_not_to_write_has_a_sentence_of_its_own():
    numbers = (errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EIO)
    found = [cannot_write(GPU1, number, "/x") for number in numbers]
    assert all("`/x` on me@gpu1:2222" in each.message and "--home" in each.hint for each in found)
    assert len({each.message for each in found[:3]}) == 3


def test_a_silent_machine_is_unreachable_and_says_how_long_it_was_waited_for():
    assert silent(GPU1, 25.0).message == "me@gpu1:2222 did not answer within 25 s."
