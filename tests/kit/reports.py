"""What a far side says of a machine, for tests that care about a part of it."""

from __future__ import annotations

from typing import Any

from holdfast.codec import decode
from holdfast.hosts.machine_report import GpuInventory, Gpus, MachineFacts

_FOLDER = ("path", "file_system", "mount_point", "source", "network", "noexec", "writable", "total", "free")
_GPU = (
    *("name", "uuid", "capability", "memory_total", "memory_used", "memory_free", "sm_clock", "sm_clock_max", "pci"),
    *("memory_clock", "memory_clock_max", "mig", "processes", "utilization", "temperature", "power", "lease"),
)
_INSTANCE = ("name", "uuid", "memory_total", "memory_used", "memory_free", "lease")
_PROCESS = ("user", "name", "command", "memory", "run", "project")


def facts_of(**said: Any) -> MachineFacts:
    """A machine of which only this is known."""
    answer: dict[str, Any] = {
        "time": 0.0,
        "host": "",
        "user": "",
        "system": "",
        "kernel": "",
        "architecture": "",
        "glibc": None,
        "python": {"path": "", "version": ""},
        "pythons": [],
        "cores": dict.fromkeys(("online", "usable", "quota")),
        "memory": dict.fromkeys(("total", "available", "limit")),
        "folder": {**dict.fromkeys((*_FOLDER, "inodes_total", "inodes_free", "quota")), "path": ""},
        "temporary": {"path": "", "noexec": None, "writable": None, "free": None},
        "docker": {"path": None, "version": None, "problem": ""},
        "gpus": {"state": "no-driver", "devices": []},
    }
    merged = {
        name: {**value, **said[name]} if isinstance(value, dict) and name in said else said.get(name, value)
        for name, value in answer.items()
    }
    return decode(MachineFacts, {**merged, "gpus": _driver(merged["gpus"])})


def gpus_of(**said: Any) -> Gpus:
    return decode(Gpus, _driver(said))


def look_of(answer: dict[str, Any]) -> GpuInventory:
    return decode(GpuInventory, full_look(answer))


def full_look(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer to `gpus` with null for everything else."""
    queue = [{"waited": None, **each} for each in answer.get("queue", [])]
    return {**_driver(answer), "queue": queue}


def _driver(said: dict[str, Any]) -> dict[str, Any]:
    devices = [_device(each) for each in said.get("devices", [])]
    return {"problem": "", "code": None, "driver": None, "cuda": None, **said, "devices": devices}


def _device(said: dict[str, Any]) -> dict[str, Any]:
    instances = [{**dict.fromkeys(_INSTANCE), **each} for each in said.get("instances", [])]
    processes = said.get("processes")
    if processes is not None:
        processes = [{**dict.fromkeys(_PROCESS), "kind": "compute", **each} for each in processes]
    numbers = {"number": said.get("index"), "problem": ""}
    return {**dict.fromkeys(_GPU), **numbers, **said, "instances": instances, "processes": processes}
