"""The readers of a project's files, each with something valid to read: for `kit.fuzzing`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from holdfast.environments.foreign_resolution import read_wheel_files
from holdfast.errors import HoldfastError
from holdfast.project.compute import read_compute
from holdfast.project.conda_file import read_conda
from holdfast.project.configuration_folders import ConfigurationFolders
from holdfast.project.folder import find_project
from holdfast.project.pyproject import read_pyproject, read_uv_lock
from holdfast.project.requirements import read_requirements
from holdfast.project.runconfig import read_runconfig
from holdfast.project.spark import read_spark
from holdfast.project.tracked_files import tracked_of
from holdfast.snapshots import editable
from holdfast.snapshots.patterns import parse_rules
from kit.fuzzing import Reader, in_file, json_of

HASH = bytes(range(20))
YAML = b"""# a target
type: remotedocker
address: me@gpu1:22
baseDockerImage: "ubuntu:24.04"
arguments: [--ipc=host, "-e A=b"]
environmentVariables: {A: b, C: 1}
CondaDependenciesFile: aml_config/conda.yml
Target: gpu1
ArgumentVector: [train.py, --rate, 0.1]
TimeLimit: 1h30m
dependencies:
  - python=3.11
  - numpy>=1.2
  - pip:
    - torch==2.1.0
    - -r more.txt
configuration: {spark.executor.memory: 1g}
"""
REQUIREMENTS = b"""--index-url https://user:pass@host/simple
torch==2.1.0 ; python_version < "3.12" \\
    --hash=sha256:aaaa
numpy[all] @ https://host/numpy.whl
-e ./lib
-c limits.txt
"""
TOML = b"""[project]
name = "x"
version = "1"
requires-python = ">=3.10"
dependencies = ["numpy>=1", "torch==2.1 ; sys_platform == 'linux'"]
[tool.uv]
extra-index-url = ["https://a/simple"]
[tool.uv.sources]
torch = { index = "pt" }
numpy = { git = "https://g/x", rev = "a" }
[[tool.uv.index]]
name = "pt"
url = "https://pt/simple"
explicit = true
"""
UV_LOCK = b"""version = 1
requires-python = ">=3.10"
[[package]]
name = "x"
version = "1"
source = { virtual = "." }
dependencies = [{ name = "numpy" }]
[package.metadata]
requires-dist = [{ name = "numpy", specifier = ">=1" }]
[[package]]
name = "numpy"
version = "1.26.4"
source = { registry = "https://index/simple" }
"""
PYLOCK = b"""lock-version = "1.0"
created-by = "uv"
[[packages]]
name = "numpy"
version = "1.26.4"
index = "https://index/simple"
wheels = [{ url = "https://f/numpy-1.26.4-py3-none-any.whl", size = 3, hashes = { sha256 = "%s" } }]
""" % (b"a" * 64)


def project_readers(root: Path) -> Iterator[Reader]:
    (root / "aml_config").mkdir(parents=True)
    refusals = (HoldfastError,)
    configured: dict[str, Callable[[Path], object]] = {
        "x.compute": lambda path: read_compute(ConfigurationFolders(root), "x"),
        "x.runconfig": lambda path: read_runconfig(ConfigurationFolders(root), "x"),
        "x.yml": lambda path: (read_conda(root, "aml_config/x.yml"), read_spark(root, "aml_config/x.yml")),
    }
    for name, read in configured.items():
        yield Reader(name, in_file(root / "aml_config", name, read), [YAML], "bytes", refusals)
    written: dict[str, tuple[bytes, Callable[[Path], object]]] = {
        "requirements.txt": (REQUIREMENTS, lambda path: read_requirements(root, path.name)),
        "pyproject.toml": (TOML, lambda path: read_pyproject(root, path.name)),
        "uv.lock": (UV_LOCK, lambda path: read_uv_lock(root, path.name)),
    }
    for name, (text, parse) in written.items():
        yield Reader(name, in_file(root, name, parse), [text], "bytes", refusals)
    identity = json_of({"format": 1, "id": "0" * 32, "name": "x"})
    there = in_file(root / "aml_config", "project.json", lambda path: find_project(root, root / "home"))
    yield Reader("project.json", lambda data: there(data or b"{"), [identity], "json", refusals)
    yield Reader(
        ".amlignore",
        lambda data: parse_rules(data, ".amlignore"),
        [b"*.pyc\n!a/**/b\n[a-z]?\\ \n/x/\n"],
        "bytes",
        refusals,
    )
    wheels = lambda data: read_wheel_files(data.decode("utf-8", "replace"), "numpy==1\n", root, root)  # noqa: E731
    yield Reader("pylock.toml", wheels, [PYLOCK], "bytes", refusals)
    url = json_of({"url": "file:///a/b", "dir_info": {"editable": True}})
    yield Reader("direct_url.json", in_file(root, "direct_url.json", editable._editable_folder), [url])
    tracked = in_file(root / "repository" / ".git", "index", lambda path: tracked_of(root / "repository" / ".holdfast"))
    (root / "repository" / ".git" / f"sharedindex.{HASH.hex()}").write_bytes(_index(2, ".holdfast", ".holdfast/a"))
    yield Reader("git's index", tracked, [_index(4, ".gitignore", ".holdfast/a", "t.py"), _index(2, "a")], "bytes")


def _index(version: int, *names: str) -> bytes:
    """Of git, split: it shares entries with another one, and one of those is deleted."""
    entries, before = b"", b""
    for name in map(str.encode, names):
        entry = bytes(60) + len(name).to_bytes(2, "big")
        if version == 4:
            kept = next((at for at in range(len(name)) if before[at : at + 1] != name[at : at + 1]), len(name))
            entry += bytes([len(before) - kept]) + name[kept:] + b"\0"
        else:
            entry += name + bytes(8 - (62 + len(name)) % 8)
        entries, before = entries + entry, name
    words = (1 << 33).to_bytes(8, "big") + (1).to_bytes(8, "big")  # a word that says that one follows, and that one
    deleted = (2).to_bytes(4, "big") + (2).to_bytes(4, "big") + words + bytes(4)
    link = HASH + deleted
    head = b"DIRC" + version.to_bytes(4, "big") + len(names).to_bytes(4, "big")
    return head + entries + b"link" + len(link).to_bytes(4, "big") + link + bytes(20)
