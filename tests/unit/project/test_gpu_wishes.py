"""What a run configuration says about GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import UsageError
from holdfast.project.configuration_folders import ConfigurationFolders
from holdfast.project.gpu_wishes import GpuWishes, format_memory, parse_gpus, parse_idle, parse_memory
from holdfast.project.runconfig import RunConfiguration, read_runconfig, render_runconfig


@pytest.mark.parametrize(("text", "meant"), [("1", 1), ("0", 0), ("all", "all"), (" ALL ", "all"), ("16", 16)])
def test_a_number_of_gpus_is_a_number_or_all(text, meant):
    assert parse_gpus(text) == meant


@pytest.mark.parametrize("text", ["-1", "two", "yes", "", "1.5", "99999", "\u0661"])
def test_what_is_no_number_of_gpus_is_said_with_what_to_write(text):
    with pytest.raises(UsageError) as caught:
        parse_gpus(text)
    assert caught.value.message == f"`{text}` is not a number of GPUs."
    assert "`all`" in caught.value.hint


def test_no_memory_and_no_time_are_refused():
    with pytest.raises(UsageError, match="asks for no memory"):
        parse_memory("0GB")
    with pytest.raises(UsageError, match="too short"):
        parse_idle("0")
    assert (parse_memory("8GiB"), parse_idle("1m")) == (8 << 30, 60.0)


def test_a_file_that_says_nothing_wishes_nothing(tmp_path):
    assert read(tmp_path, "") == GpuWishes()


def test_all_wishes_are_read_and_written_as_they_are(tmp_path):
    wishes = read(tmp_path, "Gpus: all\nRequireGpu: true\nMinGpuMemory: 8GB\nStopIfIdle: 1h30m\nQuietAfter: 0\n")
    assert wishes == GpuWishes("all", True, 8_000_000_000, 5400.0, 0.0)
    again = render_runconfig(RunConfiguration("gpu", "local", gpu=wishes))
    (tmp_path / "aml_config" / "again.runconfig").write_text(again)
    found, problems = read_runconfig(ConfigurationFolders(tmp_path), "again")
    assert problems == []
    assert found is not None and found.gpu == wishes


def test_a_configuration_without_wishes_is_written_as_before():
    text = render_runconfig(RunConfiguration("gpu", "local"))
    assert not [word for word in ("Gpu", "Idle", "Quiet") if word in text]


def read(root: Path, text: str) -> GpuWishes:
    (root / "aml_config").mkdir(exist_ok=True)
    (root / "aml_config" / "gpu.runconfig").write_text(f"Target: local\nFramework: Python\n{text}")
    found, problems = read_runconfig(ConfigurationFolders(root), "gpu")
    assert problems == []
    assert found is not None
    return found.gpu


@pytest.mark.parametrize("text", ["much", "8", "8GBit"])
def test_a_memory_that_cannot_be_read_is_answered_as_the_help_writes_it(text):
    with pytest.raises(UsageError) as raised:
        parse_memory(text)
    assert "8GB" in raised.value.hint and "40GiB" in raised.value.hint


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("80GB", "80 GB (74.5 GiB)"),
        ("40GiB", "40 GiB"),
        ("1.5GiB", "1.5 GiB"),
        ("512MiB", "0.5 GiB"),
        ("8GB", "8 GB (7.5 GiB)"),
    ],
)
def test_memory_is_said_as_it_was_typed(typed, shown):
    assert format_memory(parse_memory(typed)) == shown
