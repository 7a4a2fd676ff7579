"""A project on the test's product; tests with `target` run on each of them, on those in the module's TARGETS, or on
those that they name. Also the table of lies, for tests of its outcomes."""

from __future__ import annotations

import pytest

from integration.docker.benches import container_bench  # noqa: F401 - fixtures for the suites here
from integration.docker.conftest import docker, docker_box, docker_gpus_of, docker_template, shared_docker  # noqa: F401
from integration.faults.conftest import bench  # noqa: F401
from integration.gpu.playing import outcomes  # noqa: F401
from integration.products.conftest import PRODUCTS, kind  # noqa: F401
from integration.remote.benches import far_bench  # noqa: F401
from integration.remote.conftest import box, boxes, client, kit_folder  # noqa: F401
from integration.runs.conftest import bench as bench_here  # noqa: F401


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    own = [each for each in metafunc.definition.iter_markers("parametrize") if "target" in each.args[0]]
    if "target" in metafunc.fixturenames and not own:
        metafunc.parametrize("target", getattr(metafunc.module, "TARGETS", PRODUCTS))
