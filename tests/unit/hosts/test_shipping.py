"""What is shipped to a host; its hash is known without reading it again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.errors import HostError
from holdfast.farside.system.layout import Home
from holdfast.hosts import shipment
from holdfast.hosts.shipment import FarSide, far_side, install


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Holdfast as a few files, all old enough for their times to be trusted."""
    root = tmp_path / "package"
    (root / "farside" / "run" / "__pycache__").mkdir(parents=True)
    for name in ("__init__.py", "farside/agent.py", "farside/run/files.py", "farside/run/__pycache__/files.py"):
        (root / name).write_text(f"NAME = {name!r}\n")
    (root / "farside" / "notes.txt").write_text("not shipped")
    monkeypatch.setattr(shipment, "PACKAGE", root)
    monkeypatch.setattr(shipment, "_SETTLED", -1_000_000_000_000)
    return root


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were read, by name."""
    names: list[str] = []
    usual = shipment._read

    def noting(path: str) -> bytes:
        names.append(os.path.basename(path))
        return usual(path)

    monkeypatch.setattr(shipment, "_read", noting)
    return names


def test_the_sources_are_shipped_and_nothing_else_that_lies_there(package, tmp_path):
    names = [name for name, _ in far_side(tmp_path).sources]
    assert names == ["holdfast/__init__.py", "holdfast/farside/agent.py", "holdfast/farside/run/files.py"]


def test_the_second_time_its_name_is_known_without_reading_a_file(package, tmp_path, read):
    first = far_side(tmp_path)
    del read[:]
    assert far_side(tmp_path) == first
    assert read == ["shipped"]


def _other_text(package: Path) -> None:
    (package / "farside" / "agent.py").write_text("NAME = 'farside/AGENT.py'\n")


def _swapped(package: Path) -> None:
    """Another file of the same size and time in its place, as from an archive."""
    old = package / "farside" / "agent.py"
    new = old.with_suffix(".new")
    new.write_text("NAME = 'farside/AGENT.py'\n")
    os.utime(new, ns=(old.stat().st_atime_ns, old.stat().st_mtime_ns))
    new.replace(old)


@pytest.mark.parametrize(
    "change",
    [
        _other_text,
        _swapped,
        lambda package: (package / "farside" / "run" / "more.py").write_text(""),
        lambda package: (package / "farside" / "agent.py").unlink(),
    ],
    ids=["other text", "swapped", "a new file", "a lost file"],
)
def test_after_any_change_it_has_another_name(package, tmp_path, change):
    first = far_side(tmp_path)
    change(package)
    second = far_side(tmp_path)
    assert second.digest != first.digest
    assert second == far_side(tmp_path / "another home"), "the same as for who remembers nothing"


def test_files_that_were_changed_just_now_are_read_each_time(package, tmp_path, monkeypatch):
    monkeypatch.setattr(shipment, "_SETTLED", 3_600_000_000_000)
    far_side(tmp_path)
    assert not (tmp_path / "shipped").exists()


@pytest.mark.parametrize("text", [b"", b"abc", b"\xff\xfe\n\n\n", b"0123456789abcdef\n[]"])
def test_a_damaged_memory_is_none(package, tmp_path, text):
    first = far_side(tmp_path)
    (tmp_path / "shipped").write_bytes(text)
    assert far_side(tmp_path) == first


def test_a_home_that_has_nothing_but_that_is_still_found_to_be_holdfasts(package, tmp_path):
    far_side(tmp_path / "home")
    (tmp_path / "home" / ".hf-new-1").touch()
    home = Home(str(tmp_path / "home"))
    home.make()
    assert os.path.exists(home.marker())
    assert all(home.knows(name) for name in os.listdir(home.path))


def test_a_home_that_cannot_be_written_changes_nothing(package, tmp_path):
    (tmp_path / "file").write_text("")
    assert far_side(tmp_path / "file") == far_side(tmp_path)


def test_what_was_changed_after_it_got_its_name_is_never_shipped_under_it(package, tmp_path):
    shipped = far_side(tmp_path)
    _other_text(package)
    with pytest.raises(HostError, match="changed while this command ran"):
        shipped.contents()
    with pytest.raises(HostError):
        install(shipped, tmp_path / "home")
    assert not list((tmp_path / "home").glob("farside/*")), "nothing half-written"


def test_who_has_it_already_needs_none_of_its_files(package, tmp_path):
    shipped = far_side(tmp_path)
    there = install(shipped, tmp_path)
    gone = FarSide(shipped.digest, tuple((name, "/gone") for name, _ in shipped.sources))
    assert install(gone, tmp_path) == there
