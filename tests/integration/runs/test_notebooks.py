"""Notebooks on this machine, with the Python that is active. Other products: `integration/products`."""

from __future__ import annotations

import base64
import json
import os

import pytest

from kit.notebooks import active_python, notebook
from kit.waiting import wait_for

PNG = base64.b64encode(b"\x89PNG\r\n").decode()
STORY = (
    "import sys, os\nimport beside\nimport holdfast\nholdfast.log('loss', lr / 2)\n"
    "print('lr', lr, beside.NAME)\nprint('to stderr', file=sys.stderr)",
    f"from IPython.display import Image, display\nimport base64\ndisplay(Image(base64.b64decode({PNG!r})))",
    "os.system('echo by a program')\nopen('written.txt', 'w').write('here')",
    "def train():\n    raise ValueError('diverged')\ntrain()",
    "print('never')",
)
FAILED = "Cell 6 failed: ValueError: diverged"
LOOP = "import time\nprint('up', flush=True)\ntry:\n    time.sleep(600)\nfinally:\n    open('saved', 'w').close()"
pytestmark = pytest.mark.time_limit(240, "may install the packages of a kernel")


def test_a_notebook_runs_cell_by_cell_up_to_the_one_that_fails(bench, isolated):
    bench.write("deep/t.ipynb", notebook(*STORY, tagged="lr = 1\n"))
    bench.write("deep/beside.py", "NAME = 'beside'\n")
    done = bench.submit("-p", "lr=0.5", "deep/t.ipynb", env=active_python())
    begin, error, trace = done.out.partition(FAILED)
    assert (done.code, error) == (1, FAILED)
    said = ["lr 0.5 beside", "to stderr", "by a program", "4"]
    assert sorted(begin.splitlines()) == sorted(said + [f"Cell {number} of 7" for number in range(1, 7)])
    assert trace.rstrip().endswith("ValueError: diverged") and "\x1b" not in trace
    record = bench.record()
    assert (record["script_name"], record["arguments"]) == ("deep/t.ipynb", ["-p", "lr=0.5"])
    near = bench.near(record["run_id"])
    executed = json.loads((near / "outputs" / "t.ipynb").read_text())
    assert executed["cells"][1]["source"] == ["lr = 0.5"]
    assert executed["cells"][2]["outputs"][0]["text"] == ["lr 0.5 beside\n"]
    assert [each.get("execution_count") for each in executed["cells"]] == [1, 2, 3, 4, 5, 6, None]
    assert (near / "outputs" / "t-4.png").read_bytes() == base64.b64decode(PNG)
    assert (near / "files" / "deep" / "written.txt").read_text() == "here"
    assert [each.name for each in bench.far(record["run_id"]).glob("kernel-*")] == []
    assert not any((isolated / name).exists() for name in (".ipython", ".jupyter", ".local"))


def test_a_notebook_that_is_canceled_ends_as_by_ctrl_c_and_is_kept(bench):
    bench.write("t.ipynb", notebook("print(6 * 7)", LOOP, "print('never')"))
    run_id = bench.start("t.ipynb", env=active_python())
    wait_for(lambda: b"up\n" in (bench.far(run_id) / "driver_log").read_bytes())
    (kernel,) = bench.far(run_id).glob("kernel-*")
    sockets = [each.name for each in kernel.iterdir() if each.is_socket()]
    assert (len(sockets) >= 5, kernel.stat().st_mode & 0o077) == (True, 0), "nobody else can listen to it"
    assert bench.run("cancel", "-r", run_id).code == 0
    assert bench.record(run_id)["reason"] == "canceled"
    executed = json.loads((bench.near(run_id) / "outputs" / "t.ipynb").read_text())
    shown = [[each.get("text") or each.get("ename") for each in cell["outputs"]] for cell in executed["cells"]]
    assert shown == [[["42\n"]], [["up\n"], "KeyboardInterrupt"], []]
    assert (bench.near(run_id) / "files" / "saved").exists()
    bench.until_nothing_is_left(run_id)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("cell", "code", "reason", "said"),
    [
        ("input('name? ')", 1, "exit-code", "-p NAME=VALUE"),
        ("import sys; sys.exit(3)", 3, "exit-code", "sys.exit(3)"),
        ("exit()", 0, "completed", "Cell 1 ended the notebook."),
        ("import os; os._exit(4)", 4, "exit-code", "exit code 4"),
        ("import os; os.kill(os.getpid(), 11)", 139, "signal", "signal 11"),
    ],
)
def test_a_cell_that_ends_the_notebook_ends_the_run_as_a_script_would(bench, cell, code, reason, said):
    bench.write("t.ipynb", notebook(cell, "print('never')"))
    done = bench.submit("t.ipynb", env=active_python())
    record = bench.record()
    assert (done.code, record["reason"]) == (code, reason)
    assert said in done.out and "never" not in done.out


@pytest.mark.soak
def test_a_notebook_that_is_killed_leaves_what_was_executed(bench):
    bench.write("t.ipynb", notebook("print('first')", LOOP))
    run_id = bench.start("t.ipynb", env=active_python())
    wait_for(lambda: b"up\n" in (bench.far(run_id) / "driver_log").read_bytes())
    os.kill(bench.event(run_id, "started")["pid"], 9)
    bench.event(run_id, "ended")
    executed = json.loads((bench.there(run_id) / "outputs" / "t.ipynb").read_text())
    assert executed["cells"][0]["outputs"][0]["text"] == ["first\n"]
    bench.until_nothing_is_left(run_id)
