from __future__ import annotations

import json
import math
import signal
from collections import OrderedDict
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from typing import Any

import pytest


class Float64(float):
    """As numpy's: a float whose repr is not a number."""

    def __repr__(self) -> str:
        return f"np.float64({float(self)})"


class Scalar:
    """As numpy's float32 or int64: not a Python number, but it gives one."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def tolist(self) -> Any:
        return self.value

    def item(self) -> Any:
        return self.value


class Integer(Scalar):
    def __index__(self) -> int:
        return int(self.value)


class LongDouble:
    """As numpy's: `tolist` gives itself."""

    def tolist(self) -> LongDouble:
        return self

    item = tolist

    def __float__(self) -> float:
        return 0.25


class EagerTensor:
    """As tensorflow's: no `tolist`, but an array within."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def numpy(self) -> Scalar:
        return Scalar(self.value)


class BrokenTensor:
    def tolist(self) -> Any:
        raise RuntimeError("the device is gone")


class Colour(IntEnum):
    RED = 3


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (0.1, 0.1),
        (1e300, 1e300),
        (-0.0, -0.0),
        (7, 7),
        (-(10**100), -(10**100)),
        (True, True),
        ("état \x00 \n \U0001f600", "état \x00 \n \U0001f600"),
        ("NaN", "NaN"),
        ("", ""),
        ("half \ud800 pair", "half ? pair"),
        (math.inf, math.inf),
        (-math.inf, -math.inf),
        (math.nan, math.nan),
        ([1.0, math.nan], [1.0, math.nan]),
        ([1, 2.5, True], [1, 2.5, True]),
        ((1.0, 2.0), [1.0, 2.0]),
        ([1.0, math.inf, -math.inf], [1.0, math.inf, -math.inf]),
        ([1e308, 1e308], [1e308, 1e308]),
        ([[1, 2], [3, 4]], [[1, 2], [3, 4]]),
        ([], []),
        (Float64(0.5), 0.5),
        ([Float64(0.5), Scalar(3)], [0.5, 3]),
        (Scalar(0.5), 0.5),
        (Scalar([[0.5, math.inf]]), [[0.5, math.inf]]),
        (Integer(9), 9),
        (LongDouble(), 0.25),
        (EagerTensor(0.75), 0.75),
        (EagerTensor([1.0, 2.0]), [1.0, 2.0]),
        (Decimal("0.125"), 0.125),
        (Fraction(1, 4), 0.25),
        (Colour.RED, 3),
        (list(range(200_000)), list(range(200_000))),
    ],
    ids=lambda each: repr(each)[:40].encode("ascii", "replace").decode(),
)
def test_a_value_comes_back_as_it_was(api, run, given, read):
    api.log("metric", given)
    value = run.values()["metric"]
    assert repr(value) == repr(read), "also of what is not equal to itself"


def test_each_call_writes_one_line_in_the_documented_format(api, run):
    api.log("loss", 0.5, step=3)
    api.log("loss", 0.5, step=4)
    api.log("loss", math.nan)
    lines = [json.loads(line) for line in run.files()[0].read_text().splitlines()]
    times = [line.pop("t") for line in lines]
    assert times == sorted(times)
    assert lines == [
        {"n": "loss", "v": 0.5, "s": 3},
        {"n": "loss", "v": 0.5, "s": 4},
        {"n": "loss", "v": "NaN", "s": None, "f": 1},
    ]


@pytest.mark.parametrize("name", ['quote " and \\', "100 %d %s %%", "Genauigkeit äöü", "tab\there", "x" * 250])
def test_a_name_may_hold_any_character_of_a_line(api, run, name):
    api.log(name, 1.0, step=1)
    api.log(name, 2.0, step=2)
    assert run.values() == {name: [1.0, 2.0]}


def test_a_dict_logs_each_item_at_one_time_and_step(api, run):
    api.log(OrderedDict(loss=0.5, accuracy=Scalar(0.9)), step=7)
    lines = [json.loads(line) for line in run.files()[0].read_text().splitlines()]
    assert [(line["n"], line["v"], line["s"]) for line in lines] == [("loss", 0.5, 7), ("accuracy", 0.9, 7)]
    assert lines[0]["t"] == lines[1]["t"]
    api.log({"loss": 0.4}, 8)
    api.log({"loss": 0.3}, 9.0)
    assert run.steps("loss") == [7, 8, 9], "the second argument after a dict is the step"
    api.log({"loss": 0.2, "note": None, 3: 1.0, "accuracy": 0.8})
    assert run.values() == {"loss": [0.5, 0.4, 0.3, 0.2], "accuracy": [0.9, 0.8]}, "a bad item takes no other with it"


@pytest.mark.parametrize("step", [Integer(5), 5, 5.0, Float64(5)])
def test_a_step_may_be_any_kind_of_integer(api, run, step):
    api.log("loss", 0.5)
    api.log("loss", 0.5, step=step)
    assert run.steps("loss") == [None, 5]


@pytest.mark.parametrize("step", ["5", 5.5, 2**63, [5], math.nan])
def test_a_step_that_is_no_integer_is_left_out_and_the_value_kept(api, run, step, capsys):
    api.log("loss", 0.5, step=1)
    api.log("loss", 0.6, step=step)
    assert run.values() == {"loss": [0.5, 0.6]}
    assert run.steps("loss") == [1, None]
    assert "without their step" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "None is not a number, a text or a list of numbers"),
        (b"bytes", "a value of type bytes is not a number, a text or a list of numbers"),
        ({"a": 1}, "a value of type dict is not"),
        (object(), "a value of type object is not"),
        (["a"], "a list can hold numbers only, and this one holds text"),
        ([1, None], "None is not"),
        (1j, "complex"),
        (1 << 1024, "the integer is too large"),
        (BrokenTensor(), "RuntimeError: the device is gone"),
        (ENDLESS, "nested more than 64 deep"),
    ],
    ids=lambda each: each[:40] if isinstance(each, str) else type(each).__name__,
)
def test_a_value_that_cannot_be_logged_is_dropped_and_named_once(api, run, value, reason, capsys):
    for _ in range(3):
        api.log("loss", value)
    api.log("loss", 1.0)
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert "'loss' was not logged" in errors and reason in errors
    assert run.values() == {"loss": 1.0}


@pytest.mark.parametrize("name", ["", "two\nlines", "x" * 251, 3, None, ["loss"]], ids=lambda each: repr(each)[:12])
def test_a_name_that_cannot_be_used_is_dropped_and_said_once(api, run, name, capsys):
    api.log(name, 1.0, step=1)
    api.log(name, 1.0, step=2)
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1 and "a metric's name is" in errors
    assert run.values() == {}


def test_many_names_do_not_flood_the_output_and_are_logged_though_not_all_are_remembered(api, run, monkeypatch, capsys):
    monkeypatch.setattr(api, "_MOST_NAMES", 3)
    for number in range(10):
        api.log(f"metric {number}", 1.0, step=1)
    assert len(run.values()) == 10
    assert len(api._keys) <= 3
    for number in range(300):
        api.log(f"metric {number}", None)
    assert capsys.readouterr().err.count("\n") == 200


def test_a_folder_that_cannot_be_written_is_said_once_and_logging_goes_on_when_it_can(api, run, capsys):
    blocked = run.directory / "metrics"
    blocked.write_text("a file where the folder should be")
    api.log("loss", 0.1, step=1)
    api.log("loss", 0.2, step=2)
    assert capsys.readouterr().err.count("metrics cannot be written") == 1
    blocked.unlink()
    api.log("loss", 0.3, step=3)
    assert run.values() == {"loss": 0.3}


def test_a_run_that_has_been_removed_is_not_made_again(api, run, capsys):
    run.directory.rmdir()
    api.log("loss", 0.1)
    assert not run.directory.exists()
    assert capsys.readouterr().err.count("\n") == 1


def test_without_stderr_a_bad_value_is_still_harmless(api, run, monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    api.log("loss", None)
    api.log("loss", 1.0)
    assert run.values() == {"loss": 1.0}


def test_outside_a_run_nothing_is_looked_at(api, run, monkeypatch, capsys):
    monkeypatch.delenv("HOLDFAST_RUN_ID")
    api.log("loss", 0.1, step=1)
    api.log(None, object(), step="x")
    assert not run.files()
    assert capsys.readouterr().err == ""


def test_a_forked_child_has_a_file_of_its_own(run):
    done = run.execute(
        """
        import holdfast, os
        holdfast.log("parent", 1.0, step=1)
        children = [os.fork() for _ in range(1)]
        if children == [0]:
            for step in range(100):
                holdfast.log("child", 2.0, step=step)
            os._exit(0)
        for step in range(2, 101):
            holdfast.log("parent", 1.0, step=step)
        os.waitpid(children[0], 0)
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert run.steps("parent") == list(range(1, 101))
    assert run.steps("child") == list(range(100))
    names = [{json.loads(line)["n"] for line in file.read_text().splitlines()} for file in run.files()]
    assert sorted(map(sorted, names)) == [["child"], ["parent"]]


