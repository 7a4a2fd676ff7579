"""What a `uv.lock` says, by the uv beside Holdfast; nothing is fetched."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from uv import find_uv_bin

from holdfast.environments.uv_export import export_lock
from holdfast.errors import ConfigurationError, NotAvailable
from holdfast.project.environment_spec import EnvironmentSpec, spec_digest
from holdfast.project.packages_search import read_environment_spec
from holdfast.project.problems import Problem

PROJECT = """
[project]
name = "x"
version = "1"
requires-python = ">=3.10"
dependencies = ["six"]
[[tool.uv.index]]
url = "https://me:s3cret@h.example/simple"
"""
LOCK = """version = 1
revision = 3
requires-python = ">=3.10"

[[package]]
name = "six"
version = "1.17.0"
source = { registry = "https://h.example/simple" }
wheels = [
    { url = "https://h.example/six-1.17.0-py3-none-any.whl", hash = "sha256:%s" },
]

[[package]]
name = "x"
version = "1"
source = { virtual = "." }
dependencies = [
    { name = "six" },
]

[package.metadata]
requires-dist = [{ name = "six" }]
""" % ("ab" * 32)


def read(root: Path, lock: str = LOCK, project: str = PROJECT) -> tuple[EnvironmentSpec | None, list[Problem]]:
    (root / "pyproject.toml").write_text(project)
    (root / "uv.lock").write_text(lock)
    return read_environment_spec(root, "uv.lock")


def exported(root: Path, lock: str = LOCK, uv: str = find_uv_bin()) -> EnvironmentSpec:
    spec, problems = read(root, lock)
    assert spec is not None, problems
    return export_lock(spec, root, uv, root / "cache", root)


def test_a_lock_is_exported_with_hashes_lines_and_indexes(tmp_path):
    spec = exported(tmp_path)
    assert spec.locked == (
        "--extra-index-url https://${HOLDFAST_INDEX_FDA75352}@h.example/simple\n"
        f"six==1.17.0 --hash=sha256:{'ab' * 32}\n"
    )
    assert (spec.pip[-1].file, spec.pip[-1].line) == ("uv.lock", 6)
    assert dict(spec.credentials) == {"HOLDFAST_INDEX_FDA75352": "me:s3cret"}
    assert (spec.python, spec.lock_file) == (">=3.10", "")
    assert len(spec_digest(spec, tmp_path)) == 64


def test_an_unchanged_lock_is_exported_once_and_another_spec_is_left_as_it_is(tmp_path):
    first = exported(tmp_path)
    assert exported(tmp_path, uv="/no/such/uv") == first
    with pytest.raises(NotAvailable, match="could not be run"):
        exported(tmp_path, LOCK + "# changed\n", "/no/such/uv")
    assert all("s3cret" not in each.read_text() for each in (tmp_path / "cache").iterdir())
    other = EnvironmentSpec(file="r.txt")
    assert export_lock(other, tmp_path, "/no/such/uv", tmp_path, tmp_path) is other


def test_a_lock_with_a_folder_of_the_project_is_refused_with_its_line(tmp_path):
    lock = LOCK.replace('source = { registry = "https://h.example/simple" }', 'source = { directory = "six" }')
    lock = lock[: lock.index("wheels")] + lock[lock.index('\n[[package]]\nname = "x"') :]
    with pytest.raises(ConfigurationError, match=r"uv\.lock"):
        exported(tmp_path, lock)


def test_a_broken_lock_is_said_in_uvs_words(tmp_path):
    with pytest.raises(ConfigurationError, match=r"uv\.lock: uv cannot read it: .*uv lock"):
        exported(tmp_path, "version = 1\n[[package]\n")


WORKSPACE = """
[tool.uv.sources]
six = {path = "wheels/six-1.17.0-py3-none-any.whl"}
member = {workspace = true}
[tool.uv.workspace]
members = ["member"]
"""


def test_the_root_of_a_workspace_is_exported_with_wheels_by_their_path(tmp_path):
    """Only the two files are copied for uv: neither the members nor the wheels are beside them."""
    wheel = "wheels/six-1.17.0-py3-none-any.whl"
    (tmp_path / "wheels").mkdir()
    (tmp_path / wheel).write_bytes(b"")
    lock = re.sub(r'source = { registry = "[^"]+" }', f'source = {{ path = "{wheel}" }}', LOCK)
    lock = re.sub(r'url = "[^"]+"', f'filename = "{Path(wheel).name}"', lock)
    lock = lock.replace('{ name = "six" },', '{ name = "six" }, { name = "member" },', 1)
    lock += '\n[[package]]\nname = "member"\nversion = "1"\nsource = { virtual = "member" }\n'
    spec, problems = read(tmp_path, lock, PROJECT + WORKSPACE)
    assert spec is not None, problems
    found = export_lock(spec, tmp_path, find_uv_bin(), tmp_path / "cache", tmp_path)
    assert wheel in found.locked


EXTRAS = '[{ name = "six", specifier = ">=1.10,<2" }, { name = "certifi", marker = "extra == \'more\'" }]'


@pytest.mark.parametrize(
    ("wanted", "locked", "names"),
    [
        ('"six"', "", ""),
        ("\"Six ; python_version < '4'\"", "", ""),
        ('"six < 2, >= 1.10"', EXTRAS, ""),
        ('"six", "idna"', "", "`idna`"),
        ('"six>=1.17"', "", "`six`"),
        ("", "", "`six`"),
    ],
)
def test_a_lock_that_is_older_than_its_project_is_warned_of(tmp_path, wanted, locked, names):
    """Spaces, order and extras do not make it old."""
    lock = LOCK.replace('[{ name = "six" }]', locked) if locked else LOCK
    spec, problems = read(tmp_path, lock, PROJECT.replace('"six"', wanted))
    assert spec is not None
    assert [each.severity for each in problems] == (["warning"] if names else [])
    if names:
        assert f"asks for something else of {names};" in str(problems[0])
        assert "uv lock" in problems[0].remedy


def test_a_lock_beside_a_file_without_a_project_is_an_error(tmp_path):
    spec, problems = read(tmp_path, LOCK, "[tool.other]\nx = 1\n")
    assert spec is None
    assert "is missing, so the lock beside it belongs to nothing" in str(problems[0])
