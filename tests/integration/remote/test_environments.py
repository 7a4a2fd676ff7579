"""Environments on a box: built there, by a uv that is sent once, and writable only for the user."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable

import pytest

from integration.remote.benches import FarBench, far_bench  # noqa: F401 - a fixture

MakeBench = Callable[..., FarBench]
CONDA = "dependencies:\n  - pip:\n      - six==1.16.0\n"


@pytest.fixture
def bench(far_bench: MakeBench) -> FarBench:  # noqa: F811
    made = far_bench()
    compute = made.root / "aml_config" / "gpu1.compute"
    compute.write_text(compute.read_text() + "userManagedEnvironment: false\n")
    made.write("aml_config/conda_dependencies.yml", CONDA)
    made.write("train.py", "import six, sys\nprint(six.__version__, sys.prefix)\n")
    return made


def test_an_environment_is_built_on_the_box_and_used_again(bench: FarBench) -> None:
    shutil.rmtree(bench.home / "tools")
    first = bench.submit("train.py")
    assert first.code == 0, first.err
    version, prefix = first.out.split()
    assert version == "1.16.0"
    assert prefix.startswith(str(bench.home / "environments"))
    assert "Sending uv" in first.err

    second = bench.submit("train.py")

    assert second.out == first.out
    assert "Sending uv" not in second.err
    assert [event["built"] for event in environments(bench)] == [True, False]


def test_what_the_spec_was_resolved_to_is_known_at_home_and_means_the_same_on_the_next_box(bench: FarBench) -> None:
    bench.write("aml_config/conda_dependencies.yml", CONDA.replace("six==1.16.0", "six"))
    assert bench.submit("train.py").code == 0
    (path,) = (bench.root / ".holdfast" / "locks").glob("*/*.json")
    lock = json.loads(path.read_text())
    assert "six==" in lock["requirements"]
    assert "--hash=sha256:" in lock["requirements"]

    older = lock["requirements"].splitlines()[0].split()[0]
    path.write_text(json.dumps(lock))
    for name in os.listdir(bench.home / "locks"):
        os.unlink(bench.home / "locks" / name)
    again = bench.submit("train.py")

    assert again.code == 0, again.err
    assert [event["built"] for event in environments(bench)] == [True, False]
    assert older.split("==")[1] in again.out


def environments(bench: FarBench) -> list[dict[str, object]]:
    journals = [(bench.root / ".holdfast" / "runs" / run / "journal.jsonl").read_text() for run in bench.near_ids()]
    found = [json.loads(line) for text in journals for line in text.splitlines()]
    return sorted((each for each in found if each["e"] == "environment"), key=lambda each: each["t"])


def test_a_secret_that_the_spec_names_too_is_given_to_the_script(bench: FarBench) -> None:
    address = "--find-links http://${TOKEN}@127.0.0.1:9/wheels"
    bench.write("aml_config/conda_dependencies.yml", f"dependencies:\n  - python\n  - pip:\n      - {address}\n")
    bench.write("train.py", "import os\nprint(os.environ.get('TOKEN') == 'tok-12345')\n")

    result = bench.submit("--secret", "TOKEN", "train.py", env={"TOKEN": "tok-12345"})

    assert (result.code, result.out) == (0, "True\n"), result.err
