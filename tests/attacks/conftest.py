"""The attacks, one file per hole of docs/security.md, with the fixtures of the suites whose parts they attack."""

from integration.docker.benches import container_bench  # noqa: F401 - fixtures for the suites here
from integration.docker.conftest import (  # noqa: F401
    docker,
    docker_box,
    docker_template,
    index,
    kind,
    make_bench,
    shared_docker,
    wheels,
)
from integration.remote.benches import far_bench  # noqa: F401
from integration.remote.conftest import box, boxes, client, kit_folder  # noqa: F401
from integration.runs.conftest import bench, obeying_modes  # noqa: F401
from kit.other_account import other  # noqa: F401
from kit.planted import adopted, clone, docs, theirs  # noqa: F401
from unit.cli.conftest import command, recorded  # noqa: F401
from unit.farside.conftest import home, make_living  # noqa: F401
from unit.farside.gpu.conftest import driver, report_of  # noqa: F401
