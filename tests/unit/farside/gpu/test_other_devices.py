"""GPUs that can only be named, from a /sys that the test writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.farside.gpu.watch import source
from holdfast.farside.machine.gpus import name_others


def add(root: Path, card: str, pci: str, vendor: str, device: str, kind: str = "0x030000") -> Path:
    folder = root / "sys/devices/pci0000:00" / pci
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("vendor", vendor), ("device", device), ("class", kind)):
        (folder / name).write_text(text + "\n")
    (root / "sys/class/drm" / card).mkdir(parents=True)
    (root / "sys/class/drm" / card / "device").symlink_to(folder)
    return folder


def names(root: Path) -> list[tuple[str, str]]:
    return name_others(str(root), "linux")


def test_intels_and_amds_are_named_in_the_order_of_their_addresses(tmp_path):
    assert names(tmp_path) == []
    add(tmp_path, "card1", "0000:03:00.0", "0x8086", "0x56a0", "0x038000")
    add(tmp_path, "card0", "0000:83:00.0", "0x1002", "0x740f", "0x120000")
    product = add(tmp_path, "card2", "0000:0a:00.0", "0x1002", "0x73bf")
    (product / "product_name").write_text("Radeon RX 6900 XT\n")
    add(tmp_path, "card1-DP-1", "0000:03:00.0", "0x8086", "0x56a0", "0x038000")
    add(tmp_path, "renderD128", "0000:03:00.0", "0x8086", "0x56a0", "0x038000")
    assert names(tmp_path) == [("0000:03:00.0", "Intel 0x56a0"), ("0000:0a:00.0", "AMD Radeon RX 6900 XT")]


def test_the_machines_list_of_devices_knows_names(tmp_path):
    add(tmp_path, "card0", "0000:03:00.0", "0x8086", "0x56a0")
    (tmp_path / "usr/share/misc").mkdir(parents=True)
    (tmp_path / "usr/share/misc/pci.ids").write_text(
        "# a comment\n\n1002  Advanced Micro Devices\n\t56a0  Not this one\n"
        "8086  Intel Corporation\n\t56a1  DG2\n\t56a0  DG2 [Arc A770]\n\t\t8086 1020  A board\n"
    )
    assert names(tmp_path) == [("0000:03:00.0", "Intel DG2 [Arc A770]")]


CONSOLES = {
    "QEMU": ("0x1234", "0x1111"),
    "virtio": ("0x1af4", "0x1050"),
    "ASPEED": ("0x1a03", "0x2000"),
    "Matrox": ("0x102b", "0x0534"),
    "VMware": ("0x15ad", "0x0405"),
    "Microsoft": ("0x1414", "0x5353"),
    "the console of servers": ("0x1002", "0x515e"),
    "NVIDIA's are for NVML to name": ("0x10de", "0x102d"),
}


@pytest.mark.parametrize("name", CONSOLES)
def test_what_draws_a_console_is_none_to_compute_on(name, tmp_path):
    add(tmp_path, "card0", "0000:03:00.0", *CONSOLES[name])
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("chip", "named"), [("Apple M2 Pro", ["Apple M2 Pro"]), ("Intel(R) Core(TM) i7-9750H", []), ("", [])]
)
def test_a_mac_is_named_by_its_chip(chip, named):
    assert [name for _, name in name_others("/", "darwin", lambda: chip)] == named


def test_what_there_is_to_ask_is_known_without_loading_anything(tmp_path):
    root = str(tmp_path)
    assert source.kind({}, root) == ""
    add(tmp_path, "card0", "0000:03:00.0", "0x1002", "0x73bf")
    assert source.kind({}, root) == source.SYSFS
    (tmp_path / "opt/rocm/share/amd_smi/amdsmi").mkdir(parents=True)
    assert source.kind({}, root) == source.SYSFS, "the module needs the kernel's part"
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kfd").touch()
    assert source.kind({}, root) == source.AMDSMI
    assert source.kind({"HOLDFAST_AMDSMI": str(tmp_path / "none")}, root) == source.SYSFS
    (tmp_path / "dev/nvidiactl").touch()
    assert source.kind({}, root) == source.NVML
