"""Whether a run used its GPUs: from the journal to queries, whatever the journal holds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.history.compare import RunView, compare_runs
from holdfast.history.index import Index
from holdfast.history.journal import parse_journal
from holdfast.history.queries import run_as_dict
from holdfast.history.records import read_run
from holdfast.history.values import run_from_json, run_json
from holdfast.history.verdicts import in_brief, verdict_json, verdict_of
from holdfast.model import GpuUse, UseState, Verdict

EVENT = {
    "t": 1_521_077_198.5,
    "e": "gpu",
    "state": "used",
    "reason": "ok",
    "sentence": "GPU used: Tesla K80 (GPU-1), 74 % mean, 8.20 GiB peak, first use after 4 s",
    "remedy": "",
    "devices": [
        {
            "number": 0,
            "uuid": "GPU-1",
            "name": "Tesla K80",
            "mean": 74.2,
            "peak_memory": 8_804_682_957,
            "first_use": 4.0,
            "busy": 0.8,
            "is_leased": True,
        }
    ],
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


def test_the_verdict_of_the_journal_is_the_runs_and_can_be_asked_for(archive):
    run_id = archive.add((*archive.completed[:-1], EVENT, archive.completed[-1]))
    run = read_run(archive.folders, run_id)
    assert run.gpu == VERDICT
    shown = run_as_dict(run)["gpu"]
    assert shown == {key: value for key, value in EVENT.items() if key not in ("t", "e")}
    assert Index(archive.state).documents().documents[0]["gpu"] == shown
    assert Index(archive.state).list()[0].gpu == VERDICT
    assert run_from_json(json.loads(json.dumps(run_json(run)))).gpu == VERDICT


def test_a_record_of_an_earlier_version_has_no_verdict(archive):
    record = run_json(read_run(archive.folders, archive.add()))
    assert record.pop("gpu") is None
    assert run_from_json(record).gpu is None


def test_the_first_verdict_counts(archive):
    second = {**EVENT, "state": "unknown", "reason": "supervisor-lost"}
    run = read_run(archive.folders, archive.add((*archive.running, EVENT, second)))
    assert run.gpu == VERDICT


def test_a_state_of_a_later_version_is_one_that_nobody_here_can_judge_by():
    found = verdict_of({**EVENT, "state": "used-in-another-way"})
    assert found is not None
    assert (found.state, found.sentence) == (UseState.UNKNOWN, VERDICT.sentence)


@pytest.mark.parametrize("state", [None, 3, ["used"]])
def test_a_verdict_without_a_state_is_a_line_that_cannot_be_read(state, journal_bytes):
    journal = parse_journal(journal_bytes({**EVENT, "state": state}))
    assert (journal.events, journal.bad_lines) == ((), 1)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(list(EVENT["devices"][0])), inner),
    max_leaves=12,
)


@given(st.fixed_dictionaries({key: values for key in EVENT if key != "state"}))
def test_whatever_stands_in_a_verdict_nothing_raises_and_it_comes_back_the_same(data):
    found = verdict_of({**data, "state": "used"})
    assert found is not None
    assert verdict_of(json.loads(json.dumps(verdict_json(found)))) == found
    in_brief(found)


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
    assert in_brief(Verdict(state)) == words
    assert in_brief(None) == ""


def test_the_mean_is_that_of_the_devices_that_were_used():
    idle, busy = GpuUse(0, "a", "K80", 0.0), GpuUse(1, "b", "K80", 60.4, None, 1.0)
    assert in_brief(Verdict(UseState.USED, devices=(idle, busy, busy._replace(mean=80.4)))) == "used 70 %"


def test_gpu_use_is_compared(archive):
    used = read_run(archive.folders, archive.add((*archive.running, EVENT)))
    not_used = {**EVENT, "state": "not-used", "reason": "cpu-build"}
    other = read_run(archive.folders, archive.add((*archive.running, not_used)))
    facts = {each.name: (each.first, each.second) for each in compare_runs(RunView(used, {}), RunView(other, {})).facts}
    assert facts == {"GPU": ("used 74 %", "NOT used (cpu-build)")}
