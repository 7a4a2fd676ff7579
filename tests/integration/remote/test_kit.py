"""The kit itself: servers and accounts behave as the other tests expect."""

from __future__ import annotations

import contextlib
import os
import pwd
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit import accounts, processes
from kit.sshd import Alias, Options
from kit.waiting import wait_for

pytestmark = pytest.mark.kit


def test_a_key_lets_in_and_the_account_is_the_one_that_was_made(box):
    one = box()
    result = one.client.run(one.name, "id -un; pwd; command -v python3")
    assert result.stdout.split() == [one.account.name, str(one.account.home), "/usr/bin/python3"]
    assert result.stderr == ""


@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/sh"])
def test_an_account_has_the_shell_that_was_asked_for(box, shell):
    one = box(shell=shell)
    assert one.client.run(one.name, "echo $SHELL").stdout.strip() == shell


def test_an_account_without_a_key_of_the_client_is_closed(box):
    one = box(key=False)
    result = one.client.run(one.name, "-o", "BatchMode=yes", "--", "true")
    assert result.returncode == 255
    assert "Permission denied (publickey,password)" in result.stderr


def test_a_key_given_on_the_command_line_lets_in_where_the_configuration_names_none(box):
    one = box(key=False)
    key = one.client.make_key("other")
    one.account.authorize(key.with_suffix(".pub").read_text())
    assert one.client.run(one.name, "-i", str(key), "--", "true").returncode == 0


def test_a_password_lets_in_through_askpass(box):
    one = box(password="open sesame", key=False)
    assert one.client.run(one.name, "id -un", env=one.client.askpass("open sesame")).stdout.split() == [
        one.account.name
    ]
    wrong = one.client.run(one.name, "-o", "NumberOfPasswordPrompts=1", "--", "true", env=one.client.askpass("wrong"))
    assert wrong.returncode == 255


def test_two_factors_are_asked_one_after_the_other(box):
    one = box(password="two", options=Options(methods="publickey,password"))
    assert one.client.run(one.name, "-o", "BatchMode=yes", "--", "true").returncode == 255
    assert one.client.run(one.name, "true", env=one.client.askpass("two")).returncode == 0


def test_a_passphrase_and_then_a_password_are_answered_in_order(box):
    one = box(password="second", key=False, options=Options(methods="publickey,password"))
    key = one.client.make_key("locked", passphrase="first")
    one.account.authorize(key.with_suffix(".pub").read_text())
    answers = one.client.askpass("first", "second")
    assert one.client.run(one.name, "-i", str(key), "--", "true", env=answers).returncode == 0


def test_a_server_that_forbids_keys_or_passwords_says_so(box):
    only_password = box(options=Options(keys=False))
    only_key = box(key=False, options=Options(password=False))
    for one, offered in ((only_password, "(password)"), (only_key, "(publickey)")):
        assert offered in one.client.run(one.name, "-o", "BatchMode=yes", "--", "true").stderr


def test_options_of_a_server_reach_the_session(box):
    one = box(options=Options(environment={"ONE": "1", "TWO": "a b"}, banner="Be nice.\n", extra=["Compression no"]))
    result = one.client.run(one.name, 'echo "$ONE,$TWO"')
    assert (result.stdout, result.stderr) == ("1,a b\n", "Be nice.\n")


def test_a_forced_command_runs_instead(box):
    one = box(options=Options(force_command='echo "instead of $SSH_ORIGINAL_COMMAND"'))
    assert one.client.run(one.name, "true").stdout == "instead of true\n"


def test_a_server_with_pam_lets_in_too(box):
    one = box(password="word", key=False, options=Options(pam=True))
    assert one.client.run(one.name, "true", env=one.client.askpass("word")).returncode == 0


def test_an_unknown_host_key_is_refused_until_it_is_trusted(box):
    one = box()
    one.client.known_hosts.write_text("")
    refused = one.client.run(one.name, "-o", "BatchMode=yes", "--", "true")
    assert (refused.returncode, "Host key verification failed" in refused.stderr) == (255, True)
    one.client.trust(one.server, one.link.port)
    assert one.client.run(one.name, "true").returncode == 0


def test_a_rotated_host_key_is_noticed(box):
    one = box()
    before = one.server.fingerprint
    one.server.rotate_host_key()
    refused = one.client.run(one.name, "true")
    assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in refused.stderr
    assert one.server.fingerprint in refused.stderr
    assert one.server.fingerprint != before


def test_boxes_are_apart_and_can_be_reached_through_one_another(box, boxes):
    gate, inner = box("gate"), box("inner")
    inner.client.know(Alias("inner", inner.server.port, inner.account.name, inner.key, jump="gate"))
    inner.client.trust(inner.server)
    assert inner.client.run("inner", "id -un").stdout.strip() == inner.account.name
    assert (gate.link.counters.connections, inner.link.counters.connections) == (1, 0)
    assert gate.account.uid != inner.account.uid
    assert gate.server.host_key != inner.server.host_key


def test_a_second_laptop_has_a_key_of_its_own(box, boxes):
    one = box()
    other = one.seen_from(boxes.client())
    assert other.client.run(one.name, "id -un").stdout.strip() == one.account.name
    assert other.key.read_text() != one.key.read_text()
    assert str(other.key) in other.compute


