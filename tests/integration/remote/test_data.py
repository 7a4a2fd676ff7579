"""Data on a box: sent once, resumed after a cut, listed, and removed when nobody reads it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest

from integration.remote.benches import FarBench, cut_once_there, far_bench, largest  # noqa: F401 - a fixture
from kit.flows import Way
from kit.waiting import wait_for

LARGE = 6 << 20
SCRIPT = """
import os, time
print(sorted(os.listdir("data/tiny")), flush=True)
while os.path.exists("data/tiny/wait") and not os.path.exists("go"):
    time.sleep(0.01)
"""


@pytest.fixture
def bench(far_bench: Callable[..., FarBench]) -> FarBench:  # noqa: F811
    made = far_bench()
    made.write("t.py", SCRIPT)
    folder = made.root.parent / "tiny"
    folder.mkdir()
    (folder / "x.bin").write_bytes(os.urandom(LARGE))
    return made


def test_data_that_was_sent_before_a_cut_is_not_sent_again(bench: FarBench) -> None:
    with cut_once_there(bench.box.link, 5 << 20, Way.TO_SERVER, lambda: largest(bench.incoming) > 3 << 20):
        done = bench.submit("--data", f"{bench.root.parent}/tiny:data/tiny", "t.py")
    assert (done.code, done.out) == (0, "['x.bin']\n"), done.err
    assert bench.box.link.counters.to_server < 9 << 20


def test_data_is_listed_and_goes_when_no_run_reads_it(bench: FarBench) -> None:
    (bench.root.parent / "tiny" / "wait").touch()
    run_id = bench.start("--data", f"{bench.root.parent}/tiny:data/tiny", "t.py")
    wait_for((bench.near(run_id) / "submission.json").exists, what="the record")
    (listed,) = json.loads(bench.run("data", "list", "-t", "gpu1", "-o", "json").out)
    assert (listed["name"], listed["files"], listed["size"]) == ("tiny", 2, LARGE)
    assert listed["used_by"] == [run_id]
    kept = bench.run("data", "remove", "tiny", "-y", "-t", "gpu1")
    assert kept.code == 246 and run_id in kept.err
    assert bench.run("experiment", "clean", "--all").code == 0
    (bench.there(run_id) / "go").touch()
    assert bench.run("logs", "-f", "-r", run_id).out == "['wait', 'x.bin']\n", "clean leaves data alone"
    assert bench.run("data", "remove", "tiny", "-t", "gpu1").code == 240, "nobody could be asked"
    assert bench.run("data", "remove", listed["digest"][:8], "-y", "-t", "gpu1").code == 0
    assert json.loads(bench.run("data", "list", "-t", "gpu1", "-o", "json").out) == []
    (bench.root.parent / "tiny" / "wait").unlink()
    assert bench.submit("--data", f"{bench.root.parent}/tiny:data/tiny", "t.py").out == "['x.bin']\n", "sent again"


def test_a_run_configuration_names_data_of_the_box_and_another_target_is_told(bench: FarBench) -> None:
    there = bench.box.account.home / "imagenet"
    there.mkdir()
    (there / "image").write_text("i")
    bench.attach(bench.box, runconfig="Data:\n  - gpu1:~/imagenet:data/tiny\n")
    done = bench.submit("t.py")
    assert done.out == "['image']\n"
    given = bench.record()["data"]
    assert [(each["source"], each["files"], each["is_listing"]) for each in given] == [("gpu1:~/imagenet", 1, True)]
    elsewhere = bench.run("submit", "-c", "gpu1", "-t", "local", "t.py")
    assert elsewhere.code == 242 and "-t gpu1" in elsewhere.err
    (there / "image").unlink()
    there.rmdir()
    gone = bench.submit("t.py")
    assert gone.code == 242 and "imagenet" in gone.err
