"""A new environment of packages that the machine has had before."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import children
import first_imports
import profiles
from children import Place
from measuring import Contender
from package_places import forget_environments, kept_place, pinned, remove, with_programs, write_spec
from peers import uv_program
from results import Bar, Row, Table, lines
from session import Session

NAME = "new-environment"
TITLE = "A new environment: numpy, pandas and scikit-learn, warm package cache"
TOOLS: tuple[str, ...] = ("holdfast", "mlflow")

_COMMAND = ["holdfast", "submit", "-c", "local"]
_OURS, _PIP = "`holdfast submit s.py`", "`python -m venv`, then `pip install`"
_MLFLOW, _MLFLOW_UV = "`mlflow run`", "`mlflow run --env-manager uv`"
_NAMES = ("numpy", "pandas", "scikit-learn")
_MLPROJECT = 'name: bench\npython_env: python_env.yaml\nentry_points:\n  main:\n    command: "python s.py"\n'
_PYENV = """\
#!/bin/sh
# Says where Python is, as pyenv does; it is there already.
[ "$1" = root ] && echo {root}
exit 0
"""
_HOW = """\
From the command to the end of a script that prints one word, in an environment that did not exist before. Its
packages have pinned versions that every tool has in its own cache from the previous round. Holdfast resolves, locks
and builds; its environments and locks are removed before each round. By hand: `python -m venv env && env/bin/pip
install -r requirements.txt && env/bin/python s.py`. mlflow: an `MLproject` with a `python_env.yaml`. By default it
uses venv and pip, with the Python that pyenv names (here a script of two lines, so that pyenv costs nothing). It
can also use uv, which Holdfast builds with; that line has no bar. All use the package index of the machine's pip."""


def measure(session: Session) -> Row:
    ours, hand = _ours(session, "new-environment"), _by_hand(session)
    classic, quick = _mlflow(session, "new-environment-mlflow"), _mlflow(session, "new-environment-mlflow-uv")
    imports: dict[str, list[float]] = {_OURS: [], _PIP: []}
    figures = session.compare(
        [
            _timed(_OURS, ours, [*_COMMAND, "s.py"], lambda: forget_environments(ours), imports, [*_COMMAND, "t.py"]),
            _timed(_PIP, hand, _pip_line(), lambda: remove(hand.project / "env"), imports, ["env/bin/python", "t.py"]),
            _timed(_MLFLOW, classic, ["mlflow", "run", "."], lambda: _forget(classic)),
            _timed(_MLFLOW_UV, quick, ["mlflow", "run", "--env-manager", "uv", "."], lambda: _forget(quick)),
        ],
        usual=5,
    )
    first, *others = lines({_OURS: None, _PIP: Bar(0.15), _MLFLOW: Bar(0.15), _MLFLOW_UV: None}, figures)
    return Row(
        NAME, TITLE, _HOW, (Table("", "s", 1, first, tuple(others), first_imports.note(figures, imports, _OURS, _PIP)),)
    )


def profile(session: Session) -> str:
    place = _ours(session, "new-environment-profile")
    children.run(place, [*_COMMAND, "s.py"])
    forget_environments(place)
    return profiles.run_timeline(place, [*_COMMAND[1:], "s.py"])


def _ours(session: Session, name: str) -> Place:
    place = _with_scripts(kept_place(session, name))
    write_spec(place, pinned(*_NAMES))
    return place


def _by_hand(session: Session) -> Place:
    place = _with_scripts(kept_place(session, "new-environment-pip"))
    _write_lines(place.project / "requirements.txt", pinned(*_NAMES))
    return place


def _pip_line() -> list[str]:
    steps = ["python -m venv env", "env/bin/pip install -q -r requirements.txt", "env/bin/python s.py"]
    return ["sh", "-c", " && ".join(steps)]


def _mlflow(session: Session, name: str) -> Place:
    """With the same Python as the others, by a `pyenv` that has nothing to do."""
    place = _with_scripts(kept_place(session, name, "mlflow"))
    (place.project / "MLproject").write_text(_MLPROJECT)
    dependencies = "".join(f'  - "{line}"\n' for line in pinned(*_NAMES))
    version = platform.python_version()
    (place.project / "python_env.yaml").write_text(f'python: "{version}"\ndependencies:\n{dependencies}')
    pyenv, programs = place.root / "tmp" / "pyenv", place.root / "tmp" / "bin"
    for folder in (pyenv / "versions", programs):
        folder.mkdir(parents=True)
    (pyenv / "versions" / version).symlink_to(sys.base_prefix)
    (programs / "pyenv").write_text(_PYENV.format(root=pyenv))
    (programs / "pyenv").chmod(0o755)
    (programs / "uv").symlink_to(uv_program())
    base = f"python{sys.version_info[0]}.{sys.version_info[1]}"  # uv makes no environment from another one
    (programs / base).symlink_to(Path(sys.base_prefix) / "bin" / base)
    return with_programs(place, programs)


def _with_scripts(place: Place) -> Place:
    (place.project / "s.py").write_text('print("hi")\n')
    (place.project / "t.py").write_text(first_imports.SCRIPT)
    return place


def _write_lines(path: Path, texts: Sequence[str]) -> None:
    path.write_text("".join(f"{text}\n" for text in texts))


def _forget(place: Place) -> None:
    remove(place.home / ".mlflow")


def _timed(
    name: str,
    place: Place,
    argv: Sequence[str],
    before: Callable[[], None],
    imports: dict[str, list[float]] | None = None,
    importing: Sequence[str] = (),
) -> Contender:
    """`before` does not count. What comes after, the first import, is noted apart."""

    def measured() -> float:
        before()
        seconds = children.seconds(place, argv, "hi")
        if imports is not None:
            imports[name].append(children.seconds(place, importing, "hi"))
        return seconds

    return Contender(name, measured)
