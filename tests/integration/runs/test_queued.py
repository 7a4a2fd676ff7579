"""Runs whose engine does not start them at once, through the command line: what a person sees of the queue, and what
happens to a run that its engine keeps, forgets, refuses or ends."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.errors import ExitCode
from holdfast.farside.run import liveness
from integration.runs.conftest import Bench
from kit.queues import ENVIRONMENT, SAYS, Queue
from kit.waiting import wait_for

SCRIPT = "import os\nprint('hello', os.environ.get('TOKEN'))\n"
LONG = "import time\nprint('begun', flush=True)\ntime.sleep(1000)\n"


@pytest.fixture
def queue(bench: Bench) -> Iterator[Queue]:
    bench.write("train.py", SCRIPT)
    made = Queue(bench.home)
    yield made
    made.close()


def queued(bench: Bench, *arguments: str, **variables: str) -> str:
    return bench.start(*arguments, "train.py", env={**ENVIRONMENT, **variables})


def owner(bench: Bench, run: str) -> Any:
    return json.loads((bench.far(run) / "owner.json").read_text())


def test_a_queued_run_is_said_to_be_that_with_what_its_engine_says(bench, queue):
    said = bench.run("submit", "-a", "train.py", env=ENVIRONMENT)
    run = said.out.strip()
    assert (said.code, said.err.splitlines()[0]) == (0, "The run is queued: waiting for resources")
    generation = bench.journal(run)[0]["generation"]
    assert owner(bench, run) == {"format": 1, "engine": "queue", "token": generation, "handle": "1"}
    shown = bench.run("status", "-r", run, "-o", "table")
    told = [line.split()[0] for line in shown.out.splitlines() if "Queued" in line or SAYS in line]
    assert told == ["Status", "Phase"]
    assert (bench.record()["status"], bench.record()["phase"]) == ("Queued", SAYS)
    queue.says("3 jobs ahead")
    assert json.loads(bench.run("status", "-r", run, "-o", "json").out)["phase"] == "3 jobs ahead"
    listed = json.loads(bench.run("history", "list", "--status", "queued", "-o", "json").out)
    assert [each["run_id"] for each in listed] == [run]
    assert bench.run("logs", "-r", run).err.startswith("The run has not started (queued: 3 jobs ahead)")
    assert [each["text"] for each in bench.journal(run) if each["e"] == "queued"] == [SAYS, "3 jobs ahead"]
    queue.run()
    assert bench.run("logs", "-f", "-r", run).out == "hello None\n"
    assert bench.record()["status"] == "Completed"
    assert json.loads(bench.run("history", "list", "--status", "queued", "-o", "json").out) == []


def test_any_number_of_runs_is_one_question(bench, queue):
    runs = [queued(bench) for _ in range(3)]
    before = len(queue.calls())
    listed = json.loads(bench.run("history", "list", "-o", "json").out)
    assert {each["run_id"]: each["status"] for each in listed} == dict.fromkeys(runs, "Queued")
    assert queue.calls()[before:] == ["look 3"]


def test_following_a_queued_run_waits_and_repeats_what_the_engine_says(bench, queue):
    run = queued(bench)
    with bench.popen("logs", "-f", "-r", run) as following:
        wait_for(lambda: (bench.near(run) / "journal.jsonl").read_text().count("queued"))
        queue.says("1 job ahead")
        wait_for(lambda: "1 job ahead" in (bench.near(run) / "journal.jsonl").read_text())
        queue.run()
        out, err = following.communicate(timeout=60)
    assert (following.returncode, out) == (0, b"hello None\n")
    assert b"Queued: waiting for resources" in err
    assert b"Queued: 1 job ahead" in err


def test_a_secret_waits_in_a_file_of_its_own_and_is_gone_when_it_was_read(bench, queue):
    run = queued(bench, "--secret", "TOKEN", TOKEN="open sesame")
    path = bench.far(run) / "secrets"
    assert path.stat().st_mode & 0o777 == 0o600
    queue.run()
    assert bench.run("logs", "-f", "-r", run).out == "hello ***\n"
    assert not path.exists()
    files = [each for each in bench.far(run).glob("*") if each.is_file()]
    assert [each for each in files if b"sesame" in each.read_bytes()] == []


def test_a_run_that_is_canceled_while_it_waits_has_no_exit_code(bench, queue):
    run = queued(bench, "--secret", "TOKEN", TOKEN="open sesame")
    assert bench.run("cancel", "-r", run).code == 0
    record = bench.record()
    assert (record["status"], record["reason"], record["exit_code"]) == ("Canceled", "canceled", None)
    assert queue.job()["state"] == "gone"
    assert not (bench.far(run) / "secrets").exists()
    assert [each["e"] for each in bench.journal(run)] == ["created", "queued", "ended"]
    queue.run().wait(60)  # a scheduler that is late
    assert bench.journal(run)[-1]["reason"] == "canceled"


def test_a_cancel_that_the_engine_does_not_hear_counts_when_the_run_begins(bench, queue):
    run = queued(bench)
    queue.order(sick="no route to the controller")
    said = bench.run("cancel", "-r", run)
    assert said.code != 0
    assert "no route to the controller" in said.err
    assert bench.record()["status"] == "Queued"
    assert "no route to the controller" in bench.record()["phase"]
    queue.order()
    queue.run()
    assert bench.run("logs", "-f", "-r", run).code == ExitCode.CANCELED


def test_a_run_that_waits_outlives_a_restart_of_its_host(bench, queue):
    """No Holdfast process is left, and the machine says that it restarted."""
    run = queued(bench)
    restarted = {"HOLDFAST_BOOT_ID": "another boot"}
    assert json.loads(bench.run("status", "-r", run, "-o", "json", env=restarted).out)["status"] == "Queued"
    queue.run()
    assert bench.run("logs", "-f", "-r", run, env=restarted).code == 0


def test_a_run_that_its_engine_has_lost_is_told_to_be_that(bench, queue):
    run = queued(bench)
    queue.loses()
    record = bench.record()
    assert (record["status"], record["reason"], record["exit_code"]) == ("Failed", "engine-lost", None)
    assert "had not started" in bench.journal(run)[-1]["detail"]


def test_a_run_that_its_engine_refuses_leaves_nothing(bench, queue):
    queue.order(refuses="This account may use 2 GPUs.")
    said = bench.run("submit", "-a", "train.py", env=ENVIRONMENT)
    assert said.code != 0
    assert "This account may use 2 GPUs." in said.err
    assert [*bench.home.glob("runs/*/*"), *bench.home.glob("runs/*/.*")] == []
    assert bench.record()["reason"] == "not-started"


def test_an_engine_that_is_not_there_is_an_error(bench, queue):
    said = bench.run("submit", "train.py", env={"HOLDFAST_ENGINE": "slurm"})
    assert said.code != 0
    assert "`slurm`" in said.err
    (bench.home / "engines" / "queue.py").chmod(0o622)
    assert bench.run("submit", "train.py", env=ENVIRONMENT).code != 0
    assert queue.count() == 0


@pytest.mark.parametrize("politely", [True, False])
def test_a_run_that_is_preempted_is_told_to_be_that(bench, queue, politely):
    bench.write("train.py", LONG)
    run = queued(bench)
    queue.run()
    wait_for(lambda: b"begun" in (bench.far(run) / "driver_log").read_bytes())
    queue.preempt("a job of a higher priority needs the node", politely=politely)
    assert bench.run("logs", "-f", "-r", run).code == ExitCode.LOST
    assert (bench.record()["reason"], bench.record()["status"]) == ("preempted", "Failed")
    assert "higher priority" in bench.journal(run)[-1]["detail"]


def test_a_running_run_is_canceled_as_any_other(bench, queue):
    bench.write("train.py", LONG)
    run = queued(bench)
    queue.run()
    wait_for(lambda: b"begun" in (bench.far(run) / "driver_log").read_bytes())
    assert bench.run("cancel", "-r", run).code == 0
    assert bench.record()["reason"] == "canceled"


def test_a_start_that_was_cut_before_the_engine_answered_happens_once(bench, queue):
    """The asking process is killed when the engine has the job: the client asks again."""
    queue.order(dies=True)
    run = bench.start("train.py", env=ENVIRONMENT)
    assert queue.count() == 1
    assert owner(bench, run)["handle"] == "1"
    assert bench.record()["status"] == "Queued"


def test_a_start_whose_answer_did_not_come_is_found_by_its_token(bench, queue):
    queue.order(unanswered=True)
    said = bench.popen("submit", "train.py", env={**os.environ, **ENVIRONMENT})
    queue.job()
    queue.order()
    run = wait_for(lambda: next(bench.home.glob("runs/*/*_*"), None)).name
    wait_for(lambda: owner(bench, run)["handle"] == "1")
    queue.run()
    assert said.communicate(timeout=60)[0] == b"hello None\n"


def test_an_engine_that_takes_its_time_is_waited_for(bench, queue):
    queue.order(delays=True)
    submitting = bench.popen("submit", "-a", "train.py", env={**os.environ, **ENVIRONMENT})
    wait_for(lambda: "start" in queue.calls())
    run = wait_for(lambda: next(bench.home.glob("runs/*/*_*"), None)).name
    far = str(bench.far(run))
    liveness.adjudicate(far)  # another process holds it
    assert liveness.is_alive(far)
    assert [each["e"] for each in bench.journal(run)] == ["created"]
    queue.order()
    assert submitting.communicate(timeout=60)[0].decode().strip() == run


def test_a_job_that_its_engine_starts_twice_is_run_once(bench, queue):
    bench.write("train.py", LONG)
    run = queued(bench)
    job = queue.run()
    wait_for(lambda: b"begun" in (bench.far(run) / "driver_log").read_bytes())
    bench.kill_owners(run)
    job.wait(60)
    queue.run().wait(60)
    assert bench.journal(run)[-1]["reason"] == "engine-lost"
    assert (bench.far(run) / "driver_log").read_bytes().count(b"begun") == 1


def test_a_plan_shows_what_the_engine_is_given(bench, queue):
    shown = bench.run("submit", "--dry-run", "-o", "table", "train.py", env=ENVIRONMENT).out
    assert "exec <python> -I -S <farside>/holdfast/farside/main.py owned <home>" in shown
    assert queue.calls() == []
