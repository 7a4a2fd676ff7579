"""A neighbour's files above the project, in a folder where everybody may make some: they decide nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from uv import find_uv_bin

from holdfast.environments.environment_plan import Wishes, plan_environment
from holdfast.environments.foreign_resolution import ForeignMachine, Installer, resolve_for, wheel_files
from holdfast.environments.uv_export import export_lock
from holdfast.plan import EnvironmentPlan, text
from holdfast.project.environment_spec import EnvironmentSpec, Requirement
from holdfast.project.packages_search import read_environment_spec
from holdfast.project.tracked_files import tracked_of
from holdfast.snapshots.git_files import revision
from holdfast.snapshots.ignore import explain, list_files
from kit.wheels import make_wheel

NEIGHBOUR = 23999
PROJECT = '[project]\nname = "p"\nversion = "1"\nrequires-python = ">=3.10"\ndependencies = ["six"]\n'
LOCK = f"""version = 1
requires-python = ">=3.10"

[[package]]
name = "six"
version = "1.17.0"
source = {{ registry = "https://h.example/simple" }}
wheels = [
    {{ url = "https://h.example/six-1.17.0-py3-none-any.whl", hash = "sha256:{"ab" * 32}" }},
]

[[package]]
name = "p"
version = "1"
source = {{ virtual = "." }}
dependencies = [
    {{ name = "six" }},
]
"""


class Sticky(NamedTuple):
    """A folder as /tmp is, with a project of this account in it."""

    folder: Path
    project: Path

    def planted(self, name: str, text: str) -> None:
        """By another account."""
        self.run("tee", name, given=text)

    def run(self, *words: str, given: str = "") -> None:
        account = {"user": NEIGHBOUR, "group": NEIGHBOUR, "extra_groups": []}
        subprocess.run(
            words,
            cwd=self.folder,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.folder)},
            input=given,
            text=True,
            check=True,
            capture_output=True,
            **account,  # type: ignore[call-overload]
        )


@pytest.fixture
def sticky(needs: Callable[..., None]) -> Iterator[Sticky]:
    needs("git", root=True)
    folder = Path(tempfile.mkdtemp(prefix="hfa-", dir="/tmp"))
    folder.chmod(0o1777)
    (folder / "p").mkdir()
    yield Sticky(folder, folder / "p")
    shutil.rmtree(folder)


HOMES = ["elsewhere", "beside the project", "none"]


def home_at(place: str, sticky: Sticky, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Holdfast's folder; where it is missing, temporary folders are beside the project."""
    monkeypatch.setattr(tempfile, "tempdir", str(sticky.folder))
    home = sticky.folder / "home" if place == "beside the project" else tmp_path / "home"
    if place != "none":
        home.mkdir(mode=0o700)
    return home


@pytest.mark.parametrize("place", HOMES)
def test_a_workspace_above_does_not_replace_the_packages_of_a_lock(sticky, place, tmp_path, monkeypatch):
    home = home_at(place, sticky, tmp_path, monkeypatch)
    (sticky.project / "pyproject.toml").write_text(PROJECT)
    (sticky.project / "uv.lock").write_text(LOCK)
    members = '["*", "*/*", "*/*/*"]'
    sticky.planted("pyproject.toml", f"[tool.uv.workspace]\nmembers = {members}\n")
    sticky.planted("uv.lock", LOCK.replace("1.17.0", "1.0.0").replace('virtual = "."', 'virtual = "p"'))
    spec, problems = read_environment_spec(sticky.project, "uv.lock")
    assert spec is not None, problems
    found = export_lock(spec, sticky.project, find_uv_bin(), tmp_path / "cache", home)
    assert found.locked == f"six==1.17.0 --hash=sha256:{'ab' * 32}\n"
    assert not list(sticky.folder.rglob("*-uv-*"))


