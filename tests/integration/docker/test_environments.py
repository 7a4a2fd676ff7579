"""Environments for containers: built once in the image, by the user, found again at once, and never half of one."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from docker.benches import ContainerBench, container_bench  # noqa: F401 - a fixture
from runs.conftest import is_gone

from kit.conda_channel import Channel, python_module, python_package
from kit.docker.daemon import Daemon
from kit.docker.images import CUDA, MUSL, PLAIN, PYTHON
from kit.docker.pythons import Downloads
from kit.files import holding
from kit.package_server import Index, package_index
from kit.waiting import wait_for
from kit.wheels import make_wheel

SCRIPT = "import demo, sys\nprint(demo.__version__, sys.prefix, sys.version.split()[0])\n"
LONG = 180
"""Seconds, for a machine that has much else to do."""


@pytest.fixture
def kind() -> str:
    return "docker"


@pytest.fixture
def bench(container_bench: ContainerBench) -> ContainerBench:  # noqa: F811
    container_bench.target("userManagedEnvironment: false")
    container_bench.write("t.py", SCRIPT)
    return container_bench


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    make_wheel(tmp_path / "wheels", "demo", "1.2")
    return tmp_path / "wheels"


@pytest.fixture
def index(wheels: Path) -> Iterator[Index]:
    with package_index(wheels) as made:
        yield made


def wants(bench: ContainerBench, index: Index, *lines: str, python: str = "", login: str = "") -> None:
    pin = [f"  - python={python}"] if python else []
    below = [f"    - {each}" for each in (f"--index-url {index.url(login)}", *(lines or ("demo",)))]
    bench.write("aml_config/conda_dependencies.yml", "\n".join(["dependencies:", *pin, "  - pip:", *below, ""]))


def built(bench: ContainerBench) -> list[Path]:
    return sorted(each.parent for each in (bench.home / "environments").glob("*/.complete"))


def mark(path: Path) -> dict[str, Any]:
    found = json.loads((path / ".complete").read_text())
    assert isinstance(found, dict)
    return found


def commands(bench: ContainerBench, run_id: str) -> list[str]:
    """What was run to prepare it."""
    log = bench.far(run_id) / "control_log"
    return [line for line in log.read_text().splitlines() if line.startswith("$ ")] if log.exists() else []


def test_files_of_the_environment_are_the_users_and_links_into_the_package_cache(
    bench: ContainerBench, index: Index
) -> None:
    wants(bench, index)

    assert bench.submit("t.py").code == 0

    (environment,) = built(bench)
    for path in (environment, *environment.rglob("*")):
        assert path.lstat().st_uid == bench.uid, path
    module = next(environment.rglob("demo.py"))
    assert module.stat().st_nlink > 1, "it is a copy"
    assert module.stat().st_mode & 0o222 == 0
    assert mark(environment)["image"] == bench.daemon.inspect(PYTHON)["Id"]


def test_an_environment_that_is_there_is_found_without_a_container(bench: ContainerBench, index: Index) -> None:
    wants(bench, index)
    bench.submit("t.py")

    done = bench.submit("t.py")

    assert done.code == 0, done.err
    first, second = bench.ids()
    assert len(commands(bench, first)) == 3
    assert commands(bench, second) == []
    assert bench.event(second, "environment")["built"] is False


def test_bytecode_is_kept_for_the_next_run(bench: ContainerBench, index: Index) -> None:
    wants(bench, index)
    bench.submit("t.py")

    (environment,) = built(bench)
    assert [each.name for each in environment.rglob("demo.*.pyc")] != []


def test_an_image_without_python_gets_one_from_uv(
    bench: ContainerBench, index: Index, python_downloads: Downloads
) -> None:
    bench.target("userManagedEnvironment: false", image=PLAIN)
    wants(bench, index, python="3.11")

    done = bench.submit("t.py", env=python_downloads.environment)

    assert done.code == 0, done.err
    assert done.out.split()[2] == python_downloads.version
    (environment,) = built(bench)
    assert str(mark(environment)["interpreter"]).startswith(f"{bench.home}/pythons/")
    wants(bench, index)
    again = bench.submit("t.py")
    assert again.code == 0, f"without a pin what was brought is used: {again.err}"
    assert "image" not in mark(environment)


def test_an_environment_with_a_brought_python_serves_other_images_and_the_machine(
    bench: ContainerBench, index: Index, python_downloads: Downloads
) -> None:
    bench.target("userManagedEnvironment: false", image=PLAIN)
    wants(bench, index, python="3.11")
    assert bench.submit("t.py", env=python_downloads.environment).code == 0
    bench.daemon.run("tag", PLAIN, "other/plain")
    container = bench.daemon.run("create", PLAIN, "true").stdout.strip()
    bench.daemon.run("commit", "--change", "LABEL other=1", container, "other/plain")
    bench.daemon.run("rm", container)
    try:
        bench.target("userManagedEnvironment: false", image="other/plain")
        done = bench.submit("t.py")
    finally:
        bench.daemon.run("rmi", "-f", "other/plain", check=False)

    assert done.code == 0, done.err
    assert len(built(bench)) == 1
    assert commands(bench, bench.ids()[-1]) == []


def test_one_that_was_made_for_the_machine_is_not_taken_for_a_container(bench: ContainerBench, index: Index) -> None:
    wants(bench, index)
    bench.write("aml_config/here.compute", "type: local\nuserManagedEnvironment: false\n")
    bench.write("aml_config/here.runconfig", "Target: here\nFramework: Python\n")
    here = bench.run("submit", "-c", "here", "t.py")
    assert here.code == 0, here.err

    done = bench.submit("t.py")

    assert done.code == 0, done.err
    assert len(built(bench)) == 2
    assert done.out.split()[1] != here.out.split()[1]


def test_one_more_package_is_built_on_what_the_cache_has(bench: ContainerBench, index: Index, wheels: Path) -> None:
    wants(bench, index)
    bench.submit("t.py")
    make_wheel(wheels, "more", "2.0")
    wants(bench, index, "demo", "more")

    assert bench.submit("t.py").code == 0

    first, second = (next(each.rglob("demo.py")).stat().st_ino for each in built(bench))
    assert first == second


def test_a_password_of_an_index_goes_through_a_pipe_and_nowhere_else(bench: ContainerBench, wheels: Path) -> None:
    seen: list[str] = []

    def look() -> None:
        names = bench.containers()
        seen.append(bench.daemon.run("inspect", *names).stdout if names else "")
        seen.extend(_command_lines())

    with package_index(wheels, "me:hunter2-hunter2", look) as index:
        wants(bench, index, login="me:hunter2-hunter2")
        done = bench.submit("t.py")

    assert done.code == 0, done.err
    assert any('"Image"' in each for each in seen), "nobody looked while it was built"
    assert not [each for each in seen if "hunter2" in each]
    assert [path for path in holding("hunter2-hunter2", bench.home) if "work" not in path.parts] == []


def _command_lines() -> Iterator[str]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                yield (entry / "cmdline").read_text(errors="replace")
            except OSError:
                continue


class Held:
    """Holds the index's answers back until it is let go."""

    def __init__(self) -> None:
        self.reached, self.go = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        self.go.wait(LONG)


