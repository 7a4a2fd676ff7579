"""Looking at runs on several machines, and from a second laptop. A machine is this one with another home; each has a
real far side."""

from __future__ import annotations

import os
import sys
import threading
import time

import pytest

from holdfast.errors import HostKeyRefused, LoginNeeded, ProjectError, Unreachable, UsageError
from holdfast.hosts.connection import Connection, new_nonce
from holdfast.model import Reason, Status
from holdfast.workbench.reach import contacts, events
from holdfast.workbench.reach.contacts import LOGIN_NEEDED, silences
from holdfast.workbench.records import import_runs, refresh
from holdfast.workbench.records.cancel import cancel
from holdfast.workbench.records.clean import Rubbish, clean
from kit.laptops import NOON, ended, removed
from kit.waiting import wait_for


def test_many_runs_on_many_machines_take_one_connection_each_and_no_question(laptop, boxes):
    started = [laptop.start(target) for target in ("gpu1", "gpu2", "gpu1", "gpu3", "gpu2", "gpu1")]
    for box in boxes.values():
        box.open_gate()
    laptop.look_until_ended(*started)
    assert {laptop.read(run).status for run in started} == {Status.COMPLETED}
    for run in started:
        assert (laptop.folders.path(run) / "outputs/result").read_text() == "made on " + laptop.read(
            run
        ).submission.target
    assert not any(may_ask for box in boxes.values() for may_ask in box.connections)
    one_more = laptop.start("gpu1"), laptop.start("gpu1"), laptop.start("gpu2")
    laptop.look()
    assert [len(boxes[name].connections) for name in ("gpu1", "gpu2")] == [1, 1]
    laptop.look_until_ended(*one_more)


def told(happened):
    """Without events that only say that a record is newer."""
    return [each for each in happened if not isinstance(each, events.RunChanged)]


def test_machines_are_asked_at_the_same_time(laptop, boxes):
    """Each waits until the other was asked: in sequence, the first would wait for ever."""
    started = {laptop.start("gpu1"), laptop.start("gpu2")}
    both = threading.Barrier(2, timeout=60)
    for name in ("gpu1", "gpu2"):
        boxes[name].before = lambda: both.wait() and None
    assert {events.RunChanged(each) for each in started} == set(laptop.look())
    assert not both.broken


def test_a_machine_that_is_down_does_not_keep_the_others_from_being_asked(laptop, boxes):
    lost, found = laptop.start("gpu1"), laptop.start("gpu2")
    boxes["gpu1"].trouble = Unreachable("gpu1 cannot be reached: ssh: connect to host gpu1: Connection refused")
    boxes["gpu2"].open_gate()
    deadline = time.monotonic() + 60
    while not laptop.folders.is_collected(found):
        assert events.HostSilent("gpu1", NOON, "Connection refused") in laptop.look()
        assert time.monotonic() < deadline
    assert laptop.read(found).status is Status.COMPLETED
    assert not laptop.read(lost).status.is_final
    assert list(silences(laptop.project, [lost, found], laptop.context)) == [lost]


def test_since_when_a_machine_is_silent_is_since_the_first_try_that_failed(laptop, boxes):
    run = laptop.start("gpu1")
    laptop.look()
    contact = contacts.read(laptop.project, "gpu1")
    assert (contact.reached, contact.unreachable_since) == (NOON, None)
    boxes["gpu1"].trouble = Unreachable("gpu1 is asleep.")
    assert laptop.look() == [events.HostSilent("gpu1", NOON, "is asleep")]
    laptop.time += 600
    boxes["gpu1"].trouble = Unreachable("gpu1 cannot be reached: No route to host")
    assert laptop.look() == [events.HostSilent("gpu1", NOON, "No route to host")]
    assert silences(laptop.project, [run], laptop.context)[run].since == NOON
    boxes["gpu1"].trouble = None
    # The run itself continues meanwhile, so the look may find it changed.
    assert [each for each in laptop.look() if not isinstance(each, events.RunChanged)] == []
    assert silences(laptop.project, [run], laptop.context) == {}


def test_a_machine_that_would_ask_for_a_password_needs_a_login_and_is_not_called_unreachable(laptop, boxes):
    run = laptop.start("gpu1")
    boxes["gpu1"].trouble = LoginNeeded("gpu1 refused the login.")
    assert laptop.look() == [events.HostSilent("gpu1", NOON, LOGIN_NEEDED, needs_login=True)]
    assert silences(laptop.project, [run], laptop.context)[run].needs_login


