"""However a session of tests ends, nothing that it started is left."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kit import processes
from kit.suite.containment import MARK
from kit.waiting import wait_for

pytestmark = pytest.mark.kit
TESTS = Path(__file__).resolve().parents[2]
SESSION = """
    import os, subprocess, tempfile, time
    from pathlib import Path
    from kit.accounts import premises
    from kit.boxes import Boxes

    def test_that_leaves_everything(tmp_path):
        with premises() as folder:
            boxes = Boxes(folder)
            account, server = boxes.account(), boxes.server()
            mine = {"TOKEN": os.environ["TOKEN"]}
            for uid in (0, account.uid):
                subprocess.run(["setsid", "--fork", "sh", "-c", "sleep 600; :"], env=mine, user=uid, check=True)
            if "MOUNTS" in os.environ:
                (tmp_path / "disk").mkdir()
                subprocess.run(["mount", "-t", "tmpfs", mine["TOKEN"], str(tmp_path / "disk")], check=True)
            tempfile.mkstemp()
            note = Path(os.environ["NOTE"])
            words = [account.name, folder, tempfile.gettempdir(), server.port]
            note.with_suffix(".new").write_text(" ".join(map(str, words)))
            note.with_suffix(".new").rename(note)
            if os.environ["HOW"] == "crash":
                os._exit(7)
            if os.environ["HOW"] == "wait":
                time.sleep(600)
"""


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """`session("wait", "-n", "1")` is a separate pytest that leaves as much as it can behind; its token is the test's
    folder. With `plain` it has no mounts and namespaces, as root in most containers."""
    (tmp_path / "test_it.py").write_text(textwrap.dedent(SESSION))
    started: list[subprocess.Popen[str]] = []

    def start(how: str, *words: str, plain: bool = False) -> subprocess.Popen[str]:
        kept = {name: value for name, value in os.environ.items() if name != MARK and "PYTEST" not in name}
        variables = {"PYTHONPATH": str(TESTS), "TOKEN": str(tmp_path), "NOTE": str(tmp_path / "note"), "HOW": how}
        plugins = ["-p", "kit.suite.containment", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'base'}"]
        argv = [sys.executable, "-m", "pytest", "-q", *plugins, *words, "test_it.py"]
        if plain:
            argv = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", *argv]
        else:
            variables["MOUNTS"] = "yes"
        pipe = subprocess.PIPE
        process = subprocess.Popen(argv, cwd=tmp_path, env={**kept, **variables}, stdout=pipe, stderr=pipe, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        print(*process.communicate())


def wait_until_it_leaves(running: subprocess.Popen[str], tmp_path: Path) -> None:
    note = tmp_path / "note"
    wait_for(lambda: note.exists() or running.poll() is not None, what="the session has made what it leaves")
    assert note.exists(), running.communicate()


def require_nothing_left(tmp_path: Path) -> None:
    account, folder, temporary, port = (tmp_path / "note").read_text().split()
    wait_for(lambda: not _running(tmp_path), what="all have ended")
    assert str(tmp_path) not in Path("/proc/mounts").read_text()
    assert not Path(folder).exists()
    assert not Path(temporary).exists()
    with pytest.raises(KeyError):
        pwd.getpwnam(account)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port)), timeout=5).close()


def _running(tmp_path: Path) -> list[processes.Process]:
    return [one for one in processes.every() if one.is_alive and f"TOKEN={tmp_path}" in one.environment]


@pytest.mark.parametrize("workers", ["0", "1"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_session_leaves_nothing(session, tmp_path, needs, workers, number):
    needs("useradd", "sshd", root=True)
    running = session("wait", "-n", workers)
    wait_until_it_leaves(running, tmp_path)
    running.send_signal(number)
    print(*running.communicate(timeout=60))
    assert running.returncode != 0
    require_nothing_left(tmp_path)


@pytest.mark.parametrize("victim", ["pytest", "its worker"])
def test_a_session_that_is_killed_leaves_nothing(session, tmp_path, needs, victim):
    needs("useradd", "sshd", root=True)
    running = session("wait", "-n", "1")
    wait_until_it_leaves(running, tmp_path)
    tree = processes.below(running.pid)  # the first process, pytest, its worker
    os.kill(tree[1 if victim == "pytest" else 2].pid, signal.SIGKILL)
    if victim != "pytest":
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.communicate(timeout=3)  # xdist starts another one, which waits again
        running.send_signal(signal.SIGINT)
    print(*running.communicate(timeout=60))
    require_nothing_left(tmp_path)


def test_a_session_that_may_have_no_namespaces_leaves_nothing(session, tmp_path, needs):
    needs("useradd", "sshd", "setpriv", root=True)
    running = session("wait", "-n", "1", plain=True)
    wait_until_it_leaves(running, tmp_path)
    running.send_signal(signal.SIGTERM)
    print(*running.communicate(timeout=60))
    require_nothing_left(tmp_path)


def test_what_a_session_could_not_remove_the_next_one_does(session, tmp_path, needs):
    """The outermost process is killed: the kernel ends the others, and users and folders wait for the next session."""
    needs("useradd", "sshd", root=True)
    running = session("wait")
    wait_until_it_leaves(running, tmp_path)
    os.kill(running.pid, signal.SIGKILL)
    running.communicate()
    wait_for(lambda: not _running(tmp_path))
    (tmp_path / "note").rename(tmp_path / "first")
    assert session("go").wait(timeout=60) == 0
    require_nothing_left(tmp_path)
    (tmp_path / "first").rename(tmp_path / "note")
    require_nothing_left(tmp_path)


def test_a_worker_that_crashes_fails_the_session_and_leaves_nothing(session, tmp_path, needs):
    needs("useradd", "sshd", root=True)
    crashed = session("crash", "-n", "1", "--max-worker-restart=0")
    print(*crashed.communicate(timeout=60))
    assert crashed.returncode != 0
    require_nothing_left(tmp_path)
