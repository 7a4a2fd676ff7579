"""The container of a build: what it gets, how commands run in it, and that it never outlives its run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.containers import docker_options, room
from holdfast.farside.containers.daemon import parse_info
from holdfast.farside.containers.images import Image
from holdfast.farside.environments.workshop import Result
from holdfast.farside.system.layout import Home
from holdfast.farside.system.programs import Finished
from holdfast.farside.system.refusal import Refused

IMAGE = Image(
    "sha256:" + "ab" * 32, "debian", "x86_64", "linux-x86_64-glibc2.36", {"UV_SYSTEM_PYTHON": "1"}, (), "", ""
)  # fmt: skip
WANTED = docker_options.WantedContainer(
    "debian", "debian", None, ("--network", "bridge"), None, (), "/azureml-share/", "holdfast-p_1",
    (("holdfast.run", "p_1"),), None, "box.compute",
)  # fmt: skip


class Engine:
    """Records its calls; `answers` by the first word."""

    program = "docker"

    def __init__(self, **answers: Finished) -> None:
        self.environment = {"PATH": "/usr/bin"}
        self.asked: list[list[str]] = []
        self.answers = answers

    def call(self, words: list[str], patience: float = 0.0) -> Finished:
        self.asked.append(list(words))
        return self.answers.get(words[0], Finished(0, "true\n", ""))

    def argv(self, words: list[str]) -> list[str]:
        return ["docker", *words]

    def attended_by(self, attended: Any) -> Engine:
        return self

    def daemon(self, home: Home) -> Any:
        return parse_info({})

    def made(self) -> list[str]:
        (words,) = [each for each in self.asked if each[0] == "run"]
        return words


@pytest.fixture
def home(home: Home) -> Home:
    os.mkdir(home.cache())
    return home


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def container(engine: Engine, home: Home, tmp_path: Path) -> room.RoomContainer:
    return make(engine, home, tmp_path)


def make(engine: Any, home: Home, folder: Path) -> room.RoomContainer:
    return room.RoomContainer(engine, IMAGE, WANTED, home, str(folder))


def mount_fields(words: list[str]) -> list[list[str]]:
    return [words[place + 1].split(",") for place, word in enumerate(words) if word == "--mount"]


def mounts(words: list[str]) -> dict[str, bool]:
    """Each mounted path, and whether it may be written to."""
    return {
        each[1 if each[0] == "type=tmpfs" else 2].partition("=")[2]: "readonly" not in each
        for each in mount_fields(words)
    }


def test_nothing_is_started_before_a_command_is_run_and_one_container_serves_all_commands(container, engine, tmp_path):
    with container:
        container.reach(["--find-links /nowhere"])
        assert engine.asked == []
        assert not (tmp_path / room.FIFO).exists()
        container.start(["uv", "venv"], {}, None)
        container.start(["uv", "pip"], {}, None)

    assert [words[0] for words in engine.asked] == ["run"]


def test_the_home_is_one_mount_so_that_files_can_be_hard_links(container, engine, home):
    container.start(["uv"], {}, None)

    found = mounts(engine.made())
    assert found[home.path] is True
    assert not [path for path in found if path.startswith((home.cache(), home.environments(), home.pythons()))]
    assert engine.made()[engine.made().index("--network") + 1] == "bridge"
    assert "holdfast.run=p_1" in engine.made()
    assert f"holdfast.home={home.path}" in engine.made()


def test_of_the_home_a_build_writes_to_nothing_that_is_run_outside_of_containers(engine, home):
    for name in ("runs/p/r/work", "runs/p/other", "farside", "tools", "keys", "objects", "container-home"):
        os.makedirs(os.path.join(home.path, name))
    Path(home.path, "settings.json").touch()

    make(engine, home, Path(home.run("p", "r"))).start(["uv"], {}, None)

    kinds = {each[1].partition("=")[2]: each[0] for each in mount_fields(engine.made()) if each[0] == "type=tmpfs"}
    for name in ("runs", "farside", "keys", "objects", "container-home"):
        assert kinds[os.path.join(home.path, name)] == "type=tmpfs"
    found = mounts(engine.made())
    assert [found[os.path.join(home.path, each)] for each in ("tools", "settings.json")] == [False, False]
    shown = {path.partition(home.run("p", "r") + "/")[2] for path, is_writable in found.items() if is_writable}
    assert {each for each in shown if each} == {"work", "build", "room.fifo"}


def test_a_cache_on_another_disk_is_mounted_where_it_is(engine, home, tmp_path):
    elsewhere = tmp_path / "scratch"
    elsewhere.mkdir()
    Path(home.cache()).rmdir()
    Path(home.cache()).symlink_to(elsewhere)

    make(engine, home, tmp_path).start(["uv"], {}, None)

    assert mounts(engine.made())[str(elsewhere)] is True


def test_files_that_the_spec_and_the_settings_name_are_seen_in_it(container, engine, tmp_path):
    wheels, index, bundle = tmp_path / "my wheels", tmp_path / "index", tmp_path / "ca.pem"
    for each in (wheels, index):
        each.mkdir()
    bundle.touch()

    found_links = f"--find-links file://{tmp_path}/my%20wheels"
    container.reach([found_links, f"--extra-index-url={index}", str(bundle), "/etc", "/nowhere/x"])
    container.start(["uv"], {}, None)

    found = mounts(engine.made())
    assert [found.get(str(each)) for each in (wheels, index, bundle)] == [False, False, False]
    assert "/etc" not in found
    assert "/nowhere/x" not in found


def test_settings_that_uv_reads_by_itself_go_with_it(container, engine, isolated):
    settings = isolated / ".config" / "uv" / "uv.toml"
    settings.parent.mkdir(parents=True)
    settings.touch()
    (isolated / ".netrc").touch()

    container.reach([])
    line = container.start(["uv"], {}, None).given

    assert mounts(engine.made())[str(settings)] is False
    assert f"export NETRC='{isolated}/.netrc'".encode() in line
    assert f"export XDG_CONFIG_HOME='{isolated}/.config'".encode() in line


def test_what_is_about_packages_passes_and_all_else_is_the_images_own(container):
    container.reach(["--index-url https://${TOKEN}@host/simple"])
    given = {
        "UV_DEFAULT_INDEX": "a",
        "UV_PYTHON": "/usr/bin/python3",
        "https_proxy": "b",
        "NO_PROXY": "c",
        "SSL_CERT_FILE": "d",
        "TOKEN": "e",
        "PATH": "f",
        "LD_LIBRARY_PATH": "g",
        "HOME": "h",
    }
    assert set(container.passes(given)) == {"UV_DEFAULT_INDEX", "https_proxy", "NO_PROXY", "SSL_CERT_FILE", "TOKEN"}


def test_variables_stand_in_no_argument(container, engine):
    begun = container.start(["uv", "pip", "sync"], {"UV_DEFAULT_INDEX": "https://me:hunter2@host/"}, b"more")

    assert all("hunter2" not in word for word in begun.argv + engine.made())
    assert begun.argv[-3:] == ["uv", "pip", "sync"]
    line, _, rest = begun.given.partition(b"\n")
    assert b"hunter2" in line
    assert rest == b"more"
    assert line.startswith(b"unset UV_SYSTEM_PYTHON; ")


VALUES = (
    *("plain", "it's", 'a "b" $HOME `id` $(id)', "back\\slash \\n \\0101", "two\nlines\n", "tab\t", "grüße €", "%s %b"),
    *("", "-n"),
)


def entered(line: bytes, script: str) -> subprocess.CompletedProcess[bytes]:
    """A command as it is run in the container, `line` at its standard input."""
    argv = ["/bin/sh", "-c", room._ENTER, "holdfast", "/bin/sh", "-c", script]
    environment = {"GONE": "there", "PATH": os.environ["PATH"]}
    return subprocess.run(argv, input=line, capture_output=True, env=environment, check=False)


def test_a_shell_gets_back_what_was_written_for_it():
    given = {f"VALUE{number}": value for number, value in enumerate(VALUES)}
    line = room.header({**given, "not a name": "x"}, ["GONE"]) + b"rest\n"
    done = entered(line, 'printf "%s|" ' + " ".join(f'"${name}"' for name in given) + ' "$GONE"; cat')
    assert done.stdout.decode().split("|") == [*VALUES, "", "rest\n"]
    assert (done.returncode, done.stderr) == (0, b"")


def test_both_streams_of_a_command_stay_in_order():
    done = entered(room.header({}, []), "echo a; echo b >&2; echo c; exit 7")
    assert (done.returncode, done.stdout) == (7, b"a\nb\nc\n")


@pytest.mark.parametrize(
    ("words", "expected"),
    [([], "host"), (["--network", "bridge"], "bridge"), (["--network=mine"], "mine"), (["--network", "none"], "host")],
)
def test_a_build_has_the_targets_network_and_one_in_any_case(words, expected):
    assert room.network(words) == expected


def test_the_first_process_ends_when_the_pipe_has_no_holder(container, tmp_path):
    container.start(["uv"], {}, None)
    fifo = tmp_path / room.FIFO
    with stays(fifo) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.1)
        container.__exit__(None, None, None)
        process.wait(60)

    assert not fifo.exists()


def stays(fifo: Path) -> subprocess.Popen[bytes]:
    """The first process of the container."""
    return subprocess.Popen(["/bin/sh", "-c", room._STAY, "holdfast", str(fifo)], stderr=subprocess.DEVNULL)


def test_the_first_process_ends_at_once_where_who_held_the_pipe_died_before_it_came(tmp_path):
    fifo = tmp_path / room.FIFO
    os.mkfifo(fifo)
    assert stays(fifo).wait(60) == 1
    fifo.unlink()
    assert stays(fifo).wait(60) != 0


@pytest.mark.parametrize(
    ("said", "words", "asked"),
    [
        ('Conflict. The container name "/holdfast-p_1-room" is already in use by x.', "already", ["run"]),
        ("no space left on device.", "prune", ["run", "rm"]),
    ],
)
def test_a_container_that_cannot_be_made_is_said_so_and_anothers_of_its_name_is_not_removed(
    home, tmp_path, said, words, asked
):
    engine = Engine(run=Finished(125, "", f"docker: Error response from daemon: {said}"))
    with pytest.raises(Refused, match=words) as refused, make(engine, home, tmp_path) as container:
        container.start(["uv"], {}, None)
    assert "docker rm" not in refused.value.message
    assert [words[0] for words in engine.asked] == asked


def test_a_build_that_is_ended_takes_the_container_with_it(container, engine, tmp_path):
    with pytest.raises(KeyboardInterrupt), container:
        container.start(["uv"], {}, None)
        raise KeyboardInterrupt

    assert engine.asked[-1] == ["rm", "-f", "holdfast-p_1-room"]
    assert not (tmp_path / room.FIFO).exists()


def test_a_program_that_was_killed_in_it_was_ended_by_a_signal(container, monkeypatch):
    monkeypatch.setattr(room, "SETTLING", 0.0)
    assert container.ended(Result(137, "x", None)) == Result(None, "x", 9)
    assert container.ended(Result(1, "x", None)) == Result(1, "x", None)
    assert container.ended(Result(0, "x", None)).code == 0


def test_a_container_that_was_removed_meanwhile_is_said_so(home, tmp_path):
    gone = make(Engine(inspect=Finished(1, "", "Error: No such object: x")), home, tmp_path)
    with pytest.raises(Refused, match="is gone: it or Docker itself was stopped") as refused:
        gone.ended(Result(137, "", None))
    assert refused.value.kind == "preparation"


def test_a_container_that_docker_takes_for_running_a_moment_longer_is_said_so(container, monkeypatch):
    answers = iter([True, False])
    monkeypatch.setattr(container, "_is_there", lambda: next(answers))
    with pytest.raises(Refused, match="is gone"):
        container.ended(Result(137, "", None))


def test_a_closed_folder_is_passed_through_where_something_below_it_is_mounted(tmp_path):
    """Docker gives the empty folder in its place the same mode, and root as its owner."""
    for name in ("runs", "keys"):
        (tmp_path / name).mkdir(mode=0o700)
        room._let_through(str(tmp_path / name), [str(tmp_path / "runs" / "p" / "r" / "work")])
    modes = {name: (tmp_path / name).stat().st_mode & 0o777 for name in ("runs", "keys")}
    assert modes == {"runs": 0o711, "keys": 0o700}
