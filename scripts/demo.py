"""`make demo`: a project, a run on this machine, its history. All of it stays in `.demo/`."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from package_index import uv_settings

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / ".demo"
PROJECT = DEMO / "digits"
HOME = DEMO / "home"


def main() -> None:
    DEMO.mkdir(exist_ok=True)
    environment = demo_environment(dict(os.environ))
    if not PROJECT.exists():
        show(["project", "create", "digits", "--template", "digits"], DEMO, environment)
    show(["experiment", "submit", "-c", "local", "train.py"], PROJECT, environment)
    show(["history", "list", "-o", "table"], PROJECT, environment)
    print(closing_words(environment))


def demo_environment(environment: dict[str, str]) -> dict[str, str]:
    """All of Holdfast's files stay inside the clone; proxies and package indexes are those of this machine."""
    environment.update(uv_settings(Path(sys.executable), environment))
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", os.defpath)])
    environment["HOLDFAST_HOME"] = str(HOME)
    environment.setdefault("UV_CACHE_DIR", str(ROOT / ".cache" / "uv"))
    return environment


def show(arguments: list[str], folder: Path, environment: dict[str, str]) -> None:
    print(f"\n$ {shlex.join(['holdfast', *arguments])}", flush=True)
    code = subprocess.run(["holdfast", *arguments], cwd=folder, env=environment, check=False).returncode
    if code != 0:
        sys.exit(f"error: the demo stops here: exit code {code}")


def closing_words(environment: dict[str, str]) -> str:
    caches = [environment[name] for name in ("UV_CACHE_DIR", "PIP_CACHE_DIR") if environment.get(name)]
    outside = [each for each in caches if not Path(each).is_relative_to(ROOT)]
    where = (
        f"Caches outside this folder: {', '.join(outside)}." if outside else "Nothing outside this folder was touched."
    )
    lines = [
        "",
        f"{where} `make clean` removes .demo, .venv and .cache.",
        "",
        "Next:",
        "  . .venv/bin/activate && export HOLDFAST_HOME=$PWD/.demo/home && cd .demo/digits",
        "  holdfast history info --help         everything about one run",
        "  holdfast submit -c local train.py    once more: the environment is there now",
        "  holdfast history compare --help      what differs between two runs",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