@pytest.mark.parametrize("place", HOMES)
@pytest.mark.parametrize("file", ["uv.toml", "pyproject.toml"])
def test_settings_above_a_temporary_folder_do_not_choose_packages(sticky, place, file, tmp_path, monkeypatch):
    """The user's own settings still count: they name where the package is from."""
    home, wheels = home_at(place, sticky, tmp_path, monkeypatch), tmp_path / "wheels"
    make_wheel(wheels, "one", "1.0")
    config = tmp_path / "config" / "uv" / "uv.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'find-links = ["{wheels}"]\n')
    make_wheel(sticky.folder / "evil", "one", "6.6")
    table = "[tool.uv]\n" if file == "pyproject.toml" else ""
    sticky.planted(file, f'{table}find-links = ["{sticky.folder}/evil"]\n')
    variables = {**os.environ, "UV_NO_INDEX": "1", "XDG_CONFIG_HOME": str(tmp_path / "config")}
    uv = Installer(find_uv_bin(), variables, {}, sticky.project, home)
    spec = EnvironmentSpec(pip=(Requirement("one", 1, "r.txt"),))
    machine, plan = ForeignMachine("linux-x86_64-glibc2.36", "3.11.2"), of_spec(spec)
    lock = resolve_for(machine, plan, uv)
    assert lock["requirements"].startswith("one==1.0 ")
    (found,) = wheel_files(lock, machine, plan, uv)
    assert found.url == (wheels / found.name).as_uri()


def of_spec(spec: EnvironmentSpec) -> EnvironmentPlan:
    return plan_environment(spec, "s" * 64, text("python"), text("uv"), (), Wishes())


def plant_repository(sticky: Sticky) -> None:
    """With a commit, an index that has files of the project, and rules that leave its script out."""
    git = ("git", "-c", "safe.directory=*", "-c", "user.name=n", "-c", "user.email=n@example.org")
    sticky.run(*git, "init", "-q", "-b", "main")
    sticky.run(*git, "hash-object", "-w", "--stdin")
    sticky.planted(".gitignore", "/p/*.py\n")
    sticky.planted(".git/info/exclude", "/train.py\n")
    blob = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    for name in ("p/.holdfast/runs/x", "p/secret"):
        sticky.run(*git, "update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")
    sticky.run(*git, "commit", "-q", "-m1")


@pytest.mark.parametrize("is_every_folder_safe", [False, True])
def test_a_repository_above_decides_nothing(sticky, is_every_folder_safe, tmp_path, monkeypatch):
    if is_every_folder_safe:  # as images for building often have it
        (tmp_path / ".gitconfig").write_text("[safe]\n\tdirectory = *\n")
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / ".gitconfig"))
    (sticky.project / "train.py").write_text("print(1)\n")
    (sticky.project / "data.txt").write_text("1\n")
    plant_repository(sticky)
    listed = list_files(sticky.project)
    assert (sorted(listed.paths), listed.warnings) == (["data.txt", "train.py"], ())
    assert explain(sticky.project, "train.py") is None
    assert revision(sticky.project) is None
    assert tracked_of(sticky.project / ".holdfast") is None
    (sticky.project / ".git").mkdir()  # no repository: git would look further up
    assert set(list_files(sticky.project).paths) == {"data.txt", "train.py"}
    assert explain(sticky.project, "train.py") is None


def test_a_repository_above_that_this_account_made_counts(sticky):
    (sticky.project / "train.py").write_text("print(1)\n")
    subprocess.run(["git", "init", "-q"], cwd=sticky.folder, check=True)
    (sticky.folder / ".gitignore").write_text("/p/*.py\n")
    assert list_files(sticky.project).paths == ()


def test_a_repository_above_counts_if_its_owner_alone_may_write_around_it(sticky):
    """As a project of a group, or one that `sudo` is used in."""
    (sticky.project / "train.py").write_text("print(1)\n")
    plant_repository(sticky)
    sticky.folder.chmod(0o775)
    os.chown(sticky.folder, NEIGHBOUR, NEIGHBOUR)
    assert tracked_of(sticky.project / ".holdfast") is not None
    assert list_files(sticky.project).paths == ()
