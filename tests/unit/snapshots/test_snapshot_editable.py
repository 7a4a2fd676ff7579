"""Packages in editable mode, found without starting the interpreter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.snapshots.editable import editable_installs, editable_warnings


def interpreter(folder: Path, name: str = "python", configuration: str | None = "home = /usr/bin\n") -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / name).write_text("not a program: it must not be started")
    if configuration is not None:
        (folder / "pyvenv.cfg").write_text(configuration)
    return folder / "bin" / name


def install(prefix: Path, name: str, document: Any, version: str = "python3.11") -> None:
    info = prefix / "lib" / version / "site-packages" / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "direct_url.json").write_text(document if isinstance(document, str) else json.dumps(document))


def editable(folder: Path) -> dict[str, Any]:
    return {"url": folder.as_uri(), "dir_info": {"editable": True}}


def test_editable_installs_are_found_and_others_are_not(tmp_path):
    python = interpreter(tmp_path / "venv")
    install(tmp_path / "venv", "my-lib", editable(tmp_path / "my lib"))
    install(tmp_path / "venv", "fixed", {"url": (tmp_path / "fixed").as_uri(), "dir_info": {}})
    install(tmp_path / "venv", "wheel", {"url": "https://example.org/wheel.whl", "archive_info": {}})
    install(tmp_path / "venv", "broken", "{")
    install(tmp_path / "venv", "odd", "[]")
    (tmp_path / "venv/lib/python3.11/site-packages/old.egg-link").write_text(f"{tmp_path}/old\n../\n")
    assert editable_installs(python) == [("my-lib", tmp_path / "my lib"), ("old", tmp_path / "old")]
    assert editable_installs(tmp_path / "nowhere" / "bin" / "python") == []


def test_a_linked_interpreter_outside_a_venv_uses_its_own_version_only(tmp_path):
    real = interpreter(tmp_path / "opt", "python3.11", configuration=None)
    install(tmp_path / "opt", "right", editable(tmp_path / "right"))
    install(tmp_path / "opt", "wrong", editable(tmp_path / "wrong"), version="python3.12")
    install(tmp_path / "home" / ".local", "user", editable(tmp_path / "user"))
    link = tmp_path / "bin" / "python3"
    link.parent.mkdir()
    link.symlink_to(real)
    assert editable_installs(link) == [("right", tmp_path / "right")]
    assert [name for name, _ in editable_installs(link, home=tmp_path / "home")] == ["right", "user"]


@pytest.mark.parametrize(("setting", "found"), [("true", ["inner", "outer"]), ("false", ["inner"])])
def test_a_venv_sees_the_packages_below_it_only_when_it_says_so(tmp_path, setting, found):
    interpreter(tmp_path / "base", configuration=None)
    install(tmp_path / "base", "outer", editable(tmp_path / "outer"))
    configuration = f"home = {tmp_path}/base/bin\ninclude-system-site-packages = {setting}\n"
    python = interpreter(tmp_path / "venv", configuration=configuration)
    install(tmp_path / "venv", "inner", editable(tmp_path / "inner"))
    assert [name for name, _ in editable_installs(python)] == found


def test_the_warning_says_what_reaches_the_run(tmp_path, project):
    python = interpreter(tmp_path / "venv")
    (project / "left-out").mkdir()
    (project / ".amlignore").write_text("left-out/\n")
    install(tmp_path / "venv", "inside", editable(project))
    install(tmp_path / "venv", "inside-too", editable(project / "libs" / "one"))
    install(tmp_path / "venv", "left-out", editable(project / "left-out"))
    install(tmp_path / "venv", "outside", editable(tmp_path / "project-2"))
    left_out, outside = editable_warnings(python, project)
    assert f"`{project}/left-out`" in left_out.message
    assert f"is used live from `{tmp_path}/project-2`, so a later edit reaches the run" in outside.message
