"""Whether a run used its GPUs: from the journal to queries, whatever the journal holds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.codec import decode, encode
from holdfast.frozen import replace
from holdfast.history.index import Index
from holdfast.history.journal_fold import GpusJudged
from holdfast.history.queries import run_as_dict
from holdfast.history.records import read_run
from holdfast.history.run_differences import RunView, compare_runs
from holdfast.model import GpuUse, Run, UseState, Verdict
from holdfast.presenting.lines import Mark, Role
from holdfast.presenting.run_words import VERDICT_ROLES, verdict_mark
from kit.journals import parsed

DEVICE = {
    "number": 0,
    "uuid": "GPU-1",
    "name": "Tesla K80",
    "mean": 74.2,
    "peak_memory": 8_804_682_957,
    "first_use": 4.0,
    "busy": 0.8,
    "is_leased": True,
}
EVENT = {
    "t": 1_521_077_198.5,
    "e": "gpu",
    "state": "used",
    "reason": "ok",
    "sentence": "GPU used: Tesla K80 (GPU-1), 74 % mean",
    "remedy": "",
    "devices": [DEVICE],
    "waited": 0.2,
    "spells": [[0.0, 4.0], [10.5, 12.0]],
    "evidence": "utilisation",
}
VERDICT = Verdict(
    UseState.USED,
    "ok",
    str(EVENT["sentence"]),
    "",
    (GpuUse(0, "GPU-1", "Tesla K80", 74.2, 8_804_682_957, 4.0, 0.8, True),),
    0.2,
    ((0.0, 4.0), (10.5, 12.0)),
    "utilisation",
)


def verdict_of(data):
    (event,) = parsed(json.dumps({**EVENT, **data, "t": 1.0, "e": "gpu"}).encode() + b"\n").events
    assert isinstance(event, GpusJudged)
    return event.verdict


def test_the_verdict_of_the_journal_is_the_runs_and_can_be_asked_for(archive):
    run_id = archive.add((*archive.completed[:-1], EVENT, archive.completed[-1]))
    run = read_run(archive.folders, run_id)
    assert run.gpu == VERDICT
    shown = run_as_dict(run)["gpu"]
    assert shown == {key: value for key, value in EVENT.items() if key not in ("t", "e")}
    assert Index(archive.state).documents().documents[0]["gpu"] == shown
    assert Index(archive.state).list()[0].gpu == VERDICT
    assert decode(Run, json.loads(json.dumps(encode(run)))).gpu == VERDICT


def test_the_first_verdict_counts(archive):
    second = {**EVENT, "state": "unknown", "reason": "supervisor-lost"}
    run = read_run(archive.folders, archive.add((*archive.running, EVENT, second)))
    assert run.gpu == VERDICT


def test_a_state_of_a_later_version_reads_as_unknown():
    found = verdict_of({"state": "used-in-another-way"})
    assert (found.state, found.sentence) == (UseState.UNKNOWN, VERDICT.sentence)


@pytest.mark.parametrize("state", [None, 3, ["used"]])
def test_a_verdict_without_a_state_is_a_line_that_cannot_be_read(state):
    journal = parsed(json.dumps({**EVENT, "state": state}).encode() + b"\n")
    assert (journal.events, journal.bad_lines) == ((), 1)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(list(DEVICE)), inner),
    max_leaves=12,
)


@settings(max_examples=40)
@given(st.fixed_dictionaries({key: values for key in EVENT if key != "state"}))
def test_whatever_stands_in_a_verdict_nothing_raises_and_it_comes_back_the_same(data):
    found = verdict_of({**data, "state": "used"})
    assert verdict_of(json.loads(json.dumps(encode(found)))) == found
    verdict_mark(found)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (UseState.USED, "used"),
        (UseState.PARTLY_USED, "partly"),
        (UseState.NOT_USED, "NOT used"),
        (UseState.NOT_ASKED, ""),
        (UseState.NOT_AVAILABLE, "not available"),
        (UseState.UNKNOWN, "unknown"),
    ],
)
def test_every_state_has_its_few_words(state, words):
    assert verdict_mark(Verdict(state)) == ((words and Mark(words, VERDICT_ROLES[state])) or None)
    assert verdict_mark(None) is None


def test_the_mean_is_that_of_the_devices_that_were_used():
    idle, busy = GpuUse(0, "a", "K80", 0.0), GpuUse(1, "b", "K80", 60.4, None, 1.0)
    found = verdict_mark(Verdict(UseState.USED, devices=(idle, busy, replace(busy, mean=80.4))))
    assert found == Mark("used 70 %", Role.GOOD)


def use_of(archive, **changes):
    return read_run(archive.folders, archive.add((*archive.running, {**EVENT, **changes})))


def compared(first, second):
    found = compare_runs(RunView(first, {}), RunView(second, {})).facts
    return [(each.name, each.first, each.second) for each in found]


def test_gpu_use_is_compared_by_state_reason_and_devices(archive):
    used = use_of(archive)
    unused = use_of(archive, state="not-used", reason="cpu-build", devices=[])
    assert compared(used, unused) == [("GPU", "used (Tesla K80)", "NOT used (cpu-build)")]
    other = {**DEVICE, "name": "A100"}
    assert compared(used, use_of(archive, devices=[other, other])) == [("GPU", "used (Tesla K80)", "used (2 A100)")]
    left = use_of(archive, reason="memory-left")
    assert compared(used, left) == [("GPU", "used (Tesla K80)", "used (memory-left, Tesla K80)")]


def test_how_much_a_gpu_was_used_is_no_difference(archive):
    other = {**DEVICE, "mean": 73.1, "uuid": "GPU-2", "peak_memory": 1}
    assert compared(use_of(archive), use_of(archive, devices=[other], sentence="GPU used: 73 % mean")) == []


def test_a_run_that_asked_for_no_gpu_is_as_one_that_ended_before_a_verdict(archive):
    old = read_run(archive.folders, archive.add(archive.running))
    idle = {**DEVICE, "first_use": None}
    assert old.gpu is None
    assert compared(old, use_of(archive, state="not-asked", reason="not-asked", devices=[idle])) == []
    assert compared(old, use_of(archive)) == [("GPU", None, "used (Tesla K80)")]


@pytest.mark.parametrize("value", [True, False, -1, 2**53, float("nan"), float("inf"), "1", [1]])
def test_what_is_no_amount_is_not_known(value):
    device = {**DEVICE, "mean": value, "peak_memory": value, "first_use": value, "busy": value}
    found = verdict_of({"devices": [device], "waited": value, "spells": [[value, 5], [0, value]]})
    assert found.devices == (GpuUse(0, "GPU-1", "Tesla K80", None, None, None, None, True),)
    assert (found.waited, found.spells) == (None, ())


def test_a_spell_ends_after_it_began():
    found = verdict_of({"spells": [[5, 4], [4, 4], [4, 5], [1], [1, 2, 3], "ab", {}]})
    assert found.spells == ((4.0, 4.0), (4.0, 5.0))
