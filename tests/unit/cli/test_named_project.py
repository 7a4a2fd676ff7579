"""`--project DIR`: another project than the one around the current folder."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from holdfast.cli.terminal import Switches, about_same_project


@pytest.fixture
def monorepo(tmp_path: Path) -> Path:
    for name in ("a", "b"):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "t.py").write_text("print(1)\n")
        (tmp_path / name / "deep" / "d.py").write_text("print(1)\n")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return tmp_path


def folder_of(command, *words: str) -> list[str]:
    done = command("submit", "--dry-run", "-o", "json", *words)
    assert done.code == 0, done.err
    found: list[str] = json.loads(done.out)["command"]["directory"]["join"][1:]
    return found


def test_a_command_runs_where_it_was_typed_or_at_the_top_of_the_named_project(command, monorepo, monkeypatch):
    top = monorepo.resolve()
    (monorepo / "link").symlink_to(monorepo / "a")
    monkeypatch.chdir(top / "a" / "deep")
    for named in (top / "a", top / "link", Path("..")):
        assert folder_of(command, "--project", str(named), "d.py") == ["/deep"]
    monkeypatch.chdir(top / "b" / "deep")
    assert folder_of(command, "--project", str(top / "a"), "t.py") == []
    assert command("submit", "--dry-run", "--project", str(top / "a"), "d.py").code == 242


@pytest.mark.parametrize("named", ["none", "a/t.py", "/", "~"])
def test_a_folder_that_can_be_no_project_is_refused(command, monorepo, named):
    done = command("submit", "--project", named, "--", "true")
    assert done.code == 242, done.err
    assert list(monorepo.rglob(".holdfast")) == []


def test_an_empty_name_is_no_folder(command, monorepo):
    done = command("submit", "--project", "", "a/t.py")
    assert done.code == 240
    assert list(monorepo.rglob(".holdfast")) == []


def test_the_shared_temporary_folder_is_refused_by_its_name_too(command, monorepo):
    shared = monorepo / "shared"
    shared.mkdir()
    (shared / "t.py").write_text("print(1)\n")
    shared.chmod(0o1777)
    assert command("submit", "--project", str(shared), "t.py").code == 242
    assert not (shared / ".holdfast").exists()


def test_after_the_script_it_is_the_scripts_own_word(command, monorepo):
    done = command("submit", "--dry-run", "-o", "json", "a/t.py", "--project", "wandb-name")
    assert json.loads(done.out)["command"]["argv"][-2:] == ["--project", "wandb-name"]
    assert "stands after the script" not in done.err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("holdfast computetarget attach remote -n x", "holdfast computetarget attach --project 'my dir' remote -n x"),
        ("Follow it: holdfast logs -f -r x_1", "Follow it: holdfast logs --project 'my dir' -f -r x_1"),
        ("See `holdfast runconfiguration list`.", "See `holdfast runconfiguration list --project 'my dir'`."),
        ("holdfast environment list", "holdfast environment list"),
        ("holdfast history import -t x --project ID", "holdfast history import -t x --project ID"),
        ("holdfast status && holdfast cancel -r x", None),
    ],
)
def test_commands_in_hints_are_about_the_named_project(text, expected):
    given = Switches()
    assert about_same_project(text, given) == text
    given.project = "my dir"
    found = about_same_project(text, given)
    assert found == expected if expected else found.count("--project 'my dir'") == 2
