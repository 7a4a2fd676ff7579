"""What `-o json` says of a machine's GPUs: the keys and their order."""

from __future__ import annotations

import json

from holdfast.presenting.machine_page import as_dict, users_document
from kit.reports import facts_of, look_of

REPORT = {
    "state": "ok",
    "devices": [
        {
            "index": 0,
            "state": "ok",
            "instances": [{"index": 1, "name": "1g.5gb"}],
            "processes": [{"pid": 7, "whose": "run", "run": "a"}],
            "lease": {"user": "me", "run": "a", "pid": 5},
        }
    ],
}
MACHINE = (
    '{"state": "ok", "problem": "", "code": null, "driver": null, "cuda": null, "devices": [{"index": 0, "state": '
    '"ok", "problem": "", "name": null, "uuid": null, "capability": null, "memory_total": null, "memory_used": null, '
    '"memory_free": null, "sm_clock": null, "sm_clock_max": null, "memory_clock": null, "memory_clock_max": null, '
    '"pci": null, "mig": null, "instances": [{"index": 1, "name": "1g.5gb", "uuid": null, "memory_total": null, '
    '"memory_used": null, "memory_free": null}], "processes": [{"pid": 7, "memory": null, "kind": "compute"}]}]}'
)
USERS = (
    '{"state": "ok", "problem": "", "driver": null, "cuda": null, "time": 5.0, "devices": [{"number": 0, "uuid": null, '
    '"name": null, "state": "ok", "problem": "", "utilization": null, "memory_used": null, "memory_total": null, '
    '"temperature": null, "power": null, "lease": {"user": "me", "run": "a", "pid": 5}, "instances": [{"uuid": null, '
    '"name": "1g.5gb", "memory_used": null, "memory_total": null, "lease": null, "is_used": null}], "processes": '
    '[{"pid": 7, "user": null, "name": null, "command": null, "memory": null, "kind": "compute", "whose": "run", '
    '"run": "a", "project": null}], "is_used": null}], "queue": []}'
)


def test_the_documents_of_a_machines_gpus_have_their_keys_in_order():
    assert json.dumps(as_dict(facts_of(gpus=REPORT))["gpus"]) == MACHINE
    assert json.dumps(users_document(look_of({**REPORT, "time": 5.0, "queue": []}))) == USERS
