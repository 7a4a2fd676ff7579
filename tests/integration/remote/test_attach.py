"""`computetarget attach remote` against real SSH servers: each way to log in, and what is found on the machine."""

from __future__ import annotations

import contextlib
import os
import pty
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kit import processes
from kit.attaching import PASSWORD, attach, authorized, compute, own_keys, written
from kit.boxes import Box, Boxes
from kit.files import holding
from kit.sshd import Alias, Client, Options
from kit.suite.missing_parts import require

Run = Callable[..., Any]
ALONE = f"{PASSWORD}-of-{os.getpid()}"
"""All processes are searched, including those of tests that run at the same time."""
Make = Callable[..., Box]


def test_an_account_that_my_own_key_opens_is_attached_and_runs_work_there(
    holdfast: Run, box: Make, tmp_path: Path
) -> None:
    gpu1 = box("gpu1")
    before = authorized(gpu1)

    result = holdfast("computetarget", "attach", "remote", "-n", "gpu1", "-a", "gpu1", env=gpu1.environment)

    assert result.code == 0, result.err
    assert result.out == "aml_config/gpu1.compute\naml_config/gpu1.runconfig\n"
    assert "Memory" in result.err, "what was found is shown"
    assert authorized(gpu1) == before, "no key of ours is needed"
    assert "privateKey" not in compute(tmp_path)
    assert "pythonLocation: /" in compute(tmp_path)
    assert gpu1.home.stat().st_mode & 0o777 == 0o700
    assert not (gpu1.home / "proofs").exists(), "the proof leaves nothing"
    (tmp_path / "t.py").write_text("import os; print(os.getuid())")
    ran = holdfast("submit", "-c", "gpu1", "t.py", env=gpu1.environment)
    assert (ran.code, ran.out) == (0, f"{gpu1.account.uid}\n"), ran.err


def test_the_older_spelling_attaches_too(holdfast: Run, known_box: Make, tmp_path: Path) -> None:
    gpu1 = known_box("gpu1")
    words = ["--name", "gpu1", "--type", "remote", "--address", "gpu1"]
    assert holdfast("computetarget", "attach", *words, env=gpu1.environment).code == 0
    assert written(tmp_path) == ["gpu1.compute", "gpu1.runconfig"]