def test_several_processes_and_threads_log_at_once_and_lose_nothing(run):
    script = """
        import holdfast, threading
        def work(number):
            for step in range(100):
                holdfast.log("worker %d" % number, [0.5] * 100, step=step)
                holdfast.log("quick %d" % number, 0.5, step=step)
        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        """
    processes = [run.start(script) for _ in range(3)]
    assert [process.communicate(timeout=60)[1] for process in processes] == ["", "", ""]
    for number in range(3):
        for kind in ("worker", "quick"):
            assert sorted(map(int, map(str, run.steps(f"{kind} {number}")))) == sorted([*range(100)] * 3)


def test_kill_9_loses_nothing_that_log_returned_from(run):
    process = run.start(
        """
        import holdfast, os
        step = 0
        while True:
            holdfast.log("loss", 0.5, step=step)
            os.write(1, b"%d\\n" % step)
            step += 1
        """
    )
    assert process.stdout is not None and process.stderr is not None
    said = [process.stdout.readline() for _ in range(500)]
    process.send_signal(signal.SIGKILL)
    said += process.stdout.readlines()
    process.stderr.close()
    process.stdout.close()
    assert process.wait() == -signal.SIGKILL
    returned = [int(line) for line in said if line.endswith("\n")]
    assert run.steps("loss")[: len(returned)] == returned


