"""A notebook in an environment that Holdfast builds, the same on each product."""

from __future__ import annotations

import json

import pytest

from kit.notebooks import notebook

pytestmark = [pytest.mark.soak, pytest.mark.time_limit(300, "builds an environment")]
CELLS = ("import holdfast, six, sys\nholdfast.log('loss', lr)\nprint(six.__name__, sys.version_info > (3,))", "1 / 0")


def test_the_environment_of_a_notebook_has_what_runs_it(bench, target):
    bench.write("sub/t.ipynb", notebook(*CELLS, tagged="lr = 1"))
    bench.write("requirements.txt", "six\n")
    managed = "userManagedEnvironment: false"
    if "docker" in target:
        bench.target(managed)
    elif target == "local":
        bench.write("aml_config/local.compute", f"type: local\n{managed}\n")
    else:
        file = bench.root / "aml_config" / "local.compute"
        lines = [line for line in file.read_text().splitlines() if "userManaged" not in line]
        file.write_text("\n".join([*lines, managed, ""]))
    done = bench.submit("-d", "requirements.txt", "-p", "lr=2", "sub/t.ipynb", timeout=240)
    assert "gets nbclient and ipykernel" in done.err
    assert "six True\n" in done.out and "Cell 4 failed: ZeroDivisionError: division by zero" in done.out
    assert done.code == 1
    near = bench.near(bench.record()["run_id"])
    assert len(json.loads((near / "outputs" / "t.ipynb").read_text())["cells"]) == 4
