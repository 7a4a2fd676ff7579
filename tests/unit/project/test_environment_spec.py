"""A spec from any kind of file: its digest, its secrets, and which reader is loaded for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.project.environment_spec import EnvironmentSpec, spec_digest
from holdfast.project.packages_search import read_environment_spec


def read(root: Path, name: str, text: str) -> EnvironmentSpec:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text, encoding="utf-8")
    spec, problems = read_environment_spec(root, name)
    assert spec is not None, problems
    return spec


BASE = (
    "name: x\nchannels: [a, b]\ndependencies:\n- python=3.11\n- numpy\n- pip:\n"
    "  - six>=1\n  - -i https://h.example/s\n  - b\n"
)


@pytest.mark.parametrize(
    "text",
    [
        BASE.replace("name: x\n", "# a comment\n"),
        BASE.replace("six>=1", "six>=1   # why"),
        "dependencies: [{pip: [b, six>=1, '-i https://h.example/s']}, numpy, 'python 3.11.*']\nchannels: [a, b]\n",
    ],
)
def test_what_does_not_matter_is_not_in_the_digest(tmp_path, text):
    expected = spec_digest(read(tmp_path, "one.yml", BASE), tmp_path)
    assert spec_digest(read(tmp_path, "sub/two.yaml", text), tmp_path) == expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("3.11", "3.12"),
        ("[a, b]", "[b, a]"),
        ("- numpy", "- numpy=2"),
        ("six>=1", "six>=2"),
        ("h.example", "i.example"),
        ("- b\n", "- b\n  - --pre\n"),
        ("- b\n", "- b\n  - -c limits.txt\n"),
        ("- b\n", "- b\n  - w/a-1-py3-none-any.whl\n"),
        ("- b\n", "- b\n  - -f w\n"),
        ("- b\n", ""),
    ],
)
def test_what_matters_is_in_the_digest(tmp_path, old, new):
    (tmp_path / "limits.txt").write_text("c<2\n")
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "a-1-py3-none-any.whl").write_bytes(b"")
    first = spec_digest(read(tmp_path, "c.yml", BASE), tmp_path)
    assert spec_digest(read(tmp_path, "c.yml", BASE.replace(old, new, 1)), tmp_path) != first


@pytest.mark.parametrize("line", ["./w/a-1-py3-none-any.whl", "-f w", "-c limits.txt", "-r limits.txt"])
def test_the_contents_of_named_files_are_in_the_digest(tmp_path, line):
    wheel, limits = tmp_path / "w" / "a-1-py3-none-any.whl", tmp_path / "limits.txt"
    wheel.parent.mkdir()
    wheel.write_bytes(b"one")
    limits.write_text("c<2\n")
    first = spec_digest(read(tmp_path, "r.txt", line), tmp_path)
    wheel.write_bytes(b"two")
    limits.write_text("c<3\n")
    assert spec_digest(read(tmp_path, "r.txt", line), tmp_path) != first


@pytest.mark.parametrize("name", ["a-1-py3-none-any.whl", "a-1.tgz", "a-1.tar.xz"])
def test_every_kind_of_package_in_a_folder_counts(tmp_path, name):
    (tmp_path / "w").mkdir()
    first = spec_digest(read(tmp_path, "r.txt", "-f w\n"), tmp_path)
    (tmp_path / "w" / name).write_bytes(b"one")
    assert spec_digest(read(tmp_path, "r.txt", "-f w\n"), tmp_path) != first


def test_a_known_content_is_not_read_again(tmp_path):
    (tmp_path / "a-1-py3-none-any.whl").write_bytes(b"x")
    spec = read(tmp_path, "r.txt", "./a-1-py3-none-any.whl\n")
    asked: list[Path] = []
    spec_digest(spec, tmp_path, lambda path: asked.append(path) or "known")  # type: ignore[func-returns-value]
    assert asked == [tmp_path / "a-1-py3-none-any.whl"]


SECRETS = (
    "--index-url https://me:s3cret@a.example/simple\n--extra-index-url https://t0ken@b.example/s\n"
    "-f https://me:s3cret@c.example/w\nx @ git+https://me:s3c@ret@h.example/x.git@v1\n"
    "https://h.example/y-1-py3-none-any.whl?sv=1&sig=s3cret%3D&x=1\nz @ git+ssh://git@h.example/z.git\n"
)


def test_credentials_become_variables(tmp_path):
    spec = read(tmp_path, "r.txt", SECRETS)
    assert [each.text for each in spec.pip] == [
        "--index-url https://${HOLDFAST_INDEX_56E24B4C}@a.example/simple",
        "--extra-index-url https://${HOLDFAST_INDEX_8630D0CD}@b.example/s",
        "--find-links https://${HOLDFAST_INDEX_8AC31F0B}@c.example/w",
        "x @ git+https://${HOLDFAST_INDEX_B71C3EE0}@h.example/x.git@v1",
        "https://h.example/y-1-py3-none-any.whl?sv=1&sig=${HOLDFAST_INDEX_002363B3}&x=1",
        "z @ git+ssh://git@h.example/z.git",
    ]
    assert dict(spec.credentials) == {
        "HOLDFAST_INDEX_56E24B4C": "me:s3cret",
        "HOLDFAST_INDEX_8630D0CD": "t0ken",
        "HOLDFAST_INDEX_8AC31F0B": "me:s3cret",
        "HOLDFAST_INDEX_B71C3EE0": "me:s3c@ret",
        "HOLDFAST_INDEX_002363B3": "s3cret%3D",
    }
    assert "s3c" not in repr(spec) and "t0ken" not in repr(spec) and "t0ken" not in str(spec.credentials)


def test_a_new_password_is_the_same_spec(tmp_path):
    first = spec_digest(read(tmp_path, "r.txt", SECRETS), tmp_path)
    assert spec_digest(read(tmp_path, "r.txt", SECRETS.replace("s3cret", "other")), tmp_path) == first


def test_credentials_of_channels_and_conda_packages_become_variables(tmp_path):
    text = (
        "channels: ['https://me:s3cret@c.example/x', 'https://c.example/t/ab-12345678-90/x']\n"
        "dependencies: ['https://me:s3cret@c.example/x::numpy']\n"
    )
    spec = read(tmp_path, "c.yml", text)
    assert spec.channels == (
        "https://${HOLDFAST_INDEX_71B96EF7}@c.example/x",
        "https://c.example/t/${HOLDFAST_INDEX_439FAA5B}/x",
    )
    assert spec.conda[0].text == "https://${HOLDFAST_INDEX_71B96EF7}@c.example/x::numpy"


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("r.txt", "-e git+https://me:s3cret@h.example/x.git#egg=x --nothing\n"),
        ("r.txt", "-r https://me:s3cret@h.example/r.txt\n"),
        ("r.txt", "six https://me:s3cret@h.example/r.txt\n"),
        ("r.txt", "--indx-url https://me:s3cret@h.example\n"),
        ("c.yml", "dependencies: [{pip: ['-e hg+https://me:s3cret@h.example/x.git']}]\n"),
        ("c.yml", "dependencies: ['https://me:s3cret@c.example/x::python=abc']\n"),
        ("pyproject.toml", "[project]\nname = 'x'\ndependencies = ['six https://me:s3cret@h.example']\n"),
        ("pyproject.toml", "[project]\nname = 'x'\n[[tool.uv.index]]\nurl = 'ftp://me:s3cret@h.example'\n"),
    ],
)
def test_no_problem_shows_a_secret(tmp_path, name, line):
    (tmp_path / name).write_text(line)
    spec, problems = read_environment_spec(tmp_path, name)
    assert spec is None and problems
    assert "s3cret" not in repr(problems)


def test_a_conda_file_loads_no_other_reader(tmp_path):
    (tmp_path / "c.yml").write_text("dependencies:\n- python=3.11\n- pip:\n  - six\n")
    code = (
        "import sys; from pathlib import Path\n"
        "from holdfast.project.packages_search import read_environment_spec as read\n"
        f"assert read(Path({str(tmp_path)!r}), 'c.yml')[0]\n"
        "print(sorted(m for m in sys.modules if m in ('tomllib', 'tomli', 'ast', 'configparser', 'shlex',"
        " 'subprocess', 'dataclasses')))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