def test_a_password_is_used_once_and_is_in_no_file_and_no_child(
    holdfast: Run, box: Make, tmp_path: Path, isolated: Path
) -> None:
    gpu1 = box(password=ALONE, key=False)
    gpu1.account.write(".ssh/authorized_keys", "# mine\nssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ other", 0o600)
    before = authorized(gpu1)
    given = ["--name", "gpu1", "--address", gpu1.address, "--username", gpu1.account.name]
    with subprocess.Popen(
        [sys.executable, "-m", "holdfast", "computetarget", "attach", "remote", *given],
        cwd=tmp_path,
        env={**os.environ, **gpu1.environment, "HOLDFAST_PASSWORD": ALONE},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        seen, told = _watched(process)
        said = process.communicate(timeout=60)[0]
        told.join()

    assert process.returncode == 0, said
    assert "ssh" in seen.programs, "the watch saw the children"
    assert seen.leaks == []
    assert ALONE not in said
    assert holding(ALONE, isolated, tmp_path, gpu1.account.home, gpu1.client.folder) == []
    assert authorized(gpu1).startswith(before + "\n"), "other lines stay byte for byte"
    assert authorized(gpu1).count("holdfast gpu1") == 1
    private, public = own_keys(isolated)
    assert (private.stat().st_mode & 0o777, private.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert public.read_text().startswith("ssh-ed25519 ")
    assert f"privateKey: ~/.holdfast/keys/{private.name}" in compute(tmp_path)
    assert holdfast("computetarget", "check", "gpu1", env=gpu1.environment).code == 0, "the key alone is enough"


def test_a_password_on_the_command_line_is_warned_of(holdfast: Run, known_box: Make) -> None:
    result = attach(holdfast, known_box(password=PASSWORD, key=False), "--password", PASSWORD)
    assert result.code == 0, result.err
    assert result.err.startswith("warning: What was typed on the command line stays in the shell's history.")
    assert PASSWORD not in result.err + result.out


def test_a_key_of_mine_is_used_as_it_is(holdfast: Run, known_box: Make, tmp_path: Path, isolated: Path) -> None:
    gpu1 = known_box(key=False)
    key = gpu1.client.make_key("mine")
    gpu1.account.authorize(key.with_name("mine.pub").read_text())
    before = authorized(gpu1)
    assert attach(holdfast, gpu1, "--private-key-file", str(key)).code == 0
    assert f"privateKey: {key}" in compute(tmp_path)
    assert (authorized(gpu1), own_keys(isolated)) == (before, [])


def test_a_key_with_a_passphrase_is_used_once_as_a_password_is(
    holdfast: Run, known_box: Make, tmp_path: Path, isolated: Path
) -> None:
    gpu1 = known_box(key=False)
    key = gpu1.client.make_key("locked", passphrase="open sesame")
    gpu1.account.authorize(key.with_name("locked.pub").read_text())
    words = ["--private-key-file", str(key), "--private-key-passphrase"]

    wrong = attach(holdfast, gpu1, *words, "shut sesame")
    assert wrong.code == 245
    assert f"The key `{key}` does not open" in wrong.err
    assert written(tmp_path) == []

    assert attach(holdfast, gpu1, *words, "open sesame").code == 0
    assert "privateKey: ~/.holdfast/keys/gpu1-" in compute(tmp_path)
    assert holding("open sesame", isolated, tmp_path, gpu1.account.home) == []


def test_a_key_is_shown_appended_by_hand_and_then_opens_the_account(
    holdfast: Run, known_box: Make, tmp_path: Path, isolated: Path
) -> None:
    gpu1 = known_box(key=False)
    first = attach(holdfast, gpu1, "-k")
    assert first.code == 245
    assert "The key does not open" in first.err
    assert first.out.startswith("ssh-ed25519 ")
    assert written(tmp_path) == []
    command = next(line.strip() for line in first.err.splitlines() if line.strip().startswith("mkdir"))
    gpu1.account.write(".ssh/authorized_keys", "# no line break at the end", 0o600)
    assert gpu1.account.run(["bash", "-c", command]).returncode == 0

    second = attach(holdfast, gpu1, "-k")

    assert second.code == 0, second.err
    assert second.out == "aml_config/gpu1.compute\naml_config/gpu1.runconfig\n"
    assert "authorized_keys" not in second.err, "what was done need not be said again"
    assert len(own_keys(isolated)) == 2


def test_a_machine_behind_another_is_reached_and_gets_its_own_password(
    holdfast: Run, boxes: Boxes, client: Client, tmp_path: Path
) -> None:
    """The jump host asks for a password as well; the password for the machine behind it is not sent to the jump
    host."""
    door = boxes.box("door", client, boxes.account(), boxes.server())
    gpu1 = boxes.box("gpu1", client, boxes.account(password=PASSWORD), boxes.server(), key=False)
    client.know(Alias("gpu1", gpu1.link.port, gpu1.account.name, jump="door"))
    client.known_hosts.write_text("")
    words = ["-n", "gpu1", "-a", "gpu1", "--accept-host-key", door.server.fingerprint]
    environment = {**gpu1.environment, "HOLDFAST_PASSWORD": PASSWORD}

    half = holdfast("computetarget", "attach", "remote", *words, env=environment)
    assert half.code == 245
    assert gpu1.server.fingerprint in half.err

    words += ["--accept-host-key", gpu1.server.fingerprint]
    whole = holdfast("computetarget", "attach", "remote", *words, env=environment)
    assert whole.code == 0, whole.err
    assert "holdfast gpu1" in authorized(gpu1)
    assert "holdfast" not in authorized(door)


def test_noise_of_start_up_files_and_banners_disturbs_nothing(holdfast: Run, known_box: Make, tmp_path: Path) -> None:
    gpu1 = known_box("gpu1", options=Options(banner="Authorized use only!\n" * 20))
    noise = "echo 'Welcome to gpu1!'; printf '\\033[31mred\\033[0m\\n'; head -c 100000 /dev/urandom; cat /dev/null\n"
    for name in (".bashrc", ".profile"):
        gpu1.account.write(name, noise)
    result = attach(holdfast, gpu1)
    assert result.code == 0, result.err
    assert "pythonLocation: /" in compute(tmp_path)


def test_the_python_of_the_login_is_the_one_that_runs_will_use(holdfast: Run, known_box: Make, tmp_path: Path) -> None:
    """Many users set it in a start-up file that returns at once if the shell is not interactive."""
    gpu1 = known_box("gpu1")
    mine = gpu1.account.home / "mine" / "bin"
    gpu1.account.write("mine/bin/readme", "")
    assert gpu1.account.run(["ln", "-s", "/usr/bin/python3", str(mine / "python")]).returncode == 0
    gpu1.account.write(".bashrc", f'case $- in *i*) ;; *) return ;; esac\nPATH={mine}:"$PATH"\n')
    gpu1.account.write(".profile", ". ~/.bashrc\n")
    assert attach(holdfast, gpu1).code == 0
    assert f"pythonLocation: {mine}/python\n" in compute(tmp_path)


@pytest.mark.parametrize("shell", ["/bin/sh", "/usr/bin/tcsh", "/usr/bin/fish", "/usr/bin/zsh"])
def test_every_login_shell_will_do(holdfast: Run, known_box: Make, tmp_path: Path, shell: str) -> None:
    require(shell)
    result = attach(holdfast, known_box("gpu1", shell=shell))
    assert result.code == 0, result.err
    assert "pythonLocation: /" in compute(tmp_path)


def test_another_folder_on_the_machine_holds_everything(holdfast: Run, box: Make, tmp_path: Path) -> None:
    gpu1 = box("gpu1")
    scratch = gpu1.account.home / "scratch disk" / "holdfast"
    assert attach(holdfast, gpu1, "--home", str(scratch)).code == 0
    assert f"holdfastHome: {scratch}\n" in compute(tmp_path)
    assert (scratch / "farside").is_dir()
    assert not gpu1.home.exists()
    shown = holdfast("computetarget", "show", "gpu1", "--query", "stored.home", "-o", "tsv", env=gpu1.environment)
    assert shown.out == f"{scratch}\n"


def test_a_home_on_a_network_is_left_for_a_local_disk(
    holdfast: Run, boxes: Boxes, client: Client, tmp_path: Path
) -> None:
    """The far side reads another table of mounts (HOLDFAST_MOUNTS), in which the home is on NFS."""
    account = boxes.account()
    table = account.write(
        "mounts", f"1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:9 / {account.home} rw - nfs4 nas:/h rw\n"
    )
    server = boxes.server(Options(environment={"HOLDFAST_MOUNTS": str(table)}))
    gpu1 = boxes.box("gpu1", client, account, server)
    local = Path("/var/tmp") / f"holdfast-{account.name}"
    try:
        result = attach(holdfast, gpu1)
        assert result.code == 0, result.err
        assert f"on a network file system (nfs4): Holdfast's folder there is {local}" in result.err
        assert f"holdfastHome: {local}\n" in compute(tmp_path)
        assert (local.stat().st_mode & 0o777, local.stat().st_uid) == (0o700, account.uid)
        assert not gpu1.home.exists(), "one folder of the user's, not two"
    finally:
        shutil.rmtree(local, ignore_errors=True)


def test_a_person_at_a_terminal_confirms_the_host_key_and_is_asked_for_the_password_once(
    known_box: Make, tmp_path: Path
) -> None:
    gpu1 = known_box(password=PASSWORD, key=False)
    gpu1.client.known_hosts.write_text("")
    said, code = _typed(gpu1, tmp_path, [("(yes/no/fingerprint)", "yes"), ("password:", PASSWORD)])
    assert code == 0, said
    assert gpu1.server.fingerprint in said
    assert PASSWORD not in said, "not even shown while it is typed"
    assert said.count("password:") == 1
    assert "holdfast gpu1" in authorized(gpu1)


def test_an_account_that_wants_a_key_and_a_password_is_used_as_it_is(known_box: Make, tmp_path: Path) -> None:
    """A second factor: no Holdfast key opens it alone, and a person is asked at each connection."""
    gpu1 = known_box("gpu1", password=PASSWORD, options=Options(methods="publickey,password"))
    before = authorized(gpu1)
    said, code = _typed(gpu1, tmp_path, [("password:", PASSWORD)])
    assert code == 0, said
    assert "each new connection will ask you again" in " ".join(said.split())
    assert said.count("password:") == 1, "one attach asks once, however often it connects"
    assert authorized(gpu1) == before
    assert "privateKey" not in compute(tmp_path)


@pytest.mark.parametrize("passphrase", ["", "open sesame"])
def test_a_key_that_does_not_open_the_account_is_named_before_a_password_is_asked_for(
    known_box: Make, tmp_path: Path, passphrase: str
) -> None:
    """A key that the machine does not know, and one whose passphrase was mistyped."""
    gpu1 = known_box(password=PASSWORD, key=False)
    key = gpu1.client.make_key("mine", passphrase)
    if passphrase:
        gpu1.account.authorize(key.with_name(f"{key.name}.pub").read_text())
    wrong = [("passphrase", "wrong")] * 3 if passphrase else []
    said, code = _typed(gpu1, tmp_path, [*wrong, ("password:", PASSWORD)], "--private-key-file", str(key))
    assert code == 0, said
    refused, asked = said.index(f"The key {key} alone does not open"), said.index("password:")
    assert refused < asked
    assert ("passphrase was not right" in said) is bool(passphrase)


def _typed(box: Box, project: Path, answers: list[tuple[str, str]], *more: str) -> tuple[str, int]:
    """Attach on a terminal, and type each answer when its question appears."""
    place = [box.name] if box.key is not None else [box.address, "--username", box.account.name]
    words = ["computetarget", "attach", "remote", "--name", "gpu1", "--address", *place, *more]
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast", *words],
        cwd=project,
        env={**os.environ, **box.environment},
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
    )
    os.close(follower)
    said, seen = "", 0
    with contextlib.suppress(OSError):  # the other end of the terminal is closed
        while data := os.read(leader, 4096):
            said += data.decode(errors="replace")
            if answers and answers[0][0] in said[seen:]:
                seen = len(said)
                os.write(leader, answers.pop(0)[1].encode() + b"\n")
    os.close(leader)
    return said, process.wait(60)


class _Seen:
    def __init__(self) -> None:
        self.programs: set[str] = set()
        self.leaks: list[str] = []


def _watched(process: subprocess.Popen[str]) -> tuple[_Seen, threading.Thread]:
    """Look at every process of the machine again and again, until `process` ends."""
    seen = _Seen()

    def look() -> None:
        while process.poll() is None:
            for each in processes.every():
                words = each.argv
                seen.programs.update({os.path.basename(words[0])} if words else set())
                # A fork is a copy of the command, environment and all, until it becomes a program of its own; while it
                # does, it has no arguments, and what is read next may be the command's environment.
                where = [*words, *(each.environment if words not in ([], process.args) else [])]
                if each.pid != os.getpid() and any(ALONE in word for word in where):
                    seen.leaks.append(" ".join(words))

    thread = threading.Thread(target=look)
    thread.start()
    return seen, thread