def test_a_restart_cuts_sessions_but_not_what_runs_in_them(box):
    one = box()
    with _session(one, "setsid sleep 600 & echo started; wait") as session:
        assert session.stdout.readline() == "started\n"
        wait_for(lambda: "sleep" in _programs(one), what="the shell's child has become the program")
        one.server.restart()
        assert session.wait(timeout=60) == 255
    assert "sleep" in _programs(one)
    assert one.client.run(one.name, "true").returncode == 0


def test_a_restart_can_keep_sessions(box):
    one = box()
    with _session(one, "echo started; read answer; echo got $answer") as session:
        assert session.stdout.readline() == "started\n"
        one.server.restart(keep_sessions=True)
        assert session.communicate("it\n", timeout=60)[0] == "got it\n"


def test_a_paused_server_answers_nothing_until_it_is_resumed(box):
    one = box()
    one.server.pause()
    with _session(one, "echo alive") as session:
        wait_for(lambda: one.link.open_connections == 1)
        assert session.poll() is None
        assert one.link.counters.to_client == 0
        one.server.resume()
        assert session.communicate(timeout=60)[0] == "alive\n"


def test_a_logout_kills_daemons_but_the_spared(box):
    one = box(options=Options(kills_at_logout=True))
    daemon = "import os,sys,time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\n"
    daemon += "fd = os.open('/dev/null', os.O_RDWR)\n[os.dup2(fd, n) for n in (0, 1, 2)]\n"
    daemon += "open(sys.argv[1], 'w').close(); os.execlpe('sleep', 'sleep', sys.argv[2], {'PATH': '/bin'})"
    start = f"python3 -c {shlex.quote(daemon)}"
    spared = f"HOLDFAST_TEST_SPARED=1 setsid sleep 602 >/dev/null 2>&1 </dev/null & {start} up 601"
    with _session(one, f"{spared}; while [ ! -e up ]; do sleep 0.01; done; echo up; cat") as session:
        assert session.stdout.readline() == "up\n"
        wait_for(lambda: {"601", "602"} <= _sleeping(one), what="both have become the program")
        with _session(one, "echo 'a second connection'; cat") as second:
            assert second.stdout.readline() == "a second connection\n"
            session.stdin.close()
            session.wait(timeout=60)
            wait_for(lambda: "601" not in _sleeping(one), what="the daemon is killed")
            assert "602" in _sleeping(one)
            assert second.communicate("still here", timeout=60)[0] == "still here"


def test_without_kills_at_logout_a_daemon_lives_on(box):
    one = box()
    one.client.run(one.name, "setsid sleep 603 >/dev/null 2>&1 </dev/null &")
    wait_for(lambda: one.server.connections() == 0)
    wait_for(lambda: "603" in _sleeping(one), what="it has become the program, after the logout or before")


def test_an_account_is_removed_with_its_processes_and_its_home(boxes):
    account = boxes.account()
    process = subprocess.Popen(["sleep", "600"], user=account.uid)
    try:
        account.remove()
        assert process.wait(timeout=60) == -signal.SIGKILL
    finally:
        process.kill()
        process.wait()
    with pytest.raises(KeyError):
        pwd.getpwnam(account.name)
    assert not account.home.exists()


def test_what_a_killed_session_left_is_swept_by_the_next(needs):
    needs("useradd", "sshd", root=True)
    text = (
        "import os, sys, time\nfrom kit.accounts import premises\nfrom kit.boxes import Boxes\n"
        "with premises() as folder:\n"
        "    kit = Boxes(folder)\n"
        "    print(folder, kit.account().name, kit.server().port, flush=True)\n"
        "    time.sleep(600)\n"
    )
    place = {**os.environ, "PYTHONPATH": str(Path(accounts.__file__).parent.parent)}
    with subprocess.Popen([sys.executable, "-c", text], env=place, stdout=subprocess.PIPE, text=True) as session:
        assert session.stdout is not None
        folder, name, port = session.stdout.readline().split()
        session.kill()
    with accounts.premises():
        assert not Path(folder).exists()
    with pytest.raises(KeyError):
        pwd.getpwnam(name)
    wait_for(lambda: not any(folder in " ".join(one.argv) for one in processes.every()))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port)))


@contextlib.contextmanager
def _session(one, command: str) -> Iterator[Any]:
    """A `Popen[str]` that has all pipes, which its type does not know."""
    argv = [*one.client.ssh, one.name, command]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as session:
        try:
            yield session
        finally:
            session.kill()


def _programs(one) -> list[str]:
    return [Path(process.program).name for process in one.account.processes()]


def _sleeping(one) -> set[str]:
    """The arguments of the account's `sleep` processes."""
    return {word for process in one.account.processes() if process.argv[:1] == ["sleep"] for word in process.argv[1:]}


def test_an_account_that_another_session_removes_meanwhile_is_gone(tmp_path):
    text = f"[ -e {tmp_path}/again ] && exit 6; touch {tmp_path}/again; echo \"cannot remove entry 'x'\" >&2; exit 1"
    accounts.administer(["sh", "-c", text], fine=6)
    with pytest.raises(AssertionError, match="no such"):
        accounts.administer(["sh", "-c", "echo no such option >&2; exit 2"])