@pytest.fixture
def held(wheels: Path) -> Iterator[tuple[Held, Index]]:
    gate = Held()
    with package_index(wheels, at_request=gate) as index:
        try:
            yield gate, index
        finally:
            gate.go.set()


def left_of(bench: ContainerBench) -> list[str]:
    folder = bench.home / "environments"
    return [each.name for each in folder.iterdir() if each.is_dir()] if folder.is_dir() else []


def test_the_machines_own_settings_for_packages_count_inside(
    bench: ContainerBench, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    settings = Path(os.environ["HOME"]) / ".config" / "pip" / "pip.conf"
    settings.parent.mkdir(parents=True)
    settings.write_text(f"[global]\nno-index = true\nfind-links = {wheels}\n")
    bench.write("aml_config/conda_dependencies.yml", "dependencies:\n  - pip:\n    - demo\n")

    done = bench.submit("t.py")

    assert done.code == 0, done.err
    assert done.out.startswith("1.2 ")


def test_canceling_a_build_leaves_no_container_and_no_half_environment(
    bench: ContainerBench, held: tuple[Held, Index]
) -> None:
    gate, index = held
    wants(bench, index)
    run_id = bench.start("t.py")
    assert gate.reached.wait(LONG)
    assert bench.containers() == [f"{bench.container(run_id)}-room"]

    assert bench.run("cancel", "-r", run_id, "--grace", "1s").code == 0

    assert bench.record()["reason"] == "canceled"
    wait_for(lambda: bench.containers() == [])
    assert left_of(bench) == []


def test_killing_whoever_builds_ends_the_container_too(bench: ContainerBench, held: tuple[Held, Index]) -> None:
    gate, index = held
    wants(bench, index)
    run_id = bench.start("t.py")
    assert gate.reached.wait(LONG)
    guardian, supervisor = (bench.holder(run_id, byte) for byte in (0, 1))

    for pid in (guardian, supervisor):
        os.kill(pid, signal.SIGKILL)

    wait_for(lambda: is_gone(supervisor) and bench.containers() == [])
    gate.go.set()
    assert bench.submit("t.py").code == 0, "the next run builds it anew"


def test_a_container_that_somebody_removes_during_the_build_is_said_so(
    bench: ContainerBench, held: tuple[Held, Index]
) -> None:
    gate, index = held
    wants(bench, index)
    run_id = bench.start("t.py")
    assert gate.reached.wait(LONG)

    bench.daemon.run("rm", "-f", f"{bench.container(run_id)}-room")
    ended = bench.event(run_id, "ended")

    assert ended["reason"] == "preparation"
    assert "the container in which it was built is gone" in ended["detail"]
    assert left_of(bench) == []


def test_a_musl_image_without_python_is_a_clear_refusal(
    bench: ContainerBench, index: Index, python_downloads: Downloads
) -> None:
    bench.target("userManagedEnvironment: false", image=MUSL)
    wants(bench, index, python="3.11")

    done = bench.submit("t.py", env=python_downloads.environment)

    assert done.code != 0
    assert f"the image `{MUSL}` has no Python 3.11" in done.err, done.err
    wait_for(lambda: bench.containers() == [])


@pytest.fixture
def channel(tmp_path: Path) -> Channel:
    return Channel(tmp_path / "channel", python_package(), python_module("greet", "1.2"))


def test_conda_packages_are_installed_in_the_image(bench: ContainerBench, channel: Channel) -> None:
    bench.write(
        "aml_config/conda_dependencies.yml",
        f"channels:\n  - {channel.url}\n  - nodefaults\ndependencies:\n  - greet\n",
    )
    bench.write("t.py", "import greet, sys\nprint(greet.__file__.startswith(sys.prefix), sys.prefix)\n")

    done = bench.submit("t.py", timeout=300)

    assert done.code == 0, done.err
    assert done.out.startswith("True " + str(bench.home))
    wait_for(lambda: bench.containers() == [])


def test_environments_of_images_are_listed_shown_and_removed_as_others(bench: ContainerBench, index: Index) -> None:
    wants(bench, index)
    bench.submit("t.py")
    (environment,) = built(bench)

    (listed,) = json.loads(bench.run("environment", "list", "-t", "box", "-o", "json").out)
    assert (listed["id"], listed["state"]) == (environment.name, "ready")
    shown = json.loads(bench.run("environment", "show", environment.name, "-t", "box", "-o", "json").out)
    assert (shown["state"], shown["installed"]) == ("ready", ["demo==1.2"])
    checked = bench.run("environment", "check", "-c", "box")
    assert checked.code == 0, checked.err
    assert environment.name[:8] in checked.out
    assert bench.run("environment", "remove", environment.name, "-t", "box", "--yes").code == 0
    assert built(bench) == []


def test_a_shell_in_such_an_environment_is_one_in_its_image(bench: ContainerBench, index: Index) -> None:
    wants(bench, index)
    bench.submit("t.py")
    (environment,) = built(bench)
    show = "import demo, os, sys; print(demo.__version__, sys.prefix, os.getuid(), os.path.exists('/.dockerenv'))"
    expected = f"1.2 {environment} {bench.uid} True\n"

    by_id = bench.run("environment", "shell", "-t", "box", environment.name, "python", "-c", show)
    by_target = bench.run("experiment", "shell", "-c", "box", "python", "-c", show)
    code = bench.run("environment", "shell", "-t", "box", environment.name, "sh", "-c", "exit 7")

    assert (by_id.code, by_id.out) == (0, expected), by_id.err
    assert (by_target.code, by_target.out) == (0, expected), by_target.err
    assert code.code == 7
    wait_for(lambda: bench.containers() == [])


def test_a_shell_of_a_run_is_in_its_container_as_long_as_that_lives(bench: ContainerBench, index: Index) -> None:
    wants(bench, index)
    bench.write("t.py", "import time\nprint('up', flush=True)\ntime.sleep(1000)\n")
    run_id = bench.start("t.py")
    wait_for(lambda: (bench.far(run_id) / "driver_log").read_text() == "up\n")
    show = "import demo, os; print(demo.__version__, os.environ['HOLDFAST_RUN_ID'], os.getcwd())"

    inside = bench.run("experiment", "shell", "-r", run_id, "python", "-c", show)
    bench.run("cancel", "-r", run_id, "--grace", "0s")
    after = bench.run("experiment", "shell", "-r", run_id, "true")

    assert inside.out == f"1.2 {run_id} {bench.far(run_id)}/work\n", inside.err
    assert after.code != 0
    assert "has ended, so there is nothing to enter" in after.err


def test_what_was_compiled_for_one_image_is_not_taken_for_another(
    bench: ContainerBench, index: Index, wheels: Path, python_downloads: Downloads
) -> None:
    make_wheel(wheels, "native", "1.0").rename(wheels / "native-1.0-py3-none-linux_x86_64.whl")
    _retag(wheels / "native-1.0-py3-none-linux_x86_64.whl")
    wants(bench, index, "demo", "native", python="3.11")
    environments = []
    for image in (PLAIN, CUDA):
        bench.target("userManagedEnvironment: false", image=image)
        done = bench.submit("t.py", env=python_downloads.environment)
        assert done.code == 0, done.err
        environments.append(done.out.split()[1])

    assert len(set(environments)) == 2


def _retag(wheel: Path) -> None:
    import zipfile

    with zipfile.ZipFile(wheel) as source:
        contents = {name: source.read(name) for name in source.namelist()}
    with zipfile.ZipFile(wheel, "w") as target:
        for name, data in contents.items():
            target.writestr(name, data.replace(b"py3-none-any", b"py3-none-linux_x86_64"))


def test_environments_are_for_the_user_behind_ssh_too(
    docker_box: Callable[..., Any], tmp_path: Path, holdfast: Callable[..., Any], index: Index, docker: Daemon
) -> None:
    box = docker_box()
    root = tmp_path / "project"
    root.mkdir()
    owner = box.account.home.stat()
    bench = ContainerBench(
        root, box.home, holdfast, docker, "remotedocker", owner.st_uid, owner.st_gid, box.environment,
        address=box.compute.partition("\n")[2],
    )  # fmt: skip
    bench.target("userManagedEnvironment: false")
    bench.write("t.py", SCRIPT)
    wants(bench, index)

    done = bench.submit("t.py")

    assert done.code == 0, done.err
    (environment,) = built(bench)
    assert {path.lstat().st_uid for path in environment.rglob("*")} == {owner.st_uid}


def test_a_docker_that_is_restarted_during_the_build_is_said_so(
    bench: ContainerBench, held: tuple[Held, Index], private_daemon: Callable[..., Daemon]
) -> None:
    gate, index = held
    daemon = private_daemon()
    wants(bench, index)
    run_id = bench.start("t.py", env=daemon.environment)
    assert gate.reached.wait(LONG)

    daemon.restart()
    gate.go.set()
    ended = bench.event(run_id, "ended")

    assert ended["reason"] == "preparation"
    assert "the container in which it was built is gone" in ended["detail"]
    assert left_of(bench) == []
    wait_for(lambda: daemon.containers() == [])
