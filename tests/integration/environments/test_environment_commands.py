"""Environments from the command line: prepared, listed, shown, entered, removed, and those of other runs used again."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from integration.runs.conftest import Bench, bench  # noqa: F401 - a fixture
from kit import processes
from kit.waiting import wait_for

COMPUTE = "type: local\nuserManagedEnvironment: false\n"
RUNCONFIG = "Target: local\nFramework: Python\n"


def _spec(*packages: str) -> str:
    return "dependencies:\n  - pip:\n" + "".join(f"      - {package}\n" for package in packages)


@pytest.fixture
def managed(bench: Bench) -> Bench:  # noqa: F811
    bench.write("aml_config/local.compute", COMPUTE)
    bench.write("aml_config/local.runconfig", RUNCONFIG)
    bench.write("aml_config/conda_dependencies.yml", _spec("six==1.16.0"))
    bench.write("t.py", "import six\nprint(six.__version__)\n")
    bench.write("wait.py", "import time\nwhile True:\n    time.sleep(0.05)\n")
    return bench


def _listed(bench: Bench) -> Any:  # noqa: F811
    result = bench.run("environment", "list", "-o", "json")
    assert result.code == 0, result.err
    return json.loads(result.out)


def test_an_environment_is_prepared_without_a_run_and_then_is_there(managed: Bench) -> None:
    first = managed.run("experiment", "prepare", "-c", "local")
    assert first.code == 0, first.err
    (environment,) = _listed(managed)
    ready = f"Environment {environment['id'][:8]} is ready: Python {environment['python']}, 1 package, built in "
    assert ready in first.err
    assert first.err.startswith("RunId: "), first.err
    again = managed.run("experiment", "prepare", "-c", "local")
    assert f"Environment {environment['id'][:8]} was ready: Python {environment['python']}, 1 package.\n" in again.err
    assert json.loads(managed.run("history", "list", "-o", "json").out) == []
    result = managed.submit("-c", "local", "t.py")
    assert (result.code, result.out) == (0, "1.16.0\n"), result.err
    assert managed.record()["environment_built_in"] is None
    managed.run("experiment", "prepare", "-c", "local")
    assert managed.record()["script_name"] == "t.py", "the last run is not a preparation"


def test_a_preparation_that_fails_ends_as_a_run_would(managed: Bench) -> None:
    managed.write("aml_config/conda_dependencies.yml", _spec("six==0.0.0.1"))
    result = managed.run("experiment", "prepare", "-c", "local")
    assert result.code == 250
    assert "six==0.0.0.1" in result.err
    assert "holdfast logs -r" in result.err
    run_id = result.err.split("holdfast logs -r ")[1].split()[0]
    assert "pip compile" in managed.run("logs", "-r", run_id, "--control").out


def test_another_file_can_be_prepared_and_rebuilt(managed: Bench) -> None:
    managed.write("other.txt", "six==1.15.0\n")
    assert managed.run("experiment", "prepare", "-d", "other.txt").code == 0
    (environment,) = _listed(managed)
    result = managed.run("experiment", "prepare", "-d", "other.txt", "--rebuild")
    assert "is ready" in result.err, result.err
    (again,) = _listed(managed)
    assert again["id"] == environment["id"]
    assert again["built_utc"] > environment["built_utc"]


@pytest.mark.parametrize(
    "words", [("experiment", "prepare"), ("submit", "--rebuild", "t.py"), ("submit", "--upgrade", "t.py")]
)
def test_where_ones_own_python_is_used_there_is_nothing_to_build(managed: Bench, words: tuple[str, ...]) -> None:
    (managed.root / "aml_config/local.compute").unlink()
    result = managed.run(*words)
    assert result.code == 242
    assert "there is no environment to prepare" in result.err


def test_the_environment_of_a_run_is_used_again_after_its_spec_changed_and_its_lock_moved_on(managed: Bench) -> None:
    assert managed.submit("t.py").out == "1.16.0\n"
    lock = json.loads((managed.near(managed.record()["run_id"]) / "environment.json").read_text())
    managed.write("aml_config/conda_dependencies.yml", _spec("six"))
    plan = json.loads(managed.submit("--dry-run", "t.py", "-o", "json").out)
    folder = managed.root / ".holdfast" / "locks" / plan["environment"]["spec"]
    folder.mkdir(parents=True)
    name = f"{lock['platform']}-{'.'.join(lock['python'].split('.')[:2])}.json"
    (folder / name).write_text(json.dumps({**lock, "spec": plan["environment"]["spec"]}))  # as of a day long ago

    assert managed.submit("t.py").out == "1.16.0\n"
    wanted = managed.record()["run_id"]
    upgraded = managed.submit("--upgrade", "t.py")
    assert upgraded.out != "1.16.0\n", upgraded.err
    assert managed.submit("t.py").out == upgraded.out, "the new lock is what the spec means now"

    managed.write("aml_config/conda_dependencies.yml", _spec("idna==3.7"))
    again = managed.submit("--environment-of", wanted, "t.py")
    assert (again.code, again.out) == (0, "1.16.0\n"), again.err
    assert managed.record()["environment"] == managed.record(wanted)["environment"]

    assert managed.run("environment", "remove", "--all", "--yes").code == 0
    assert _listed(managed) == []
    rebuilt = managed.submit("--environment-of", wanted, "t.py")
    assert (rebuilt.code, rebuilt.out) == (0, "1.16.0\n"), rebuilt.err
    assert managed.record()["environment"] == managed.record(wanted)["environment"]
    assert managed.record()["environment_built_in"] > 0


def test_the_environment_of_a_run_comes_from_the_indexes_that_it_came_from(managed: Bench) -> None:
    wheels = managed.root / "wheels"
    wheels.mkdir()
    _wheel(wheels, "greet", "1.0")
    managed.write("aml_config/conda_dependencies.yml", _spec("--find-links ../wheels", "greet"))
    managed.write("g.py", "import greet\nprint(greet.NAME)\n")
    assert managed.submit("g.py").out == "greet 1.0\n"
    wanted = managed.record()["run_id"]
    managed.write("aml_config/conda_dependencies.yml", _spec("six==1.16.0"))
    assert managed.run("environment", "remove", "--all", "--yes").code == 0
    again = managed.submit("--environment-of", wanted, "g.py")
    assert (again.code, again.out) == (0, "greet 1.0\n"), again.err


def test_wishes_that_contradict_each_other_are_refused(managed: Bench) -> None:
    for words in (("--upgrade",), ("-d", "x.yml")):
        result = managed.submit("--environment-of", "last", *words, "t.py")
        assert result.code == 240
        assert "Leave out one of them" in result.err
    managed.write("aml_config/local.compute", "type: local\n")
    (managed.root / "aml_config/conda_dependencies.yml").unlink()
    managed.write("own.py", "print('own')\n")
    assert managed.submit("own.py").out == "own\n"
    result = managed.submit("--environment-of", "last", "own.py")
    assert result.code == 246
    assert f"`{managed.record()['run_id']}` has no environment that could be used again" in result.err


def test_what_is_there_can_be_listed_shown_and_removed(managed: Bench) -> None:
    assert managed.run("environment", "list", "-o", "table").err.startswith("No environment is on this machine.")
    managed.submit("t.py")
    run_id = managed.record()["run_id"]
    (environment,) = _listed(managed)
    assert (environment["state"], environment["packages"]) == ("ready", 1)
    assert 0 < environment["own_size"] <= environment["size"]
    query = managed.run("environment", "list", "-o", "tsv", "--query", "[].[id, python]")
    assert query.out == f"{environment['id']}\t{environment['python']}\n"
    table = managed.run("environment", "list", "-o", "table").out
    assert environment["id"][:8] in table
    assert environment["id"] not in table

    shown = json.loads(managed.run("environment", "show", environment["id"][:6], "-o", "json").out)
    assert shown["installed"] == ["six==1.16.0"]
    assert shown["lock"]["requirements"].startswith("six==1.16.0")
    assert [(run["run_id"], run["is_alive"]) for run in shown["runs"]] == [(run_id, False)]
    page = managed.run("environment", "show", environment["id"][:6], "-o", "table").out
    assert shown["path"] in page
    assert run_id in page

    unknown = managed.run("environment", "show", "nosuch")
    assert unknown.code == 240
    assert environment["id"] in unknown.err
    removed = managed.run("environment", "remove", environment["id"][:4])
    assert removed.code == 0, removed.err
    assert "freed" in removed.err
    assert _listed(managed) == []


def test_several_are_not_removed_without_a_confirmation(managed: Bench) -> None:
    managed.run("experiment", "prepare")
    managed.write("other.txt", "six==1.15.0\n")
    managed.run("experiment", "prepare", "-d", "other.txt")
    result = managed.run("environment", "remove", "--all")
    assert result.code == 240
    assert "Removing several environments needs" in result.err
    assert len(_listed(managed)) == 2
    assert managed.run("environment", "remove").code == 240
    assert managed.run("environment", "remove", "--all", "-y").code == 0
    assert _listed(managed) == []


def test_what_a_run_or_a_shell_holds_is_not_removed(managed: Bench) -> None:
    run_id = managed.start("wait.py")
    managed.event(run_id, "started")
    (environment,) = _listed(managed)
    assert environment["state"] == "in use"
    refused = managed.run("environment", "remove", environment["id"])
    assert refused.code == 246
    assert "in use" in refused.err
    assert "freed" not in refused.err
    shown = json.loads(managed.run("environment", "show", environment["id"], "-o", "json").out)
    assert [run["is_alive"] for run in shown["runs"]] == [True]
    managed.run("cancel", "-r", run_id, "--grace", "0")
    assert _listed(managed)[0]["state"] == "ready"

    shell = managed.popen("environment", "shell", environment["id"], "sh", "-c", "echo in; exec sleep 300")
    try:
        assert shell.stdout is not None
        assert shell.stdout.readline() == b"in\n"
        assert managed.run("environment", "remove", environment["id"]).code == 246
    finally:
        children = _children(shell.pid)  # they cannot be found once it has ended
        shell.send_signal(signal.SIGTERM)
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        shell.communicate()
    wait_for(lambda: _listed(managed)[0]["state"] == "ready")
    assert managed.run("environment", "remove", environment["id"]).code == 0


def test_a_shell_is_inside_the_environment_and_passes_the_code_on(managed: Bench) -> None:
    early = managed.run("experiment", "shell", "-c", "local", "true")
    assert early.code == 242
    assert "holdfast experiment prepare -c local" in early.err
    managed.run("experiment", "prepare")
    (environment,) = _listed(managed)
    unknown, shown = (managed.run("environment", word, "zzz") for word in ("shell", "show"))
    assert (unknown.code, unknown.err) == (240, shown.err)
    assert environment["id"] in unknown.err
    question = ("python", "-c", "import os, six, sys; print(sys.prefix, os.getcwd()); sys.exit(7)")
    result = managed.run("environment", "shell", environment["id"][:5], *question)
    place = managed.home / "environments" / environment["id"]
    assert (result.code, result.out) == (7, f"{place} {managed.root}\n"), result.err
    meant = managed.run("experiment", "shell", "-c", "local", *question)
    assert (meant.code, meant.out.split()[0]) == (7, str(place)), meant.err


def test_environments_go_by_age_and_by_a_limit_for_the_disk(managed: Bench) -> None:
    managed.write("other.txt", "six==1.15.0\n")
    managed.run("experiment", "prepare", "-d", "other.txt")
    (old,) = _listed(managed)
    os.utime(managed.home / "environments" / f"{old['id']}.lock", (1e9, 1e9))
    managed.run("experiment", "prepare")
    new = next(each for each in _listed(managed) if each["id"] != old["id"])

    kept = managed.run("experiment", "clean", "--environments", "--keep", "10GB")
    assert "0 removed" in kept.err, kept.err
    by_age = managed.run("experiment", "clean", "--environments", "--older-than", "30d")
    assert f"removed environment {old['id']}" in by_age.err, by_age.err
    assert [each["id"] for each in _listed(managed)] == [new["id"]]
    assert (managed.home / "cache").exists()
    by_size = managed.run("experiment", "clean", "--environments", "--keep", "1kB")
    assert f"removed environment {new['id']}" in by_size.err, by_size.err
    assert not list((managed.home / "locks").glob("*.id"))
    assert managed.submit("t.py").out == "1.16.0\n", "what was dropped from the cache comes again"
    assert managed.run("experiment", "clean", "--all", "--keep", "1GB").code == 240


def test_a_target_that_cannot_be_cleaned_does_not_keep_this_machine_from_it(managed: Bench) -> None:
    managed.run("experiment", "prepare")
    managed.write("aml_config/gone.compute", "type: remote\naddress: 127.0.0.1:1\nusername: me\n")
    managed.write("aml_config/wrong.compute", "type: nothing\n")
    managed.write("aml_config/later.compute", "type: cluster\naddress: x\n")
    result = managed.run("experiment", "clean", "--environments")
    assert result.code == 0, result.err
    assert _listed(managed) == []
    assert "gone: unreachable" in result.err
    assert "wrong was left as it is" in result.err
    assert "later" not in result.err
    named = managed.run("experiment", "clean", "--environments", "-t", "gone")
    assert named.code == 245
    assert "freed" not in named.err


def _children(pid: int) -> list[int]:
    """Of a client: the process that replaces the terminal."""
    return [one.pid for one in processes.every() if one.parent == pid]


def _wheel(folder: Path, name: str, version: str) -> None:
    import zipfile

    base = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}.py", f"NAME = '{name} {version}'\n")
        wheel.writestr(f"{base}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(
            f"{base}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{base}/RECORD", f"{name}.py,,\n{base}/METADATA,,\n{base}/WHEEL,,\n{base}/RECORD,,\n")
