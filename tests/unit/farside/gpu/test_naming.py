"""GPUs that nobody can ask are named to whoever looks at a machine."""

from __future__ import annotations

import pytest

from holdfast.farside.gpu import looking
from holdfast.farside.gpu.judging.facts import Device
from holdfast.farside.layout import Home
from holdfast.farside.machine import gpus


def test_a_device_of_another_maker_is_named_and_is_nobodys(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_NVML", "/nowhere")
    named = Device(0, "0000:03:00.0", "Intel Arc A770", None, None, "named", False, ())
    monkeypatch.setattr(looking, "name_others", lambda: (named,))
    found = looking.look(Home(str(tmp_path)), {})
    assert found["state"] == gpus.NO_DRIVER
    (device,) = found["devices"]
    assert (device["name"], device["state"], device["processes"], device["leased_by"]) == (
        "Intel Arc A770",
        "named",
        None,
        None,
    )
