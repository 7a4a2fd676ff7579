"""The fold of a journal: total, and never more optimistic than the journal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.codec import decode, encode
from holdfast.errors import StorageError
from holdfast.history.records import read_run
from holdfast.model import OUTCOMES, EndedProcess, Ending, Reason, Run, Status
from holdfast.written_files import FileSize, LeftThere
from kit import journals
from kit.journals import parsed


def line(**event: Any) -> bytes:
    return json.dumps({"t": 100.0, **event}).encode() + b"\n"


CREATED, STARTED = line(e="created"), line(e="started", pid=1)


@pytest.fixture
def folded(submission):
    """`folded(data)`: the run of this journal."""
    return lambda data: journals.folded(submission, data)


def test_a_whole_journal_gives_every_field_of_the_run(archive):
    run_id = archive.add(archive.completed, {"accuracy": 0.9})
    run = read_run(archive.folders, run_id)
    begin = run.submission.created

    assert run.status is Status.COMPLETED
    assert run.ending == Ending(Reason.COMPLETED, code=0)
    assert run.started == pytest.approx(begin + 4)
    assert run.duration == pytest.approx(4.892389)
    assert run.phase == ""
    assert run.environment == "env-1"
    assert run.packages == ("numpy==1.26.4", "torch==2.1.0")
    assert run.ended_processes == (EndedProcess(9, "loader", "SIGTERM"),)
    assert run.outputs == (FileSize("outputs/model.pkl", 5),)
    assert run.other_files == (FileSize("scratch.bin", 12),)
    assert run.other_files_count == 1
    assert run.metrics == {"accuracy": 0.9}
    assert run.notes == ()


def test_what_is_seen_to_after_the_scripts_end_is_not_its_time(folded):
    going_on = line(e="started", t=100.0) + line(e="exited", t=105.0, code=0) + line(e="exited", t=107.0, code=0)
    run = folded(going_on)
    assert (run.duration, run.running_time(1e10)) == (None, 5.0)
    ended = folded(going_on + line(e="ended", t=109.2, reason="completed", code=0))
    assert (ended.ended, ended.duration, ended.running_time(1e10)) == (109.2, 5.0, 5.0)
    assert decode(Run, encode(ended)) == ended
    unseen = folded(line(e="started", t=100.0) + line(e="ended", t=109.0, reason="lost"))
    assert unseen.duration == 9.0


@pytest.mark.parametrize("reason", [each for each in Reason if each is not Reason.ABANDONED])
def test_every_reason_gives_its_status(folded, reason):
    data = CREATED + STARTED + line(e="ended", reason=reason.value, code=3, signal=9, detail="why")
    run = folded(data)
    assert run.ending == Ending(reason, 3, 9, "why")
    assert run.status is OUTCOMES[reason].status
    assert (run.status is Status.COMPLETED) == (reason is Reason.COMPLETED)


@pytest.mark.parametrize(
    ("data", "status", "phase"),
    [
        (b"", Status.SUBMITTED, ""),
        (CREATED, Status.PREPARING, ""),
        (line(e="phase", name="environment", text="installing"), Status.PREPARING, "installing"),
        (line(e="phase", name="environment"), Status.PREPARING, "environment"),
        (line(e="created", engine="slurm"), Status.QUEUED, ""),
        (line(e="created", engine="slurm") + line(e="queued", text="3 jobs ahead"), Status.QUEUED, "3 jobs ahead"),
        (STARTED + line(e="queued", text="late"), Status.RUNNING, ""),
        (CREATED + STARTED, Status.RUNNING, ""),
        (STARTED + CREATED, Status.RUNNING, ""),
        (CREATED + STARTED + line(e="exited", code=0), Status.RUNNING, ""),
        (
            CREATED + STARTED + line(e="ending", cause="cancel", grace=90),
            Status.RUNNING,
            "being canceled: 1m30s to finish",
        ),
        (CREATED + line(e="ending", cause="invented"), Status.PREPARING, "being ended: 0s to finish"),
        (line(e="invented", x=1), Status.SUBMITTED, ""),
    ],
)
def test_a_run_without_an_ending_is_where_its_events_say(folded, data, status, phase):
    run = folded(data)
    assert (run.status, run.phase, run.ending, run.ended) == (status, phase, None, None)


def test_a_run_in_a_container_knows_its_image_by_name_and_id(folded):
    data = CREATED + line(e="container", image="sha256:ab", image_name="ubuntu:24.04", name="holdfast-x", gpus=None)
    run = folded(data)
    assert (run.image, run.image_id, run.container) == ("ubuntu:24.04", "sha256:ab", "holdfast-x")
    assert run.status is Status.PREPARING
    assert decode(Run, json.loads(json.dumps(encode(run)))) == run
    assert folded(data + STARTED + line(e="container", image=3)).image_id is None


@pytest.mark.parametrize(("written", "known"), [(True, True), (False, False), (None, False), ("yes", False)])
def test_a_run_in_a_container_knows_whether_it_was_given_gpus(folded, written, known):
    run = folded(CREATED + line(e="container", image="sha256:ab", gpus=written))
    assert run.has_gpus is known
    assert decode(Run, json.loads(json.dumps(encode(run)))) == run
    assert folded(CREATED).has_gpus is None


@pytest.mark.parametrize(
    ("data", "ending"),
    [
        (
            STARTED + line(e="ended", reason="evicted", detail="by the queue"),
            Ending(Reason.UNKNOWN, detail="evicted by the queue"),
        ),
        (
            CREATED + line(e="ended", reason="abandoned", detail="why"),
            Ending(Reason.UNKNOWN, detail="abandoned why"),
        ),
        (
            line(e="ended", reason="exit-code", code=1) + line(e="ended", reason="completed", code=0) + STARTED,
            Ending(Reason.EXIT_CODE, 1),
        ),
    ],
    ids=["an unknown reason is named", "no host can say that a run was given up here", "the first ending counts"],
)
def test_what_is_not_surely_a_success_is_a_failure(folded, data, ending):
    run = folded(data)
    assert (run.status, run.ended, run.ending) == (Status.FAILED, 100.0, ending)


def test_an_ending_without_its_newline_does_not_count_yet(folded):
    ended = line(e="ended", reason="completed", code=0)
    assert folded(STARTED + ended[:-1]).status is Status.RUNNING
    assert folded(STARTED + ended).status is Status.COMPLETED


def test_an_ending_that_is_not_home_whole_does_not_count_yet(archive):
    run_id = archive.add(archive.running)
    ended = line(e="ended", reason="completed", code=0)
    for part, status in ((ended[:-1], Status.RUNNING), (ended[-1:], Status.COMPLETED)):
        with (archive.folders.path(run_id) / "journal.jsonl").open("ab") as journal:
            journal.write(part)
        assert read_run(archive.folders, run_id).status is status


def test_bad_lines_are_counted_and_the_rest_is_read(folded):
    data = CREATED + b"{torn\n" + b"\xff\xfe\n" + b"[1]\n" + line(e=5) + b"\n" + line(e="started", t="x") + STARTED
    assert parsed(data).bad_lines == 5
    run = folded(data)
    assert run.status is Status.RUNNING
    assert run.notes == ("5 lines of the run's journal could not be read.",)


def test_zero_bytes_of_a_power_cut_do_not_hide_the_next_line(folded):
    data = CREATED + b"\0" * 4096 + STARTED + b"\0\0\n"
    assert parsed(data).bad_lines == 2
    assert folded(data).status is Status.RUNNING


@pytest.mark.parametrize("bad", ["NaN", "Infinity", "-1", "1e999", "true", "null", "253402300800", '"1"'])
def test_a_time_that_no_clock_gives_makes_the_line_bad(bad):
    journal = parsed(f'{{"t": {bad}, "e": "started"}}\n'.encode())
    assert (journal.events, journal.bad_lines) == ((), 1)


def test_processes_that_are_only_counted_are_noted(folded):
    data = line(e="swept", processes=[[1, "a", 15], [2, "b", "SIGKILL"], "odd", [1]], count=4)
    run = folded(data)
    assert run.ended_processes == (EndedProcess(1, "a", "SIGTERM"), EndedProcess(2, "b", "SIGKILL"))
    assert run.notes == ("2 more processes were ended.",)


def test_notes_of_the_journal_are_kept_in_order(folded):
    data = line(e="note", text="first") + line(e="note", text="second")
    assert folded(data).notes == ("first", "second")


def test_a_journal_that_cannot_be_opened_is_a_storage_error(archive):
    run_id = archive.add(journal=())
    (archive.folders.path(run_id) / "journal.jsonl").mkdir()
    with pytest.raises(StorageError, match="read the journal of run"):
        read_run(archive.folders, run_id)


keys = ["t", "e", "reason", "code", "signal", "detail", "name", "text", "id", "packages", "processes", "count"]
words = ["created", "phase", "environment", "started", "ending", "exited", "swept", "files", "note", "ended"]
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.sampled_from([*words, "completed"])
)
values = scalars | st.lists(scalars | st.lists(scalars, max_size=3), max_size=3)
events = st.builds(
    lambda event, rest: {**rest, "e": event},
    st.sampled_from(words) | values,
    st.dictionaries(st.sampled_from([*keys, "outputs", "others", "others_count"]), values),
).flatmap(lambda event: st.just(event) | st.just({**event, "t": 5.0}))
lines = st.one_of(
    events.map(lambda event: json.dumps(event).encode()),
    st.binary(max_size=30),
    st.just(b'{"t": 1, "e": "ended", "reason": "completed"}'),
    st.just(b'{"t": 1, "e": "ended", "reason": "compl'),
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(lines, max_size=6), st.sampled_from([b"", b"\n"]))
def test_any_bytes_give_a_run_and_completed_only_with_a_whole_ending(folded, parts, end):
    data = b"\n".join(parts) + end
    run = folded(data)
    assert decode(Run, json.loads(json.dumps(encode(run)))) == run
    if run.status is Status.COMPLETED:
        assert any(_says_completed(part) for part in data.split(b"\n")[:-1])


def _says_completed(part: bytes) -> bool:
    try:
        event = json.loads(part.strip(b"\0 \t\r"))
    except ValueError:
        return False
    return isinstance(event, dict) and event.get("e") == "ended" and event.get("reason") == "completed"


@pytest.mark.parametrize("data", [b"[" * 200_000 + b"\n", b"1" * 6000 + b"\n", b'{"t":' + b"9" * 6000 + b"}\n"])
def test_lines_that_upset_the_parser_are_bad_lines(data):
    assert parsed(data).bad_lines == 1


def test_a_run_that_was_given_up_is_neither_failed_nor_canceled_and_its_journal_is_not_touched(archive):
    run_id = archive.add(archive.running, target="gpu1", target_type="remote")
    before = (archive.folders.path(run_id) / "journal.jsonl").read_bytes()
    archive.folders.write_abandoned(run_id, "No route to host", 5.0)
    run = read_run(archive.folders, run_id)
    assert (run.status, run.ending) == (Status.ABANDONED, Ending(Reason.ABANDONED, detail="No route to host"))
    assert not run.status.is_final
    assert (run.ended, run.duration, run.running_time(1e10)) == (None, None, None)
    assert (archive.folders.path(run_id) / "journal.jsonl").read_bytes() == before


def test_the_hosts_own_word_counts_more_than_that_a_run_was_given_up(archive):
    run_id = archive.add(archive.completed)
    archive.folders.write_abandoned(run_id, "No route to host", 5.0)
    assert read_run(archive.folders, run_id).status is Status.COMPLETED
    going_on = archive.add(archive.running)
    archive.folders.write_abandoned(going_on, "No route to host", 5.0)
    for _ in ("once", "a repeat changes nothing"):
        archive.folders.take_up_again(going_on)
        assert read_run(archive.folders, going_on).status is Status.RUNNING


@pytest.mark.parametrize("data", ["", "[]", "{}", '{"why": 3}'])
def test_a_damaged_note_that_a_run_was_given_up_still_is_one(archive, data):
    run_id = archive.add(archive.running)
    (archive.folders.path(run_id) / "abandoned.json").write_text(data)
    assert read_run(archive.folders, run_id).status is Status.ABANDONED


def test_outputs_that_were_left_there_and_fetched_later_are_not_said_to_be_there(archive):
    run_id = archive.add(fetch_outputs=False)
    for is_left in (True, False):
        (archive.folders.path(run_id) / "collected.json").write_text(json.dumps({"outputs_left": is_left}))
        run = read_run(archive.folders, run_id)
        assert run.outputs_left is is_left
        assert any("--no-outputs" in note for note in run.notes) is is_left


@pytest.mark.parametrize("left", [None, [], "x", {"files": 3}, {"files": [["a"]], "count": "many"}])
def test_what_is_only_on_the_machine_is_read_and_a_damaged_record_names_none(archive, left):
    run_id = archive.add(archive.completed)
    note = archive.folders.path(run_id) / "collected.json"
    note.write_text(json.dumps({"left": {"files": [["a", 5]], "count": 2, "size": 9}}))
    assert read_run(archive.folders, run_id).left == LeftThere((FileSize("a", 5),), 2, 9)
    assert archive.folders.is_only_there(run_id)
    note.write_text(json.dumps({"left": left}))
    assert read_run(archive.folders, run_id).left.files == ()
    assert not archive.folders.is_only_there(run_id)
