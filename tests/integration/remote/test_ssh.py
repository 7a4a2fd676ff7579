"""The host over SSH, against a real server: shells, noise, shared connections, host keys, ways to fail."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.errors import HostError, HostKeyRefused, LoginNeeded, StorageError, Unreachable
from holdfast.hosts import shared_connection
from holdfast.hosts.ssh import Destination, Login, Near, Ssh
from holdfast.hosts.ssh_questions import SshQuestion
from kit.boxes import Box, Boxes
from kit.sshd import Alias, Client, Options
from kit.waiting import wait_for

MakeBox = Callable[..., Box]


@pytest.fixture
def sockets() -> Iterator[Path]:
    """Short, as a socket's path must be. Remaining masters are asked to end."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
        for socket in Path(folder).iterdir():
            subprocess.run(["ssh", "-S", str(socket), "-O", "exit", "any"], capture_output=True)


@pytest.fixture
def reach(tmp_path: Path, sockets: Path) -> Callable[..., Ssh]:
    def make(box: Box, **changes: object) -> Ssh:
        near = Near(tmp_path / "near", dict(os.environ), sockets, tuple(shlex.split(box.environment["HOLDFAST_SSH"])))
        destination = Destination("127.0.0.1", box.link.port, box.account.name, box.key)
        return replace(Ssh(destination, near), **changes)  # type: ignore[arg-type]

    return make


def _hello(host: Ssh, may_ask: bool = False) -> dict[str, object]:
    with host.connect(may_ask) as connection:
        found: dict[str, object] = connection.request("hello")
        return found


@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/sh", "/bin/csh", "/usr/bin/fish", "/usr/bin/zsh"])
def test_the_far_side_starts_through_every_shell(shell: str, box: MakeBox, reach: Callable[..., Ssh]) -> None:
    gpu1 = box(shell=shell)
    assert _hello(reach(gpu1))["home"] == str(gpu1.home)
    assert gpu1.home.stat().st_mode & 0o777 == 0o700


def test_the_far_side_travels_once(box: MakeBox, reach: Callable[..., Ssh]) -> None:
    gpu1 = box()
    _hello(reach(gpu1))
    first = gpu1.link.counters
    _hello(reach(gpu1, login=Login(shares=False)))
    second = gpu1.link.counters
    assert first.to_server > 30_000
    assert second.to_server - first.to_server < 15_000
    assert len(list((gpu1.home / "farside").iterdir())) == 1


@pytest.mark.parametrize(
    "noise",
    [
        "echo Welcome to the cluster; printf '\\033[31mred\\033[0m\\n' >&2",
        "head -c 1000000 /dev/urandom",
        "printf '\\nHOLDFAST 0000000000000000\\nHFf1'",
        "cat > ~/swallowed & sleep 0.2; kill $!",
        "printf 'no newline at the end'",
    ],
)
def test_start_up_files_may_say_what_they_like(noise: str, box: MakeBox, reach: Callable[..., Ssh]) -> None:
    gpu1 = box()
    gpu1.account.write(".bashrc", noise + "\n")
    assert _hello(reach(gpu1))["home"] == str(gpu1.home)