def test_a_changed_host_key_is_told_with_what_to_do(laptop, boxes):
    laptop.start("gpu1")
    boxes["gpu1"].trouble = HostKeyRefused("The key of gpu1 changed.", "Ask its administrator.")
    (told,) = laptop.look()
    assert (told.reason, told.remedy) == (
        "host key refused",
        "The key of gpu1 changed.\nAsk its administrator.",
    )


def test_a_machine_that_hangs_is_left_and_its_runs_are_let_go(laptop, boxes):
    laptop.start("gpu1")
    hanging: list[Connection] = []

    def connect(may_ask: bool = True) -> Connection:
        hanging.append(Connection([sys.executable, "-c", "import sys; sys.stdin.read()"], new_nonce()))
        return hanging[0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boxes["gpu1"], "connect", connect)
        assert laptop.look(first=0.1) == [events.HostSilent("gpu1", NOON, "does not answer")]
    hanging[0]._end._process.wait(60)  # its connection was closed, so that no process is left
    deadline = time.monotonic() + 60
    while contacts.read(laptop.project, "gpu1").unreachable_since is not None:
        assert told(laptop.look()) == []
        assert time.monotonic() < deadline, "a waiting process still holds the run"


def test_a_watcher_sees_which_machine_all_wait_for(laptop, boxes, monkeypatch):
    monkeypatch.setattr(refresh, "TICK", 0.0)
    laptop.start("gpu1")
    laptop.start("gpu2")
    laptop.look()
    told = threading.Event()
    boxes["gpu2"].before = lambda: told.wait(60) and None
    seen = []
    for event in refresh.refresh(laptop.project, laptop.context):
        seen.append(event)
        if event == events.AskingHosts(("gpu2",)):
            told.set()
    assert told.is_set(), seen


def test_large_outputs_wait_until_they_are_wanted_and_the_end_is_known_anyway(laptop, boxes, monkeypatch):
    monkeypatch.setattr(refresh, "FETCHED_BY_THE_WAY", 5)
    run = laptop.start("gpu1")
    boxes["gpu1"].open_gate()
    deadline = time.monotonic() + 60
    while not laptop.read(run).status.is_final:
        happened = laptop.look()
        assert time.monotonic() < deadline
    assert happened == [events.OutputsWait(run, "gpu1", len("made on gpu1")), events.RunChanged(run)]
    assert not laptop.folders.is_collected(run)
    assert [each for each in laptop.look(whole=frozenset((run,))) if not isinstance(each, events.Fetched)] == []
    assert (laptop.folders.path(run) / "outputs/result").read_text() == "made on gpu1"
    assert laptop.folders.is_collected(run)


def test_only_the_run_that_is_meant_is_asked_about(laptop, boxes):
    run = laptop.start("gpu1")
    laptop.start("gpu2")
    laptop.look(only=frozenset((run,)))
    assert [len(box.connections) for box in boxes.values()] == [1, 0, 0]


def test_run_id_and_target_are_enough_on_a_second_laptop(laptop, new_laptop, boxes):
    run = laptop.start("gpu1", "gpu1", "--rate", "0.1")
    (log,) = boxes["gpu1"].folder.glob(f"runs/*/{run}/driver_log")
    wait_for(lambda: log.read_bytes() == b"first line\n", what="the first line on the box")
    for identity in ("ab" * 16, "cd" * 16, None):
        second = new_laptop(f"second-{identity}", identity)
        happened = list(import_runs.import_run(second.project, run, "gpu1", second.context))
        assert told(happened) == [events.Imported(run)]
        record = second.read(run)
        assert record.submission.arguments == ("gpu1", "--rate", "0.1")
        assert record.submission.project_id == "ab" * 16
        assert record.submission.properties["imported"] == "from gpu1"
        assert second.folders.configuration(run) == laptop.folders.configuration(run)
        assert (second.folders.path(run) / "driver_log").read_bytes() == b"first line\n"
    boxes["gpu1"].open_gate()
    second.look_until_ended(run)
    assert (second.folders.path(run) / "outputs/result").read_text() == "made on gpu1"
    laptop.look_until_ended(run)


def test_the_code_of_an_imported_run_can_be_restored(laptop, new_laptop, boxes, tmp_path):
    from holdfast.snapshots.restore import restore_snapshot
    from holdfast.snapshots.store import ObjectStore

    (laptop.root / "weights").write_bytes(os.urandom((2 << 20) + 17))
    (laptop.root / "more").write_bytes(bytes(1 << 20))
    (laptop.root / "empty").touch()
    (laptop.root / "link").symlink_to("empty")
    run = laptop.start("gpu1")
    second = new_laptop("second")
    list(import_runs.import_run(second.project, run, "gpu1", second.context))
    objects = ObjectStore(second.root / ".holdfast/objects")
    restore_snapshot(objects, second.read(run).submission.snapshot, tmp_path / "restored")
    for name in ("weights", "more", "empty", "train.py"):
        assert (tmp_path / "restored" / name).read_bytes() == (laptop.root / name).read_bytes()


