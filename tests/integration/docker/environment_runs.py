"""Runs in containers whose environment is built from the test's own packages: what it should have, and what it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.docker.benches import ContainerBench
from kit.package_server import Index

SCRIPT = "import demo, sys\nprint(demo.__version__, sys.prefix, sys.version.split()[0])\n"


@pytest.fixture(name="bench")
def environment_bench(container_bench: ContainerBench) -> ContainerBench:
    container_bench.target("userManagedEnvironment: false")
    container_bench.write("t.py", SCRIPT)
    return container_bench


def wants(bench: ContainerBench, index: Index, *lines: str, python: str = "", login: str = "") -> None:
    pin = [f"  - python={python}"] if python else []
    below = [f"    - {each}" for each in (f"--index-url {index.url(login)}", *(lines or ("demo",)))]
    bench.write("aml_config/conda_dependencies.yml", "\n".join(["dependencies:", *pin, "  - pip:", *below, ""]))


def built(bench: ContainerBench) -> list[Path]:
    return sorted(each.parent for each in (bench.home / "environments").glob("*/.complete"))