def test_a_banner_does_not_matter(box: MakeBox, reach: Callable[..., Ssh]) -> None:
    banner = "Authorized use only!\nPermission denied (to others).\n"
    assert _hello(reach(box(options=Options(banner=banner))))["uid"]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A master that is slow on a busy machine is not taken for a stuck one."""
    monkeypatch.setattr(shared_connection, "PATIENCE", 60.0)
    monkeypatch.setattr("holdfast.hosts.ssh.SHARED_PATIENCE", 60.0)


@pytest.mark.usefixtures("patient")
def test_a_connection_stays_open_and_the_next_uses_it(box: MakeBox, reach: Callable[..., Ssh]) -> None:
    gpu1 = box()
    for _ in range(3):
        _hello(reach(gpu1))
    assert gpu1.link.counters.connections == 1


@pytest.mark.usefixtures("patient")
def test_an_open_connection_of_the_users_own_is_used(
    box: MakeBox, reach: Callable[..., Ssh], sockets: Path, client: Client
) -> None:
    gpu1 = box()
    config = Path(client.config)
    config.write_text(f"ControlPath {sockets}/theirs-%C\n" + config.read_text())
    master = [*shlex.split(gpu1.environment["HOLDFAST_SSH"]), "-M", "-N", "-f", "-i", str(gpu1.key)]
    place = ["-p", str(gpu1.link.port), "-l", gpu1.account.name, "127.0.0.1"]
    subprocess.run([*master, *place], check=True, capture_output=True, stdin=subprocess.DEVNULL)
    before = gpu1.link.counters.connections
    _hello(reach(gpu1))
    assert gpu1.link.counters.connections == before


def _masters(sockets: Path) -> list[int]:
    """The processes that keep a connection open, found by the socket in their arguments."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if words.startswith(b"ssh: ") and os.fsencode(sockets) in words:
                found.append(int(entry.name))
    return found


def test_a_stuck_master_does_not_block_commands(box: MakeBox, reach: Callable[..., Ssh], sockets: Path) -> None:
    gpu1 = box()
    _hello(reach(gpu1))
    wait_for(lambda: len(_masters(sockets)) == 1, what="the master")
    stuck = _masters(sockets)[0]
    os.kill(stuck, signal.SIGSTOP)
    try:
        assert _hello(reach(gpu1))["uid"]
        assert gpu1.link.counters.connections == 2
    finally:
        os.kill(stuck, signal.SIGKILL)