def test_a_record_that_was_damaged_on_the_host_is_passed_over(laptop, new_laptop, boxes):
    damaged, whole = laptop.start("gpu1"), laptop.start("gpu1")
    next(boxes["gpu1"].folder.glob(f"runs/*/{damaged}/submission.json")).write_text("")
    second = new_laptop("second")
    warned, *rest = import_runs.import_runs(second.project, "gpu1", None, False, second.context)
    assert warned == events.Warned(f"{damaged} was not imported: its record on `gpu1` is damaged.")
    assert told(rest) == [events.Imported(whole)]


def test_all_runs_of_the_project_are_imported_with_their_own_numbers_and_once(laptop, new_laptop, boxes):
    started = [laptop.start("gpu1") for _ in range(3)]
    boxes["gpu1"].open_gate()
    laptop.look_until_ended(*started)
    other = new_laptop("other", "cd" * 16)
    other.time += 1
    foreign = other.start("gpu1")
    other.look_until_ended(foreign)
    boxes["gpu1"].connections.clear()

    second = new_laptop("second")
    happened = list(import_runs.import_runs(second.project, "gpu1", None, False, second.context))
    assert [each for each in happened if isinstance(each, events.Imported)] == [events.Imported(run) for run in started]
    assert len(boxes["gpu1"].connections) == 1
    assert [second.read(run).submission.run_number for run in started] == [1, 2, 3]
    assert {second.read(run).status for run in started} == {Status.COMPLETED}
    assert all(second.folders.is_collected(run) for run in started)
    assert list(import_runs.import_runs(second.project, "gpu1", None, False, second.context)) == []
    list(import_runs.import_runs(second.project, "gpu1", "cd" * 3, False, second.context))
    assert set(second.folders.all_ids()) == {*started, foreign}


def test_a_project_that_the_machine_does_not_know_is_told_which_ones_it_does(laptop, new_laptop, boxes):
    stranger = new_laptop("stranger", "cd" * 16)
    with pytest.raises(ProjectError, match="`gpu1` has no runs at all"):
        list(import_runs.import_runs(stranger.project, "gpu1", None, False, stranger.context))
    run = laptop.start("gpu1")
    with pytest.raises(ProjectError) as caught:
        list(import_runs.import_runs(stranger.project, "gpu1", None, False, stranger.context))
    assert caught.value.message == f"`gpu1` has no runs of this project (id {'cd' * 16})."
    assert f"It has: iris (id {'ab' * 16}, 1 run)" in caught.value.hint
    list(import_runs.import_runs(stranger.project, "gpu1", "iris", False, stranger.context))
    assert stranger.folders.all_ids() == (run,)


def test_another_run_of_the_same_id_is_refused(laptop, new_laptop, boxes):
    run = laptop.start("gpu1")
    second = new_laptop("second")
    list(import_runs.import_run(second.project, run, "gpu1", second.context))
    near = second.folders.path(run) / "submission.json"
    near.write_text(near.read_text().replace(laptop.read(run).submission.generation, "0" * 32))
    laptop.time += 1
    another = laptop.start("gpu1")
    refused, *rest = import_runs.import_runs(second.project, "gpu1", None, False, second.context)
    assert isinstance(refused, events.Warned)
    assert refused.message.startswith(f"{run} was not imported: there is another run of that id here")
    assert told(rest) == [events.Imported(another)]


def test_a_run_that_is_nowhere_and_one_that_could_be_several_are_said_so(laptop, new_laptop, boxes):
    laptop.start("gpu1")
    laptop.start("gpu1")
    second = new_laptop("second")
    with pytest.raises(UsageError, match="neither here nor on `gpu1`"):
        list(import_runs.import_run(second.project, "nothing_1", "gpu1", second.context))
    with pytest.raises(UsageError, match="any of 2 runs on `gpu1`"):
        list(import_runs.import_run(second.project, "iris_", "gpu1", second.context))
    with pytest.raises(UsageError, match="There is no compute target `gpu9`"):
        list(import_runs.import_run(second.project, "iris_1", "gpu9", second.context))
    assert second.folders.all_ids() == ()


def test_a_second_laptop_cancels_a_run(laptop, new_laptop, boxes):
    run = laptop.start("gpu1")
    second = new_laptop("second", "cd" * 16)
    list(import_runs.import_run(second.project, run, "gpu1", second.context))
    assert ended(cancel(second.project, run, second.context, grace=0.0)).ending.reason is Reason.CANCELED
    laptop.look_until_ended(run)
    assert laptop.read(run).ending.reason is Reason.CANCELED


