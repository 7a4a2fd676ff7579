"""The program that builds environments: its name, and how it is fetched for other machines."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from holdfast.errors import HostError, NotAvailable
from holdfast.workbench.submitting import tools

INSTALLS = """\
#!/bin/sh
while [ "$1" != --target ]; do shift; done
echo "$2" >> "${0%/*}/targets"
mkdir -p "$2/bin" && echo new > "$2/bin/uv"
"""


def program(folder: Path, text: str) -> str:
    path = folder / "uv"
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_its_name_is_its_version(tmp_path):
    assert tools.uv_name(program(tmp_path, "#!/bin/sh\necho uv 0.13.7 of today\n")) == "uv-0.13.7"


@pytest.mark.parametrize(
    ("packages", "name"),
    [
        (["uv-0.13.7.dist-info", "uvloop-1.dist-info"], "uv-0.13.7"),
        ([], "uv-9"),
        (["uv-1.dist-info", "uv-2.dist-info"], "uv-9"),
    ],
)
def test_one_beside_this_python_is_called_as_its_package_is(tmp_path, monkeypatch, packages, name):
    for each in packages:
        (tmp_path / "site-packages" / each).mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site-packages"), str(tmp_path / "none")])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert tools.uv_name(program(tmp_path, "#!/bin/sh\necho uv 9\n")) == name


@pytest.mark.parametrize(("text", "why"), [(None, "No such file or directory"), ("\x7fELF", "Exec format error")])
def test_one_that_is_gone_or_for_another_processor_is_said(tmp_path, text, why):
    path = str(tmp_path / "uv") if text is None else program(tmp_path, text)
    with pytest.raises(NotAvailable, match=f"uv` cannot be started: {why}"):
        tools.uv_name(path)


def test_one_that_does_not_answer_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(tools, "SECONDS", 0.05)
    with pytest.raises(NotAvailable, match=r"did not say its version within 0\.05 seconds"):
        tools.uv_name(program(tmp_path, "#!/bin/sh\nexec sleep 60\n"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "tools" / "uv-1-aarch64-musl"


def test_processes_that_fetch_it_at_once_do_not_disturb_each_other(tmp_path, folder):
    others = folder.with_name(f".{folder.name}.new")
    others.mkdir(parents=True)
    tools._fetch(program(tmp_path, INSTALLS), "uv-1", "aarch64-unknown-linux-musl", folder)
    assert others.is_dir()
    assert (folder / "bin" / "uv").read_text() == "new\n"
    used = Path((tmp_path / "targets").read_text().strip())
    assert used.parent == folder.parent
    assert used.name not in (others.name, folder.name)
    assert sorted(each.name for each in folder.parent.iterdir()) == [others.name, folder.name]


def test_what_another_process_has_fetched_meanwhile_stays(tmp_path, folder):
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "uv").write_text("in use\n")
    tools._fetch(program(tmp_path, INSTALLS), "uv-1", "aarch64-unknown-linux-musl", folder)
    assert (folder / "bin" / "uv").read_text() == "in use\n"


def test_one_that_cannot_be_fetched_leaves_nothing(tmp_path, folder):
    broken = INSTALLS.replace("echo new", "echo no index >&2; false; echo new").replace("$2/bin/uv", "$2/bin/other")
    with pytest.raises(HostError, match="uv for p could not be fetched: no index"):
        tools._fetch(program(tmp_path, broken), "uv-1", "p", folder)
    assert list(folder.parent.iterdir()) == []
