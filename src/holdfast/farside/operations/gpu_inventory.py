"""Who uses the GPUs of this machine, for people who ask: the answer of the operation `gpus`.

    {"state", "problem", "code", "driver", "cuda",        as in `machine.gpus`
     "time": seconds since the epoch,
     "devices": [{…a device of the report (`machine.nvml`), with "utilization", "power", "temperature"…,
                  "number", "lease": {"uid", "user", "run", "pid"} | null,
                  "is_used": whether a process computes on it, which keeps it from being handed out | null,
                  "instances": [{…, "number", "lease", "is_used"}],
                  "processes": [{"pid", "uid", "user", "name", "command", "memory", "kind", "instance",
                                 "whose": "mine" | "run" | "stranger", "run", "project"}] | null}],
     "queue": [{"gpus", "pid", "uid", "user", "run", "waited": seconds, "devices": [UUID, …]}]}   the first is next

A device that is not NVIDIA's has the state `named`, and nothing more is known of it. `whose`: a run of this user's,
with its project; another user's run, known by its lease; any other process. What is not to be seen is null. `command`
is the program and its script (`python train.py`), of all processes: options may be secrets.
"""

import os
import time
from typing import Any, Dict, List, Optional, Tuple

from holdfast.farside.gpu.devices import NAMED, devices
from holdfast.farside.gpu.lease import registry
from holdfast.farside.gpu.lease.registry import LeaseHolder, LeaseState
from holdfast.farside.gpu.occupants import Occupant, occupant, strangers, user_name, variable
from holdfast.farside.machine import driver_states, gpus
from holdfast.farside.system import processes
from holdfast.farside.system.children import inherited_environment
from holdfast.farside.system.layout import Home

_MINE, _RUN, _STRANGER = "mine", "run", "stranger"
_LONGEST = 60.0
_MOST_ANCESTORS = 100
_MOST_WAITING = 1000

Row = Dict[str, Any]


def look(home: Home, message: Dict[str, Any]) -> Row:
    """`timeout` in the message: seconds for the driver."""
    timeout = min(max(float(message.get("timeout", gpus.TIMEOUT)), 0.1), _LONGEST)
    report = gpus.ask(inherited_environment(), timeout)
    if report["state"] == driver_states.NO_DRIVER:
        report = dict(report, devices=[_named(*each) for each in enumerate(gpus.name_others())])
    return answer(report, registry.read())


def answer(report: gpus.Report, state: LeaseState) -> Row:
    used = {each.uuid: bool(strangers(each.strangers)) for each in devices(report)}
    rows = [_device(each, state, used) for each in report["devices"]]
    return dict(report, time=time.time(), devices=rows, queue=_queue(state, report))


def _named(number: int, named: Tuple[str, str]) -> Row:
    """One that is not NVIDIA's: there is no driver to ask."""
    pci, name = named
    found: Row = {"index": number, "uuid": pci or None, "name": name, "state": NAMED}
    unknown = dict.fromkeys(
        ("memory_total", "memory_used", "memory_free", "utilization", "power", "temperature", "mig")
    )
    about = "not NVIDIA's, so neither looked into nor leased"
    return dict(found, problem=about, instances=[], processes=None, **unknown)


def _device(device: Row, state: LeaseState, used: Dict[str, bool]) -> Row:
    def with_state(each: Row) -> Row:
        is_used = None if device["processes"] is None else used[str(each["uuid"] or "")]
        return dict(each, number=each["index"], lease=_lease(each["uuid"], state), is_used=is_used)

    found = dict(with_state(device), instances=[with_state(each) for each in device["instances"]])
    if device["processes"] is None:
        return found
    rows: Dict[int, Row] = {}
    for each in device["processes"]:
        holder = _holder(device, each.get("instance"), state)
        rows.setdefault(each["pid"], dict(each, **_about(occupant(each["pid"]), holder)))
    return dict(found, processes=list(rows.values()))


def _lease(uuid: Optional[str], state: LeaseState) -> Optional[Row]:
    holder = None if uuid is None else state.leases.get(uuid)
    if holder is None:
        return None
    if holder.uid is None:
        return {"uid": None, "user": "", "run": holder.run, "pid": None}
    is_its = holder.pid is not None and occupant(holder.pid).uid == holder.uid
    pid = holder.pid if is_its else None
    return {"uid": holder.uid, "user": user_name(holder.uid), "run": holder.run, "pid": pid}


def _holder(device: Row, instance: Optional[int], state: LeaseState) -> Optional[LeaseHolder]:
    """The holder of the lease on the device or instance that a process uses, or None."""
    for part in device["instances"]:
        if instance is not None and part.get("gpu_instance") == instance:
            return state.leases.get(str(part["uuid"]))
    return state.leases.get(str(device["uuid"]))


def _about(who: Occupant, holder: Optional[LeaseHolder]) -> Row:
    run, project = _own_run(who)
    whose = _MINE if run else _STRANGER
    if not run and holder is not None and who.uid == holder.uid:
        run, whose = holder.run, _MINE if who.uid == os.getuid() else _RUN
    known = {"uid": who.uid, "user": who.user or None, "name": who.name or None, "command": who.command or None}
    return dict(known, whose=whose, run=run or None, project=project or None)


def _own_run(who: Occupant) -> Tuple[str, str]:
    """The run and project of a process, from its environment or that of its ancestors. Both are empty for processes of
    other users, whose environment cannot be read."""
    pid, steps = who.pid, 0
    while pid > 1 and steps < _MOST_ANCESTORS and who.uid == os.getuid():
        run = variable(pid, "HOLDFAST_RUN_ID")
        if run:
            return run, variable(pid, "HOLDFAST_PROJECT")
        process = processes.look(pid)
        pid, steps = 0 if process is None else process.parent, steps + 1
    return "", ""


def _queue(state: LeaseState, report: gpus.Report) -> List[Row]:
    """Those that wait for devices of this machine."""
    here = {each["uuid"] for each in report["devices"]}
    here |= {part["uuid"] for each in report["devices"] for part in each["instances"]}
    rows = []
    for ticket in registry.present(each for each in state.tickets if each.usable & here)[:_MOST_WAITING]:
        uid, waited = ticket.uid, max(0.0, (registry.now() - ticket.time) / 1e9)
        row: Row = {"gpus": ticket.gpus, "pid": ticket.pid, "uid": uid, "user": None if uid is None else user_name(uid)}
        rows.append(dict(row, run=ticket.run or None, waited=waited, devices=sorted(ticket.usable & here)))
    return rows