def test_a_master_whose_link_is_dead_does_not_block_commands(
    box: MakeBox, reach: Callable[..., Ssh], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.hosts.ssh.SHARED_PATIENCE", 0.5)
    gpu1 = box()
    _hello(reach(gpu1))
    gpu1.link.silence()
    assert _hello(reach(gpu1))["uid"]
    assert gpu1.link.counters.connections == 2


def test_more_sessions_than_the_server_allows_get_connections_of_their_own(
    box: MakeBox, reach: Callable[..., Ssh]
) -> None:
    gpu1 = box(options=Options(max_sessions=2))
    host = reach(gpu1)
    _hello(host)
    connections = [host.connect(may_ask=False) for _ in range(4)]
    assert all(connection.request("hello")["uid"] for connection in connections)
    for connection in connections:
        connection.close()


def test_an_unknown_host_key_is_refused_when_it_cannot_be_confirmed(
    boxes: Boxes, box: MakeBox, reach: Callable[..., Ssh], client: Client
) -> None:
    gpu1 = box()
    Path(client.known_hosts).write_text("")
    with pytest.raises(HostKeyRefused, match="not known here"):
        _hello(reach(gpu1))


@pytest.mark.parametrize("answer", ["yes", "fingerprint"])
def test_a_new_host_key_is_shown_and_confirmed_once(
    answer: str, box: MakeBox, reach: Callable[..., Ssh], client: Client
) -> None:
    gpu1 = box()
    Path(client.known_hosts).write_text("")
    asked: list[SshQuestion] = []

    def ask(question: SshQuestion) -> str:
        asked.append(question)
        return "yes" if answer == "yes" else question.fingerprint

    host = reach(gpu1)
    asking = replace(host, near=replace(host.near, ask=ask), login=Login(shares=False))
    assert _hello(asking, may_ask=True)["uid"]
    assert [(each.kind, each.fingerprint) for each in asked] == [("host-key", gpu1.server.fingerprint)]
    assert _hello(replace(host, login=Login(shares=False)))["uid"]


def test_a_key_that_is_not_confirmed_lets_nothing_through(
    box: MakeBox, reach: Callable[..., Ssh], client: Client
) -> None:
    gpu1 = box()
    Path(client.known_hosts).write_text("")
    host = reach(gpu1)
    with pytest.raises(HostKeyRefused):
        _hello(replace(host, near=replace(host.near, ask=lambda _: "no")), may_ask=True)
    assert Path(client.known_hosts).read_text() == ""
    assert not gpu1.home.exists()


def test_a_changed_host_key_is_refused_with_the_reason(box: MakeBox, reach: Callable[..., Ssh]) -> None:
    gpu1 = box()
    gpu1.server.rotate_host_key()
    host = reach(gpu1)
    with pytest.raises(HostKeyRefused, match="is not the one it had") as refused:
        _hello(replace(host, near=replace(host.near, ask=lambda _: "yes")), may_ask=True)
    assert gpu1.server.fingerprint in refused.value.message


def test_keys_are_checked_even_where_the_users_configuration_would_not(
    box: MakeBox, reach: Callable[..., Ssh], client: Client
) -> None:
    gpu1 = box()
    config = Path(client.config)
    config.write_text("StrictHostKeyChecking no\n" + config.read_text())
    gpu1.server.rotate_host_key()
    with pytest.raises(HostKeyRefused):
        _hello(reach(gpu1))


def test_a_machine_behind_a_jump_host_is_reached_through_it(
    boxes: Boxes, box: MakeBox, reach: Callable[..., Ssh], client: Client
) -> None:
    jump, inner = box("jump"), box("inner")
    client.know(Alias("behind", inner.link.port, inner.account.name, inner.key, jump="jump"))
    host = reach(inner)
    through = replace(host, destination=Destination("behind"))
    assert _hello(through)["home"] == str(inner.home)
    assert jump.link.counters.connections == 1


def test_the_key_of_a_jump_host_is_checked_even_where_the_configuration_would_not(
    box: MakeBox, reach: Callable[..., Ssh], client: Client
) -> None:
    jump, inner = box("jump"), box("inner")
    client.know(Alias("behind", inner.link.port, inner.account.name, inner.key, jump="jump"))
    config = Path(client.config)
    config.write_text("StrictHostKeyChecking no\n" + config.read_text())
    jump.server.rotate_host_key()
    through = replace(reach(inner), destination=Destination("behind"))
    with pytest.raises(HostKeyRefused) as refused:
        _hello(through)
    assert jump.server.fingerprint in refused.value.message
    assert not inner.home.exists()


def test_a_machine_that_would_ask_says_that_a_login_is_needed(box: MakeBox, reach: Callable[..., Ssh]) -> None:
    with pytest.raises(LoginNeeded) as needed:
        _hello(reach(box(password="secret", key=False)))
    assert "password" in needed.value.methods


def test_a_closed_port_is_unreachable(box: MakeBox, reach: Callable[..., Ssh]) -> None:
    gpu1 = box()
    gpu1.link.close()
    with pytest.raises(Unreachable, match="Connection refused"):
        _hello(reach(gpu1))


def test_a_machine_that_accepts_and_says_nothing_is_given_up(
    box: MakeBox, reach: Callable[..., Ssh], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.hosts.ssh.QUIET_PATIENCE", 0.5)
    gpu1 = box()
    gpu1.link.stall()
    with pytest.raises(Unreachable, match=r"0\.5 s"):
        _hello(reach(gpu1))


def test_a_machine_without_python_is_told_from_one_that_is_down(box: MakeBox, reach: Callable[..., Ssh]) -> None:
    gpu1 = box()
    gpu1.account.write(".bashrc", "PATH=/nowhere\n")
    with pytest.raises(HostError, match="has no `python3`"):
        _hello(reach(gpu1))


def test_an_old_python_is_named_with_what_is_needed(box: MakeBox, reach: Callable[..., Ssh]) -> None:
    gpu1 = box()
    gpu1.account.write(
        "bin/python3",
        "#!/bin/sh\nshift 3; code=$1; shift\nexec /usr/bin/python3 -I -S -c "
        '"import sys; sys.version_info = (3, 5, 2); $code" "$@"\n',
        0o755,
    )
    gpu1.account.write(".bashrc", "PATH=$HOME/bin:$PATH\n")
    with pytest.raises(HostError, match=r"is 3\.5; Holdfast needs 3\.6"):
        _hello(reach(gpu1))


def test_a_home_that_cannot_be_written_has_a_sentence(box: MakeBox, reach: Callable[..., Ssh]) -> None:
    gpu1 = box()
    with pytest.raises(StorageError, match="may not be written by this account"):
        _hello(reach(gpu1, home="/usr/holdfast"))
    with pytest.raises(StorageError, match=r"`/proc/holdfast.*cannot be written"):
        _hello(reach(gpu1, home="/proc/holdfast"))


@pytest.mark.parametrize("folder", ["", "farside", "farside/*"])
def test_nothing_is_run_from_a_folder_that_others_may_write_to(
    folder: str, box: MakeBox, reach: Callable[..., Ssh]
) -> None:
    gpu1 = box()
    _hello(reach(gpu1))
    place = next(iter(gpu1.home.glob(folder))) if folder else gpu1.home
    place.chmod(0o777)
    with pytest.raises(HostError, match="others may write to") as refused:
        _hello(reach(gpu1))
    assert "chmod go-rwx" in refused.value.hint
    place.chmod(0o700)
    os.chown(place, 12345, 12345)
    place.chmod(0o755)
    with pytest.raises(HostError, match="belongs to another account"):
        _hello(reach(gpu1))


def test_an_account_whose_umask_lets_its_group_write_is_reached_again(box: MakeBox, reach: Callable[..., Ssh]) -> None:
    gpu1 = box()
    gpu1.account.write(".bashrc", "umask 002\n")
    _hello(reach(gpu1))
    _hello(reach(gpu1))
    placed = [gpu1.home, gpu1.home / "farside", *gpu1.home.glob("farside/*/**/*")]
    assert len(placed) > 20 and all(not each.stat().st_mode & 0o022 for each in placed)


def test_a_far_side_of_which_files_were_removed_is_sent_again(box: MakeBox, reach: Callable[..., Ssh]) -> None:
    gpu1 = box()
    _hello(reach(gpu1))
    agent = next(iter(gpu1.home.glob("farside/*/holdfast/farside/agent.py")))
    agent.unlink()
    assert _hello(reach(gpu1))["uid"]
    assert agent.exists()
    assert [path.name for path in (gpu1.home / "farside").iterdir()] == [agent.parents[2].name]


def test_a_login_that_hangs_is_ended_with_the_connection(box: MakeBox, reach: Callable[..., Ssh]) -> None:
    gpu1 = box()
    gpu1.link.stall()
    connection = reach(gpu1).connect(may_ask=False)
    process = connection._end._process
    connection.close()
    assert process.wait(60) != 0


def test_an_account_that_runs_no_commands_is_quoted(box: MakeBox, reach: Callable[..., Ssh]) -> None:
    with pytest.raises(HostError, match="This account is currently not available"):
        _hello(reach(box(shell="/usr/sbin/nologin")))


def test_a_folder_with_odd_characters_is_found_again(box: MakeBox, reach: Callable[..., Ssh]) -> None:
    gpu1 = box()
    name = "it's a $HOME; (ö) `x`!"
    assert _hello(reach(gpu1, home=f"~/{name}"))["home"] == f"{gpu1.account.home}/{name}"


def test_a_missing_ssh_is_a_sentence(tmp_path: Path, sockets: Path) -> None:
    near = Near(tmp_path, dict(os.environ), sockets, ("no-such-ssh",))
    with pytest.raises(HostError, match="`no-such-ssh` could not be started"):
        Ssh(Destination("gpu1"), near).connect()


def test_a_connection_that_is_shared_leaves_no_trace_of_the_password_variable(
    box: MakeBox, reach: Callable[..., Ssh], sockets: Path
) -> None:
    gpu1 = box()
    host = reach(gpu1)
    host = replace(host, near=replace(host.near, environment={**host.near.environment, "HOLDFAST_PASSWORD": "pw-42"}))
    _hello(host)
    wait_for(lambda: len(_masters(sockets)) == 1, what="the master")
    assert b"pw-42" not in Path(f"/proc/{_masters(sockets)[0]}/environ").read_bytes()
    assert shared_connection.KEPT_SECONDS == 60
