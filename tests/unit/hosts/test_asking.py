"""ssh's questions on their way to whoever can answer them."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.hosts.asking import Askpass, Pending, Question, understand

HOST_KEY = """The authenticity of host '[gpu1]:2222 ([10.0.0.1]:2222)' can't be established.
ED25519 key fingerprint is SHA256:abc+/DEF123.
This key is not known by any other names.
Are you sure you want to continue connecting (yes/no/[fingerprint])? """


@pytest.fixture
def runtime() -> Iterator[Path]:
    """Short: a socket's path may not be long."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


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
    assert understand(HOST_KEY) == Question(
        "host-key", HOST_KEY, "SHA256:abc+/DEF123.".rstrip("."), "[gpu1]:2222 ([10.0.0.1]:2222)"
    )


def _ask(askpass: Askpass, text: str, **changes: str) -> subprocess.CompletedProcess[str]:
    environment = {**askpass.environment(dict(os.environ)), **changes}
    return subprocess.run(
        [environment["SSH_ASKPASS"], text], env=environment, capture_output=True, text=True, timeout=60
    )


def test_the_program_that_ssh_starts_prints_the_answer(tmp_path, runtime):
    asked: list[Question] = []

    def deliver(pending: Pending) -> None:
        asked.append(pending.question)
        pending.answer("geheim é")

    askpass = Askpass(tmp_path / "home", runtime, deliver)
    try:
        done = _ask(askpass, "me@gpu1's password: ")
    finally:
        askpass.close()
    assert (done.returncode, done.stdout) == (0, "geheim é\n")
    assert asked == [Question("password", "me@gpu1's password: ")]
    assert list(runtime.iterdir()) == []


def test_no_answer_is_an_exit_code_that_ssh_takes_for_no(tmp_path, runtime):
    askpass = Askpass(tmp_path / "home", runtime, lambda pending: pending.answer(None))
    try:
        done = _ask(askpass, "Password: ")
    finally:
        askpass.close()
    assert (done.returncode, done.stdout) == (1, "")


def test_a_stranger_without_the_token_learns_nothing(tmp_path, runtime):
    askpass = Askpass(tmp_path / "home", runtime, lambda pending: pending.answer("secret"))
    try:
        done = _ask(askpass, "Password: ", HOLDFAST_ASKPASS_TOKEN="0" * 32)
    finally:
        askpass.close()
    assert (done.returncode, done.stdout) == (1, "")


def test_sockets_of_clients_that_were_killed_are_swept(tmp_path, runtime):
    done = subprocess.Popen(["true"])
    done.wait()
    (runtime / f"ask-{done.pid}-00").touch()
    (runtime / f"ask-{os.getpid()}-00").touch()
    Askpass(tmp_path / "home", runtime, lambda pending: pending.answer(None)).close()
    assert [path.name for path in runtime.iterdir()] == [f"ask-{os.getpid()}-00"]


def test_the_answer_stands_in_no_environment_and_no_file(tmp_path, runtime):
    askpass = Askpass(tmp_path / "home", runtime, lambda pending: pending.answer("correct horse"))
    try:
        environment = askpass.environment({})
        files = [path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file()]
    finally:
        askpass.close()
    assert not any("correct horse" in value for value in environment.values())
    assert not any(b"correct horse" in content for content in files)
