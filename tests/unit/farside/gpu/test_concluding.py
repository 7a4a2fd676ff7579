"""A verdict from a run's folder, whatever is in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.farside.gpu import gpu_facts as known
from holdfast.farside.gpu import samples as lines
from holdfast.farside.gpu.judge.reasons import Verdict
from holdfast.farside.gpu.judge.verdict import conclude, judge, judged
from holdfast.farside.gpu.samples import Row, Samples, Tick
from kit.gpu_values import ASKED, START, end, leasing, samples, working

FACTS = leasing(1)
SEEN = samples(*[[working()]] * 10)
ENDED = end(10.4)


def write(folder: Path, seen: Samples) -> None:
    (folder / "gpu.json").write_text(json.dumps(known.as_json(FACTS)))
    parts = [lines.encode_start(START, "nvml"), lines.encode_devices(seen.devices)]
    (folder / "gpu.jsonl").write_bytes(b"".join([*parts, *map(lines.encode_tick, seen.ticks)]))


def test_the_verdict_is_that_of_the_files(tmp_path):
    write(tmp_path, SEEN)
    found = conclude(str(tmp_path), ENDED)
    assert found == judge(FACTS, ENDED, SEEN).as_json()
    assert found["reason"] == "ok" and set(found) == set(Verdict._fields)
    json.dumps(found)


def test_without_any_file_nothing_is_claimed(tmp_path):
    never = end(0)._replace(started=None)
    assert conclude(str(tmp_path / "none"), ENDED)["state"] == "not-asked"
    assert conclude(str(tmp_path), ENDED, ASKED)["state"] == "unknown"
    assert conclude(str(tmp_path), never, ASKED)["reason"] == "interrupted-before-start"
    (tmp_path / "gpu.json").mkdir()
    assert conclude(str(tmp_path), ENDED)["state"] == "not-asked"


@pytest.mark.parametrize("damaged", [b"", b"{", b"null", b"[]", b'{"request": 5}', b"\xff\xfe", b'{"devices": "abc"}'])
def test_damaged_facts_are_none(tmp_path, damaged):
    write(tmp_path, SEEN)
    (tmp_path / "gpu.json").write_bytes(damaged)
    assert conclude(str(tmp_path), ENDED, ASKED)["reason"] == "ok"


@pytest.mark.parametrize(
    "damaged",
    [
        b'{"t": 1000001.0, "d": [[0',
        b"\xff\x00\n\n[]\n",
        b'{"t": 1000001.0, "d": [[0,"x",{},0,0,[],"y",[1],[2],"z"]]}\n',
        b'{"t": null, "d": 3}\n{"began": "x"}\n',
        b'{"t": 1, "lost": 1e999}\n',
        b'{"t": ' + b"[" * 100_000 + b"\n",
    ],
)
def test_damaged_samples_cost_no_verdict(tmp_path, damaged):
    write(tmp_path, SEEN)
    with (tmp_path / "gpu.jsonl").open("ab") as target:
        target.write(damaged)
    assert conclude(str(tmp_path), ENDED)["reason"] in ("ok", "not-watched")
    (tmp_path / "gpu.jsonl").write_bytes(damaged)
    found = conclude(str(tmp_path), ENDED)
    assert found["state"] == "unknown"
    assert "amdsmi" not in found["remedy"], "no samples: this is not a device that can only be named"


STRANGE_ROW = Row(0, "x", {}, 0, 0, [], "y", (1,), (2,), "z")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "seen",
    [
        samples([STRANGE_ROW]),
        samples([working(own_memory={})]),
        SEEN._replace(ticks=5),  # type: ignore[arg-type]
        SEEN._replace(began=float("nan"), devices=None),  # type: ignore[arg-type]
        SEEN._replace(ticks=(Tick(10**400, ()),)),
    ],
)
def test_a_verdict_costs_no_run_its_ending(seen):
    """At the end, facts and samples are in memory."""
    found = judged(FACTS, ENDED._replace(ended=float("inf")), seen)
    assert (found["state"], found["reason"]) == ("unknown", "not-watched")
    assert found["sentence"] == "GPU use unknown: what was seen of the GPUs cannot be read."
    assert "gpu.jsonl" in found["remedy"] and set(found) == set(Verdict._fields)
    assert judged(known.NOTHING, ENDED, seen)["state"] in ("not-asked", "used")
