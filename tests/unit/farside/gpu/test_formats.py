"""The files and the event about GPUs, byte by byte: `gpu.json`, `gpu.jsonl`, and `gpu` of the journal."""

from __future__ import annotations

import hashlib
import json

from holdfast.farside.gpu import gpu_facts, samples
from holdfast.farside.gpu.judge.verdict import judge
from kit.gpu_values import CPU_BUILD, START, device, end, leasing, uuid, working
from kit.gpu_values import samples as seen
from kit.gpu_verdicts import CASES

FACTS = leasing(1, visible="0", container="hook", findings=(CPU_BUILD,), frameworks=("torch",))
FACTS_TEXT = (
    '{"request": {"gpus": null, "require": false, "min_memory": null, "stop_if_idle": null, "quiet_after": 600.0, '
    '"asked": true, "by": "`--gpus 1`"}, "driver_state": "ok", "problem": "", "driver": "470.82.01", "cuda": "11.4", '
    '"devices": [{"number": 0, "uuid": "GPU-00000000-0000-4000-8000-000000000000", "name": "Tesla K80", '
    '"memory_total": 12884901888, "memory_free": 12884901888, "state": "ok", "mig": false, "strangers": [7]}], '
    '"container": "hook", "refuses": false, "leased": ["GPU-00000000-0000-4000-8000-000000000000"], "visible": "0", '
    '"findings": [["cpu-build", "torch", "PyTorch 2.13.0+cpu was built without CUDA: it computes on the CPU and leaves '
    'the GPU idle.", "Take `+cpu` out where it stands.", "error"]], "frameworks": ["torch"], "file": '
    '"my_dsvm.compute", "has_machine_pids": true, "format": 1}'
)
SAMPLES_TEXT = b"""\
{"format":1,"began":1000000.0,"source":"nvml"}
{"devices":[{"number":0,"uuid":"%s","name":"Tesla K80","total":12884901888,"mig":false}]}
{"t":1000001.0,"d":[[0,74,8589934592,60.0,40,8589934592,74,[4000],[],0,[]]]}
{"t":1000000.0,"lost":0,"problem":"GPU is lost"}
{"t":1000000.0,"found":0}
{"t":1000000.0,"skipped":2}
{"t":1000000.0,"problem":"Driver Not Loaded"}
""" % uuid(0).encode()
VERDICT_TEXT = (
    '{"state": "used", "reason": "ok", "sentence": "", "remedy": "", "devices": [{"number": 0, '
    '"uuid": "GPU-00000000-0000-4000-8000-000000000000", '
    '"name": "Tesla K80", "mean": 74.0, "peak_memory": 8589934592, "first_use": 1.0, "busy": 1.0, "is_leased": true}], '
    '"waited": 0.0, "spells": [], "evidence": "utilisation"}'
)
VERDICTS = "fc827cd2ea87f0ce994ac063d50e4fa865a32c8efc6e09f279792b0b79c1a4ce"


def test_facts_samples_and_verdict_are_written_as_ever():
    facts = FACTS._replace(devices=(device(strangers=(7,)),))
    assert json.dumps(gpu_facts.as_json(facts)) == FACTS_TEXT
    watched = seen([working()])
    lines = [samples.encode_start(START, "nvml"), samples.encode_devices(watched.devices)]
    lines += [samples.encode_tick(watched.ticks[0]), samples.encode_loss(START, 0, "GPU is lost")]
    lines += [samples.encode_found(START, 0), samples.encode_skipped(START, 2)]
    assert b"".join([*lines, samples.encode_problem(START, "Driver Not Loaded")]) == SAMPLES_TEXT
    found = judge(leasing(1), end(10), seen(*[[working()]] * 10)).as_json()
    assert json.dumps({**found, "sentence": ""}) == VERDICT_TEXT


def test_every_case_has_the_same_verdict_but_for_its_words():
    cases = [judge(*case[:3]).as_json() for case in CASES.values()]
    texts = [json.dumps({**each, "sentence": "", "remedy": ""}) for each in cases]
    assert hashlib.sha256("\n".join(texts).encode()).hexdigest() == VERDICTS
