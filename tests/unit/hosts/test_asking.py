"""How ssh's questions reach the client."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

import pytest

from holdfast.hosts.ssh_questions import Askpass, Pending, SshQuestion, understand

HOST_KEY = """The authenticity of host '[gpu1]:2222 ([10.0.0.1]:2222)' can't be established.
ED25519 key fingerprint is SHA256:abc+/DEF123.
This key is not known by any other names.
Are you sure you want to continue connecting (yes/no/[fingerprint])? """


@pytest.mark.parametrize(
    ("text", "hint", "kind"),
    [
        ("me@gpu1's password: ", "", "password"),
        ("(me@gpu1) Password: ", "", "password"),
        ("Enter passphrase for key '/home/me/.ssh/id': ", "", "passphrase"),
        ("(me@gpu1) Verification code: ", "", "other"),
        ("Confirm user presence for key ED25519-SK", "none", "notice"),
        (HOST_KEY, "", "host-key"),
        ("Please type 'yes', 'no' or the fingerprint: ", "", "host-key"),
    ],
)
def test_what_ssh_asks_is_understood_from_its_words(text, hint, kind):
    assert understand(text, hint).kind == kind


def test_the_question_for_a_host_key_carries_host_and_fingerprint():
    assert understand(HOST_KEY) == SshQuestion(
        "host-key", HOST_KEY, "SHA256:abc+/DEF123.".rstrip("."), "[gpu1]:2222 ([10.0.0.1]:2222)"
    )


def ask(home: Path, short: Path, text: str, answer: str | None, **changes: str) -> tuple[int, str, list[SshQuestion]]:
    """How the program that ssh starts ends, what it prints, and which questions were delivered."""
    asked: list[SshQuestion] = []

    def deliver(pending: Pending) -> None:
        asked.append(pending.question)
        pending.answer(answer)

    with contextlib.closing(Askpass(home, short, deliver)) as askpass:
        environment = {**askpass.environment(dict(os.environ)), **changes}
        words = [environment["SSH_ASKPASS"], text]
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, asked


def test_the_program_that_ssh_starts_prints_the_answer(tmp_path, short):
    question = SshQuestion("password", "me@gpu1's password: ")
    assert ask(tmp_path, short, question.text, "geheim é") == (0, "geheim é\n", [question])
    assert list(short.iterdir()) == []


def test_no_answer_is_an_exit_code_that_ssh_takes_for_no(tmp_path, short):
    assert ask(tmp_path, short, "Password: ", None)[:2] == (1, "")


def test_a_stranger_without_the_token_learns_nothing(tmp_path, short):
    assert ask(tmp_path, short, "Password: ", "secret", HOLDFAST_ASKPASS_TOKEN="0" * 32) == (1, "", [])


def test_sockets_of_clients_that_were_killed_are_swept(tmp_path, short):
    done = subprocess.Popen(["true"])
    done.wait()
    (short / f"ask-{done.pid}-00").touch()
    (short / f"ask-{os.getpid()}-00").touch()
    Askpass(tmp_path / "home", short, lambda pending: pending.answer(None)).close()
    assert [path.name for path in short.iterdir()] == [f"ask-{os.getpid()}-00"]


def test_the_answer_stands_in_no_environment_and_no_file(tmp_path, short):
    with contextlib.closing(Askpass(tmp_path, short, lambda pending: pending.answer("correct horse"))) as askpass:
        environment = askpass.environment({})
        files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any("correct horse" in value for value in environment.values())
    assert not any(b"correct horse" in content for content in files)
