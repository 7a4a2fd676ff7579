"""A target whose file changes while a run goes on: the run is not considered lost, and is found again."""

from __future__ import annotations

from collections.abc import Callable

from integration.remote.benches import FarBench, far_bench  # noqa: F401 - a fixture
from kit.waiting import wait_for


def test_a_run_outlives_an_edit_of_the_folder_in_its_target(far_bench: Callable[..., FarBench]) -> None:  # noqa: F811
    bench = far_bench()
    bench.write(
        "t.py",
        "import os, time\nprint(1, flush=True)\n"
        "while not os.path.exists(os.environ['HOLDFAST_RUN_DIRECTORY'] + '/go'): time.sleep(0.01)\n",
    )
    run_id = bench.start("t.py")
    far = bench.far(run_id)
    wait_for(lambda: (far / "driver_log").read_bytes() == b"1\n", what="it runs")
    elsewhere = bench.box.account.home / "elsewhere"
    bench.attach(bench.box, f"holdfastHome: {elsewhere}\n")
    asked = bench.run("status", "-r", run_id)
    assert asked.code == 0, asked.err
    assert "the target's folder is another one now" in asked.err
    assert f"Set `holdfastHome: {bench.home}` in gpu1.compute again" in asked.err
    assert "Failed" not in asked.out
    assert bench.run("logs", "-f", "-r", run_id).code == 245
    assert not list(elsewhere.glob("runs/*/*"))
    bench.attach(bench.box)
    (far / "go").write_text("")
    done = bench.run("logs", "-f", "-r", run_id)
    assert (done.code, done.out) == (0, "1\n"), done.err
