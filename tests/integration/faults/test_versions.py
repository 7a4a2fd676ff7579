"""Other versions of Holdfast: the files on disk are the only contract between them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kit.waiting import wait_for

CASES = Path(__file__).parents[2] / "cases" / "run-folders"
PACKAGE = Path(__file__).parents[3] / "src" / "holdfast"


@pytest.mark.parametrize("version", sorted(each.name for each in CASES.iterdir()))
def test_a_recorded_run_of_each_format_stays_readable(bench, version):
    """The case has a project's `.holdfast` and the host's folder, as that version wrote them."""
    shutil.copytree(CASES / version / "project", bench.root, dirs_exist_ok=True)
    (bench.root / "state").rename(bench.root / ".holdfast")
    shutil.copytree(CASES / version / "host", bench.home, dirs_exist_ok=True)
    assert bench.run("project", "trust", "--yes").code == 0
    for record in json.loads((CASES / version / "expected.json").read_text()):
        found = bench.record(record["run_id"])
        assert {key: found.get(key) for key in record} == record
        assert bench.run("logs", "-r", record["run_id"]).out == "hello from an old run\n"
    listed = json.loads(bench.run("history", "list", "-o", "json").out)
    assert len(listed) == len(json.loads((CASES / version / "expected.json").read_text()))


def test_a_supervisor_of_another_version_is_followed_and_canceled(bench, target, tmp_path):
    other = tmp_path / "other" / "holdfast"
    shutil.copytree(PACKAGE, other, ignore=shutil.ignore_patterns("__pycache__"))
    with (other / "farside" / "agent.py").open("a") as file:
        file.write("\n# another version\n")
    bench.write(
        "t.py",
        """
        import os, time
        print("up", flush=True)
        while not os.path.exists(os.environ["HOLDFAST_RUN_DIRECTORY"] + "/go"):
            time.sleep(0.01)
        print("end")
        """,
    )
    ids = []
    for _ in range(2):
        ids.append(bench.start("t.py", env={"PYTHONPATH": str(other.parent)}))
    wait_for(lambda: all((bench.far(each) / "driver_log").read_text() == "up\n" for each in ids))
    assert bench.run("status", "-r", ids[0], "-o", "tsv", "--query", "status").out == "Running\n"
    (bench.far(ids[0]) / "go").write_text("")
    followed = bench.run("logs", "-f", "-r", ids[0])
    assert (followed.code, followed.out) == (0, "up\nend\n")
    assert bench.run("cancel", "-r", ids[1], "--grace", "0").code == 0
    assert bench.record(ids[1])["reason"] == "canceled"
    assert len(list((bench.home / "farside").iterdir())) == 2