def test_a_run_is_canceled_over_another_connection_when_the_first_one_breaks(laptop, boxes, monkeypatch):
    run = laptop.start("gpu1")
    connect = boxes["gpu1"].connect
    made: list[Connection] = []

    def break_the_first(may_ask: bool = True) -> Connection:
        made.append(connect(may_ask))
        if len(made) == 1:
            made[0]._end.kill()
        return made[-1]

    monkeypatch.setattr(boxes["gpu1"], "connect", break_the_first)
    assert ended(cancel(laptop.project, run, laptop.context, grace=0.0)).ending.reason is Reason.CANCELED


def test_cleaning_goes_on_where_a_machine_is_down(laptop, boxes):
    lost, done, living = laptop.start("gpu1"), laptop.start("gpu2"), laptop.start("gpu3")
    boxes["gpu1"].open_gate()
    boxes["gpu2"].open_gate()
    laptop.look_until_ended(lost, done)
    boxes["gpu1"].trouble = Unreachable("gpu1 cannot be reached: Connection refused")
    happened = list(clean(laptop.project, Rubbish(), laptop.context))
    assert events.HostSilent("gpu1", NOON, "Connection refused") in happened
    removed = {each.name: each.kept for each in happened if isinstance(each, events.Removed)}
    assert removed == {done: "", living: "it has not ended, or its outputs are not at home yet"}
    assert not list(boxes["gpu2"].folder.glob(f"runs/*/{done}"))
    assert list(boxes["gpu1"].folder.glob(f"runs/*/{lost}"))
    assert list(boxes["gpu3"].folder.glob(f"runs/*/{living}"))


def test_a_machine_that_was_named_and_cannot_be_cleaned_is_an_error_after_the_others(laptop, boxes):
    lost, done = laptop.start("gpu1"), laptop.start("gpu2")
    boxes["gpu1"].open_gate()
    boxes["gpu2"].open_gate()
    laptop.look_until_ended(lost, done)
    boxes["gpu1"].trouble = Unreachable("gpu1 cannot be reached: Connection refused")
    with pytest.raises(Unreachable, match="Connection refused"):
        list(clean(laptop.project, Rubbish(None, "gpu1"), laptop.context))
    happened = []
    with pytest.raises(Unreachable, match="Connection refused"):
        for event in clean(laptop.project, Rubbish((lost, done)), laptop.context):
            happened.append(event)
    assert [each.name for each in happened if isinstance(each, events.Removed)] == [done]


def test_cleaning_everything_removes_what_no_run_needs_and_nothing_that_one_may(laptop, boxes):
    box = boxes["gpu1"].folder
    (laptop.root / "once").write_text("only in the first snapshot")
    done = laptop.start("gpu1")
    boxes["gpu1"].open_gate()
    laptop.look_until_ended(done)
    (laptop.root / "once").unlink()
    (box / "gate").unlink()
    living = laptop.start("gpu1")
    needed = laptop.read(living).submission.snapshot
    before = {each.parent.name + each.name for each in box.glob("objects/??/*")}
    share = box / "share" / laptop.project.id / "kept"
    share.parent.mkdir(parents=True, exist_ok=True)
    share.write_text("shared")
    for name in ("0" * 16, "1" * 16):
        (box / "farside" / name / "holdfast").mkdir(parents=True)
    (box / "cache" / "wheels").mkdir(parents=True)
    (box / "cache" / "wheels" / "one").write_bytes(bytes(1000))

    happened = removed(told(clean(laptop.project, Rubbish(None, "gpu1"), laptop.context)))
    assert {each.name for each in happened if not each.kept} == {done}, "all else is younger than an hour"
    old = time.time() - 4000
    for path in [*box.glob("objects/??/*"), *box.glob("farside/*")]:
        os.utime(path, (old, old))
    os.utime(box / "farside" / ("1" * 16))
    happened = removed(told(clean(laptop.project, Rubbish(None, "gpu1", True), laptop.context)))
    after = {each.parent.name + each.name for each in box.glob("objects/??/*")}
    assert needed in after
    assert len(before - after) == 2, "the file and the manifest of the run that is gone"
    (files,) = {each.name for each in happened if not each.kept} ^ {f"far side {'0' * 16}", "package cache"}
    assert files.startswith("2 files")
    assert share.read_text() == "shared"
    boxes["gpu1"].open_gate()
    laptop.look_until_ended(living)
    assert laptop.read(living).status is Status.COMPLETED
