"""Environments for containers: built once in the image, by the user, and found again at once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.docker.benches import ContainerBench, container_bench  # noqa: F401 - a fixture
from integration.docker.environment_runs import SCRIPT, built, environment_bench, wants  # noqa: F401 - a fixture
from kit.conda_channel import Channel, python_module, python_package
from kit.docker.daemon import Daemon
from kit.docker.images import CUDA, MUSL, PLAIN, PYTHON
from kit.docker.pythons import Downloads
from kit.files import holding
from kit.package_server import Index, package_index
from kit.waiting import wait_for
from kit.wheels import make_wheel


def mark(path: Path) -> dict[str, Any]:
    found = json.loads((path / ".complete").read_text())
    assert isinstance(found, dict)
    return found


def commands(bench: ContainerBench, run_id: str) -> list[str]:
    """The commands that prepared it."""
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
    assert any('"Image"' in each for each in seen), "no look while it was built"
    assert not [each for each in seen if "hunter2" in each]
    assert [path for path in holding("hunter2-hunter2", bench.home) if "work" not in path.parts] == []


def _command_lines() -> Iterator[str]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                yield (entry / "cmdline").read_text(errors="replace")
            except OSError:
                continue


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

    project = bench.far(run_id).joinpath("work", "above", "above", "above", "project")
    assert inside.out == f"1.2 {run_id} {project}\n", inside.err
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
