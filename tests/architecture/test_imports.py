"""The source keeps the rules of `docs/architecture.md`; and each rule is proved to notice a violation."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from architecture import call_rules, docstring_rules, source_rules
from architecture.source_rules import Module

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "holdfast"
RULES: list[Callable[[list[Module]], list[str]]] = [
    source_rules.forbidden_arrows,
    source_rules.climbing_arrows,
    source_rules.foreign_imports,
    source_rules.cycles,
    source_rules.sizes,
    call_rules.prints,
    source_rules.impure_imports,
    source_rules.inner_imports,
    source_rules.repeated_names,
    source_rules.slow_values,
    call_rules.half_private_folders,
    docstring_rules.stray_docstrings,
    call_rules.raising_questions,
    docstring_rules.undocumented,
    source_rules.missing_files,
]


@pytest.fixture(scope="module")
def modules() -> list[Module]:
    return source_rules.read(PACKAGE)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.__name__))
def test_the_source_keeps_the_rule(modules: list[Module], rule: Callable[[list[Module]], list[str]]) -> None:
    assert rule(modules) == []
    assert {"holdfast.errors", "holdfast.cli.main", "holdfast.farside"} <= {module.name for module in modules}


def test_no_tracked_file_names_a_machine_or_a_registry() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    texts = {}
    for name in filter(None, listed.split("\0")):
        content = (ROOT / name).read_bytes() if (ROOT / name).is_file() else b""
        if b"\0" not in content:
            texts[name] = content.decode("utf-8", "replace")

    assert source_rules.private_places(texts) == []
    assert "pyproject.toml" in texts


LONG = "def f():\n" + "    x = 1\n" * 40

RING = {
    "cli/a.py": "from holdfast.cli import b",
    "cli/b.py": "import holdfast.cli.c",
    "cli/c.py": "from . import a",
}

BROKEN = [
    ("forbidden_arrows", {"model.py": "from holdfast.project import a"}, "model may not import"),
    ("forbidden_arrows", {"history/a.py": "from holdfast import snapshots"}, "history.a may not import"),
    ("forbidden_arrows", {"history/a.py": "from ..workbench import b"}, "history.a may not import"),
    ("forbidden_arrows", {"project/a.py": "def f():\n    import holdfast.hosts"}, "project.a may not import"),
    ("forbidden_arrows", {"cli/a.py": "from holdfast.farside.system.frames import b"}, "cli.a may not import"),
    ("forbidden_arrows", {"hosts/a.py": "from holdfast.farside.agent import b"}, "hosts.a may not import"),
    ("forbidden_arrows", {"hosts/a.py": "from holdfast import farside"}, "hosts.a may not import"),
    ("forbidden_arrows", {"environments/a.py": "from holdfast.farside.environments import uv"}, "may not import"),
    (
        "forbidden_arrows",
        {"environments/a.py": "from holdfast.farside.environments.locks_b import c"},
        "may not import",
    ),
    ("forbidden_arrows", {"history/a.py": "from holdfast.farside.environments import locks"}, "may not import"),
    ("climbing_arrows", {"farside/system/a.py": "from holdfast.farside.run import b"}, "system.a may not import"),
    ("climbing_arrows", {"farside/gpu/a.py": "import holdfast.farside.gpu.watch.b"}, "gpu.a may not import"),
    ("climbing_arrows", {"farside/gpu/judge/a.py": "from ..watch.b import c"}, "judge.a may not import"),
    ("climbing_arrows", {"workbench/reach/a.py": "def f(): from ..machines import b"}, "reach.a may not import"),
    ("climbing_arrows", {"farside/extras/a.py": ""}, "farside.extras.a has no place on the stairs of farside"),
    ("slow_values", {"model.py": "from dataclasses import dataclass"}, "model imports dataclasses.dataclass"),
    ("forbidden_arrows", {"extras/a.py": ""}, "extras has no place in the order of layers"),
    ("foreign_imports", {"farside/a.py": "from holdfast.errors import b"}, "farside.a may not import"),
    ("foreign_imports", {"farside/a.py": "import yaml"}, "holdfast.farside.a may not import yaml"),
    ("foreign_imports", {"__init__.py": "from .errors import b"}, "may not import holdfast.errors.b"),
    ("foreign_imports", {"farside/shim/a.py": "import holdfast.farside.b"}, "shim.a may not import"),
    ("cycles", RING, "cycle: holdfast.cli.a"),
    ("sizes", {"cli/a.py": "\n" * 401}, "holdfast.cli.a has 401 lines; at most 400"),
    ("sizes", {"cli/a.py": LONG}, "holdfast.cli.a:1 f has 41 lines; at most 40"),
    ("sizes", {"cli/a.py": "def f(a, b, c, d, *, e, f, g): ..."}, "f has 7 parameters; at most 6"),
    ("sizes", {"history/a.py": "@group.command()\ndef f(a, b, c, d, e, f, g): ..."}, "f has 7 parameters"),
    ("prints", {"workbench/a.py": "print(1)"}, "holdfast.workbench.a:1 prints"),
    ("impure_imports", {"presenting/a.py": "import click"}, "presenting.a may not import click"),
    ("forbidden_arrows", {"presenting/a.py": "from holdfast.cli import b"}, "presenting.a may not import"),
    ("inner_imports", {"cli/a.py": "def f():\n" + "    import json\n" * 400}, "400 imports are inside functions"),
    ("repeated_names", {"cli/a.py": "class A: ...", "hosts/b.py": "class A: ..."}, "A is a class of holdfast.cli.a"),
    (
        "repeated_names",
        {"plan.py": "class Volume:\n    source: str", "farside/system/b.py": "class Volume:\n    target: str"},
        "Volume is a class of",
    ),
    ("repeated_names", {"cli/a.py": "", "hosts/a.py": ""}, "a is the name of holdfast.cli.a and holdfast.hosts.a"),
    ("half_private_folders", {"cli/a.py": "os.makedirs(path, 0o700)"}, "cli.a:1 makes the folders above"),
    ("half_private_folders", {"cli/a.py": "os.makedirs(path, mode=0o700, exist_ok=True)"}, "cli.a:1 makes"),
    ("half_private_folders", {"cli/a.py": "path.mkdir(mode=0o700, parents=True)"}, "cli.a:1 makes"),
    ("half_private_folders", {"cli/a.py": "path.mkdir(0o700, parents=True)"}, "cli.a:1 makes"),
    ("stray_docstrings", {"cli/a.py": 'A = 1\nB = 2\n"""Of B."""\n"""Of A."""'}, "cli.a:4 is a second docstring"),
    ("raising_questions", {"project/a.py": "(root / name).is_file()"}, "project.a:1 asks (root / name).is_file()"),
    ("raising_questions", {"snapshots/a.py": "Path(a).expanduser()"}, "snapshots.a:1 asks Path(a).expanduser()"),
    ("undocumented", {"workbench/a.py": "x = 1"}, "holdfast.workbench.a has no docstring"),
    ("missing_files", {"cli/a.py": '"""As in `b.py`."""'}, "holdfast.cli.a names `b.py`, which does not exist"),
    ("missing_files", {"cli/a.py": "x = 1  # see `hosts/a.py`"}, "cli.a names `hosts/a.py`, which does not exist"),
]


@pytest.mark.parametrize(("rule", "files", "complaint"), BROKEN)
def test_a_rule_notices_what_breaks_it(rule: str, files: dict[str, str], complaint: str, tmp_path: Path) -> None:
    modules = made_up(tmp_path, files)
    complaints = next(each for each in RULES if each.__name__ == rule)(modules)

    assert any(complaint in each for each in complaints), complaints


ALLOWED = {
    "__init__.py": '"""Doc."""\nimport json',
    "errors.py": '"""As in `system/b.py`, `h.py` and a user\'s `train.py`."""\nx = "`gone.py`"',
    "hosts/h.py": '"""Doc."""\nfrom holdfast.farside.system import frames\nfrom holdfast import errors',
    "environments/e.py": '"""Doc."""\nfrom holdfast.farside.environments.locks import b',
    "farside/environments/locks.py": '"""Doc."""',
    "farside/system/frames.py": '"""Doc."""\nimport zlib\nfrom holdfast.farside.system import b\nfrom . import b as c',
    "farside/system/b.py": '"""Doc."""',
    "farside/gpu/watch/w.py": '"""Doc."""\nfrom holdfast.farside.gpu import b\nfrom ..judge import b as c',
    "farside/shim/azureml/logging.py": '"""Doc."""\nimport holdfast\nfrom holdfast import log',
    "cli/a.py": '"""Doc."""\nimport click\n@group.command()\ndef f(a, b, c, d, e, f, g): print(a)',
    "project/templates/digits/train.py": "import sklearn\nprint(1)",
    "workbench/__init__.py": "",
    "hosts/p.py": '"""Doc."""\nos.makedirs(a, exist_ok=True)\nb.mkdir(0o700)\nb.mkdir(parents=True)',
    "hosts/d.py": '"""Doc."""\nA = 1\n"""Of A."""\nB = 2\n"""Of B."""',
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.__name__))
def test_a_rule_is_silent_about_what_is_allowed(rule: Callable[[list[Module]], list[str]], tmp_path: Path) -> None:
    assert rule(made_up(tmp_path, ALLOWED)) == []


def test_a_docstring_does_not_make_a_function_long(tmp_path: Path) -> None:
    text = 'def f():\n    """One.\n\n    Two.\n    """\n' + "    x = 1\n" * 39

    assert source_rules.sizes(made_up(tmp_path, {"cli/a.py": text})) == []


def test_a_machine_path_and_a_registry_host_are_noticed() -> None:
    files = {
        "a.md": "one\nsee /" + "root/x\nand files.python" + "hosted.org/packages",
        "b.md": "/home/me/project",
    }

    assert [each.split(" ")[0] for each in source_rules.private_places(files)] == ["a.md:2", "a.md:3"]


def made_up(folder: Path, files: dict[str, str]) -> list[Module]:
    for name, text in files.items():
        path = folder / "holdfast" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8") if not text.startswith("\n") else path.write_text(text)
    return source_rules.read(folder / "holdfast")
