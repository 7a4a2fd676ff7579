"""A queue on a machine over SSH."""

from __future__ import annotations

from kit.queues import ENVIRONMENT, SAYS, Queue


def test_a_run_waits_on_a_machine_over_ssh_and_begins_when_its_engine_lets_it(far_bench):
    bench = far_bench()
    bench.write("train.py", "print('hello')\n")
    queue = Queue(bench.home)
    try:
        first, second = (bench.start("train.py", env=ENVIRONMENT) for _ in range(2))
        assert (bench.record(first)["status"], bench.record(first)["phase"]) == ("Queued", SAYS)
        assert bench.run("cancel", "-r", second).code == 0
        assert bench.record(second)["reason"] == "canceled"
        queue.run()
        assert bench.run("logs", "-f", "-r", first).out == "hello\n"
        assert bench.record(first)["status"] == "Completed"
    finally:
        queue.close()