def test_a_full_disk_loses_only_what_did_not_fit(run):
    done = run.execute(
        """
        import holdfast, resource
        holdfast.log("loss", 1.0, step=1)
        resource.setrlimit(resource.RLIMIT_FSIZE, (150, resource.RLIM_INFINITY))
        for step in range(2, 5):
            holdfast.log("loss", 1.0, step=step)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        holdfast.log("loss", 1.0, step=5)
        holdfast.log("loss", 1.0, step=6)
        """
    )
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1
    assert run.steps("loss") == [1, 2, 5, 6]


def test_closing_all_descriptors_neither_stops_logging_nor_spoils_the_next_file(run):
    done = run.execute(
        """
        import holdfast, os
        holdfast.log("loss", 1.0, step=1)
        os.closerange(3, 4096)
        checkpoint = open("checkpoint", "w")
        holdfast.log("loss", 1.0, step=2)
        holdfast.log("loss", 1.0, step=3)
        checkpoint.write("weights")
        checkpoint.close()
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert run.steps("loss") == [1, 2, 3]
    assert (run.directory / "checkpoint").read_text() == "weights"


def test_a_loss_that_becomes_nan_or_infinite_in_a_loop_is_kept(api, run):
    for step, loss in enumerate((0.5, math.inf, math.nan, -math.inf, 0.25)):
        api.log("loss", loss, step=step)
    assert list(map(str, run.values()["loss"])) == ["0.5", "inf", "nan", "-inf", "0.25"]
    assert run.steps("loss") == [0, 1, 2, 3, 4]
