"""`experiment shell` and `experiment forward` on a box."""

from __future__ import annotations

import contextlib
import os
import pty
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.boxes import Box
from kit.sshd import Options
from kit.waiting import wait_for

SCRIPT = """
import http.server, os, sys, time
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"from the run")
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Page)
print("port", server.server_port, flush=True)
server.serve_forever()
"""

MakeBox = Callable[..., Box]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "aml_config").mkdir(parents=True)
    return folder


def attached(project: Path, box: Box, extra: str = "") -> None:
    (project / "aml_config" / f"{box.name}.compute").write_text(box.compute + extra)
    (project / "aml_config" / f"{box.name}.runconfig").write_text(
        f"Target: {box.name}\nFramework: Python\nEnvironmentVariables:\n  COLOUR: green and 'blue'\n"
    )


@pytest.fixture
def running(project: Path, known_box: MakeBox, holdfast: Callable[..., Any]) -> Iterator[tuple[Box, str, int]]:
    """A run that serves a page; its id and its port."""
    gpu1 = known_box()
    attached(project, gpu1)
    (project / "serve.py").write_text(SCRIPT)
    started = holdfast("submit", "-a", "-c", "gpu1", "serve.py", cwd=project, env=gpu1.environment)
    run = started.out.strip()

    def port() -> int:
        words = holdfast("logs", "-r", run, cwd=project, env=gpu1.environment).out.split()
        return int(words[1]) if len(words) > 1 else 0

    wait_for(lambda: port() > 0, what="the port")
    yield gpu1, run, port()
    holdfast("cancel", "-r", run, "--grace", "0s", cwd=project, env=gpu1.environment)


def test_a_command_runs_in_the_runs_folder_with_its_variables(
    running: tuple[Box, str, int], project: Path, holdfast: Callable[..., Any]
) -> None:
    gpu1, run, _ = running
    code = (
        "import os, sys; print(os.environ['COLOUR'], os.environ['HOLDFAST_RUN_ID'], sorted(os.listdir())); sys.exit(7)"
    )
    done = holdfast("experiment", "shell", "-r", run, "--", "python3", "-c", code, cwd=project, env=gpu1.environment)
    assert done.code == 7
    assert done.out.splitlines()[0].strip() == f"green and 'blue' {run} ['aml_config', 'outputs', 'serve.py']"
    assert list((gpu1.home / "shells").iterdir()) == []


def test_a_shell_on_a_terminal_is_the_accounts_own(running: tuple[Box, str, int], project: Path) -> None:
    gpu1, run, _ = running
    leader, follower = pty.openpty()
    shell = subprocess.Popen(
        [sys.executable, "-m", "holdfast", "experiment", "shell", "-r", run],
        cwd=project,
        env={**os.environ, **gpu1.environment},
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
    )
    os.close(follower)
    os.write(leader, b"echo in-$((40 + 2)) $PWD; tty; exit 3\n")
    said = b""
    with contextlib.suppress(OSError):
        while data := os.read(leader, 4096):
            said += data
    os.close(leader)
    assert shell.wait(60) == 3
    assert b"in-42 " + str(gpu1.home).encode() in said
    assert b"/dev/pts/" in said


def test_a_shell_on_a_target_needs_no_run(project: Path, known_box: MakeBox, holdfast: Callable[..., Any]) -> None:
    gpu1 = known_box()
    attached(project, gpu1)
    words = ("experiment", "shell", "-c", "gpu1", "--", "sh", "-c", "pwd; echo $COLOUR")
    done = holdfast(*words, cwd=project, env=gpu1.environment)
    assert done.code == 0, done.err
    assert done.out.splitlines()[:2] == [str(gpu1.account.home), "green and 'blue'"]


def test_the_words_of_a_command_arrive_as_they_are_and_the_password_variable_does_not(
    project: Path, known_box: MakeBox, holdfast: Callable[..., Any]
) -> None:
    gpu1 = known_box(options=Options(extra=["AcceptEnv HOLDFAST_*"]))
    attached(project, gpu1)
    config = Path(gpu1.client.config)
    config.write_text("SendEnv HOLDFAST_*\n" + config.read_text())
    code = "import os, sys; print(sys.argv[1:], os.environ.get('HOLDFAST_PASSWORD'))"
    words = ("experiment", "shell", "-t", "gpu1", "--", "python3", "-c", code, "", "a\nb", "it's $HOME!")
    done = holdfast(*words, cwd=project, env={**gpu1.environment, "HOLDFAST_PASSWORD": "geheim"})
    assert done.out.strip() == str(["", "a\nb", "it's $HOME!"]) + " None", done.err


def test_a_shell_needs_to_know_where(project: Path, holdfast: Callable[..., Any]) -> None:
    done = holdfast("experiment", "shell", cwd=project)
    assert (done.code, done.err.splitlines()[0]) == (240, "error: Say where.")


@contextlib.contextmanager
def forwarding(project: Path, gpu1: Box, run: str, *words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast", "experiment", "forward", "-r", run, *words],
        cwd=project,
        env={**os.environ, **gpu1.environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate(timeout=60)


def _page(address: str) -> bytes:
    with contextlib.suppress(OSError), urllib.request.urlopen(address, timeout=20) as answer:
        found: bytes = answer.read()
        return found
    return b""


def test_a_port_of_the_run_is_brought_here_and_comes_back_after_a_cut(
    running: tuple[Box, str, int], project: Path
) -> None:
    gpu1, run, port = running
    with forwarding(project, gpu1, run, str(port)) as (process, address):
        assert _page(address) == b"from the run"
        gpu1.link.cut()
        wait_for(lambda: _page(address) == b"from the run", what="the port again")
        assert process.poll() is None


def test_a_port_here_that_is_taken_is_an_error_when_it_was_asked_for(
    running: tuple[Box, str, int], project: Path, holdfast: Callable[..., Any]
) -> None:
    gpu1, run, port = running
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        words = ("experiment", "forward", "-r", run, "--local", str(taken.getsockname()[1]), str(port))
        done = holdfast(*words, cwd=project, env=gpu1.environment)
    assert done.code == 240
    assert "is in use" in done.err


def test_a_box_that_is_gone_is_said_at_once(
    running: tuple[Box, str, int], project: Path, holdfast: Callable[..., Any]
) -> None:
    gpu1, run, port = running
    gpu1.link.refuse()
    done = holdfast("experiment", "forward", "-r", run, str(port), cwd=project, env=gpu1.environment)
    gpu1.link.accept()
    assert done.code == 245
    assert "cannot be reached: " in done.err
