"""What holds for every verdict, whatever was known and seen."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as some

from holdfast.farside.environments.build_findings import ERROR, KINDS, WARNING, BuildFinding
from holdfast.farside.gpu import gpu_facts as known
from holdfast.farside.gpu.devices import GpuDevice
from holdfast.farside.gpu.gpu_facts import End, GpuFacts, Left
from holdfast.farside.gpu.judge import reasons
from holdfast.farside.gpu.judge.evidence import idle_for
from holdfast.farside.gpu.judge.verdict import judge
from holdfast.farside.gpu.request import GpuRequest
from holdfast.farside.gpu.samples import Loss, Row, Samples, Tick
from kit.gpu_values import START, device, uuid
from kit.gpu_values import end as end_of
from kit.gpu_values import facts as facts_of
from kit.gpu_values import samples as samples_of

NUMBERS = some.integers(0, 2)
UUIDS = some.sampled_from([uuid(0), uuid(1), "MIG-1", ""])
BYTES = some.none() | some.integers(0, 1 << 36)
PERCENT = some.none() | some.sampled_from([0, 0, 1, 50, 100])
PIDS = some.lists(some.integers(1, 9), max_size=2).map(tuple)
TIMES = some.floats(START - 5, START + 60)
TEXTS = some.sampled_from(["", "-1", "0", "1", "GPU-0", "MIG-1", "x%(y)s %"])

devices = some.builds(
    GpuDevice,
    NUMBERS,
    UUIDS,
    TEXTS,
    BYTES,
    BYTES,
    some.sampled_from(["ok", "ok", "lost", "named"]),
    some.booleans(),
    PIDS,
    some.none(),
    some.just(False),
)
findings = some.builds(
    BuildFinding, some.sampled_from(KINDS), some.just("torch"), some.just("Why."), some.just("Do."),
    some.sampled_from([ERROR, WARNING]),
)  # fmt: skip
requests = some.builds(
    GpuRequest,
    some.none() | some.integers(0, 2),
    some.booleans(),
    BYTES,
    some.none(),
    some.none(),
    some.booleans(),
    TEXTS,
)
every_facts = some.builds(
    GpuFacts,
    *(requests, some.sampled_from(["", "ok", "no-driver", "failed", "timed-out"]), TEXTS, some.none() | TEXTS),
    *(some.none() | TEXTS, some.lists(devices, max_size=3).map(tuple), some.none() | some.sampled_from(["", "hook"])),
    *(some.booleans(), some.lists(UUIDS, max_size=2).map(tuple), some.none() | TEXTS),
    *(some.lists(findings, max_size=2).map(tuple), some.lists(some.just("torch"), max_size=1).map(tuple), TEXTS),
    some.booleans(),
)
rows = some.builds(
    Row, NUMBERS, PERCENT, BYTES, some.none(), some.none(), BYTES, PERCENT, PIDS, PIDS, some.sampled_from([0, 0, 0, 1])
)
ticks = some.builds(Tick, TIMES, some.lists(rows, max_size=3).map(tuple))
every_samples = some.builds(
    Samples,
    *(some.none() | TIMES, some.sampled_from(["", "nvml", "amdsmi"])),
    some.lists(some.builds(GpuDevice, NUMBERS, UUIDS, TEXTS, BYTES, mig=some.booleans()), max_size=3).map(tuple),
    some.lists(ticks, max_size=12).map(tuple),
    some.lists(some.builds(Loss, TIMES, NUMBERS, TEXTS, some.none() | TIMES), max_size=2).map(tuple),
    *(some.just(0), TEXTS),
)
CODES = some.none() | some.sampled_from([0, 1, 137])
ends = some.builds(
    End,
    *(some.none() | some.just(START), TIMES, CODES, some.none() | some.sampled_from([9, 11])),
    some.lists(some.sampled_from(reasons.REASONS), max_size=2).map(tuple),
    some.lists(some.builds(Left, NUMBERS, TEXTS, UUIDS, BYTES), max_size=1).map(tuple),
    some.booleans(),
    some.booleans(),
)


plain_facts = some.builds(
    lambda leased, strangers, machine: facts_of(
        device(strangers=strangers), leased=(uuid(0),) if leased else (), has_machine_pids=machine
    ),
    some.booleans(),
    PIDS,
    some.booleans(),
)
"""One device and a run that asked: the verdict depends on the looks alone."""
regular_samples = some.lists(
    some.builds(
        Row,
        *(some.just(0), some.sampled_from([0, 0, 0, 30, None]), some.just(1 << 30), some.none(), some.none()),
        *(some.sampled_from([0, 0, 1 << 30]), some.sampled_from([0, 0, 0, None, 20])),
        *(some.just(()), some.sampled_from([(), (), (9,)]), some.sampled_from([0, 0, 0, 1])),
    ).map(lambda row: row._replace(own=(1,) if row.own_memory else ())),
    max_size=8,
).map(lambda found: samples_of(*[[row] for row in found]))


@given(every_facts, ends, every_samples)
def test_whatever_is_known_there_is_one_verdict_and_a_process_of_the_run_that_computes_is_believed(facts, end, samples):
    found = judge(facts, end, samples)
    assert found.state in reasons.STATES and found.reason in reasons.REASONS
    assert found.sentence
    assert bool(found.remedy) == (found.reason not in (reasons.OK, reasons.NOT_ASKED))
    assert (found.state == reasons.NOT_ASKED) == (found.reason == reasons.NOT_ASKED)
    assert found.waited is None or 0 <= found.waited <= 1
    assert all(0 <= begin <= end_ for begin, end_ in found.spells) and len(found.spells) <= 20
    if found.state == reasons.NOT_USED:
        assert is_proved_by_what_it_was_given(facts, end) or is_proved_by_looks(facts, end, samples), found
    computing = judge(facts, end._replace(started=START, ended=START + 2), with_work_of_the_run(samples))
    assert computing.state in (reasons.USED, reasons.PARTLY_USED) and computing.evidence == "utilisation"


def with_work_of_the_run(samples: Samples) -> Samples:
    tick = Tick(START + 1, (Row(0, 50, 1, None, None, 1, 50, (1,), (), 0),))
    device = GpuDevice(0, uuid(0), "K80")
    return samples._replace(ticks=(*samples.ticks, tick), devices=(device, *samples.devices))


@given(plain_facts, some.booleans(), some.floats(0, 12), regular_samples)
def test_not_used_is_said_only_with_a_proof(facts, stalled, seconds, samples):
    ended = end_of(seconds, is_stalled=stalled)
    found = judge(facts, ended, samples)
    if found.state == reasons.NOT_USED:
        rows = [row for each in samples.ticks if each.time <= ended.ended for row in each.rows]
        assert is_proved_by_looks(facts, ended, samples), found
        assert not any(row.own_utilisation or row.unmatched for row in rows)
        assert (
            found.reason == reasons.IDLE or not any(row.own for row in rows) or sum(bool(row.own) for row in rows) > 4
        )


@given(every_facts, every_samples, some.floats(0, 60))
def test_nothing_was_idle_for_longer_than_it_ran(facts, samples, age):
    idle = idle_for(samples, facts, START, START + age)
    assert idle is None or 0 <= idle <= age + 1e-6


@given(every_facts)
def test_facts_are_the_same_after_they_were_written_and_read(facts):
    assert known.parse(json.loads(json.dumps(known.as_json(facts)))) == facts


def is_proved_by_what_it_was_given(facts: GpuFacts, end: End) -> bool:
    """No GPU in the container, none visible, a build without CUDA, a check that refused it; or what the check of the
    environment and the output both say."""
    errors = [each for each in facts.findings if each.severity == ERROR]
    if end.started is None:
        return bool(errors) or facts.container == "" or facts.visible is not None
    cpu = any(each.kind == "cpu-build" for each in errors)
    said = any(each.kind in end.said or "wrong-build" in end.said for each in errors)
    return facts.container == "" or (facts.visible is not None and not known.seen(facts)) or cpu or said


def is_proved_by_looks(facts: GpuFacts, end: End, samples: Samples) -> bool:
    """At least three looks, the last one fresh, and the owner of the work is visible, or there was no work."""
    assert end.started is not None
    during = [each for each in samples.ticks if end.started <= each.time <= end.ended]
    every = [row for tick in during for row in tick.rows]
    named = any(row.own or (facts.has_machine_pids and row.others) for row in every)
    quiet = not any(row.utilisation != 0 or row.unmatched for row in every)
    is_fresh = len(during) >= 3 and end.ended - max(each.time for each in during) <= 5
    return is_fresh and not end.is_stalled and (named or quiet or len({row.number for row in every}) > 1)
