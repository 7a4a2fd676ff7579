"""The file of facts: it is read as it was written; anything else is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as some

from holdfast.farside.gpu.gpu_facts import NOTHING, GpuFacts, as_json, parse
from kit.gpu_values import CPU_BUILD, device, leasing

FULL = leasing(2, visible="0,1", container="hook", findings=(CPU_BUILD,), frameworks=("torch", "jax"))
PLAIN = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=5),
    lambda each: some.lists(each, max_size=3) | some.dictionaries(some.text(max_size=3), each, max_size=3),
    max_leaves=4,
)


@pytest.mark.parametrize("facts", [NOTHING, FULL, FULL._replace(devices=(device(memory_free=None, strangers=(1,)),))])
def test_facts_are_read_as_they_were_written(facts):
    assert parse(json.loads(json.dumps(as_json(facts)))) == facts


def test_what_a_later_version_adds_is_left_out():
    found = as_json(FULL)
    found["later"] = found["devices"][0]["later"] = found["request"]["later"] = 1
    assert parse(found) == FULL


@given(some.sampled_from([*GpuFacts._fields, "nothing"]), PLAIN)
def test_anything_else_in_any_place_is_facts_or_refused(name, value):
    try:
        found = parse(value if name == "nothing" else {**as_json(FULL), name: value})
    except ValueError:
        return
    assert parse(json.loads(json.dumps(as_json(found)))) == found
