"""Many at once: ids stay unique, records right, readers agree."""

from __future__ import annotations

import concurrent.futures
import json

RUNS, PROCESSES = {"local": 16, "remote": 10}, 8


def test_many_runs_by_eight_processes_have_right_records_and_unique_ids(bench, target):
    runs_wanted = RUNS[target]
    bench.write("t.py", "import sys, holdfast\nholdfast.log('number', int(sys.argv[1]))\nprint(sys.argv[1])\n")
    with concurrent.futures.ThreadPoolExecutor(PROCESSES) as pool:
        ids = list(pool.map(lambda number: bench.start("t.py", str(number), timeout=300), range(runs_wanted)))
    assert len(set(ids)) == runs_wanted
    for run_id in ids:
        bench.event(run_id, "ended")
    result = bench.run("history", "list", "-o", "json", timeout=300)
    runs = {run["run_id"]: run for run in json.loads(result.out)}
    assert set(runs) == set(ids)
    assert {run["status"] for run in runs.values()} == {"Completed"}
    assert sorted(run["run_number"] for run in runs.values()) == list(range(1, runs_wanted + 1))
    for number, run_id in enumerate(ids):
        assert runs[run_id]["number"] == number
        assert (bench.near(run_id) / "driver_log").read_text() == f"{number}\n"


def test_submit_logs_and_history_on_one_run_agree_and_show_no_line_twice(bench, target):
    bench.write("t.py", "import time\nfor i in range(150):\n    print('line', i, flush=True)\n    time.sleep(0.01)\n")
    submit = bench.popen("submit", "t.py")
    assert submit.stdout is not None
    first = submit.stdout.readline()
    followers = [bench.popen("logs", "-f") for _ in range(3)]
    for _ in range(3):
        assert bench.run("history", "list", "-o", "json").code == 0
        assert bench.run("status").code == 0
    expected = b"".join(b"line %d\n" % i for i in range(150))
    # `read`, because `communicate` skips what came with the first line.
    assert first + submit.stdout.read() == expected
    submit.communicate()
    assert [follower.communicate(timeout=60)[0] for follower in followers] == [expected] * 3
