"""A lock in the project that passes for one of this machine: what was compared is what the installer reads."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.farside.environments.build import Maker
from holdfast.farside.environments.built_environment import Known
from holdfast.farside.environments.locks import is_lock, is_own, keep_own, make_lock
from holdfast.farside.environments.place import BuildPlace

OWN = "honest==2.0 \\\n    --hash=sha256:aa\n"
TWINS = {
    "a note": OWN + "    # via evil\n",
    "a note that ends a continued line": OWN.replace("\\\n", "\\\n# x\n"),
    "an empty line": OWN.replace("\\\n", "\\\n\n"),
    "a note that ends where uv goes on": OWN.replace("\\\n", "\\\n#x\r"),
    "a line that only uv begins": OWN.rstrip("\n") + "\r",
    "a package behind a note": OWN + "# x\revil==1.0\n",
    "a space behind": OWN.rstrip("\n") + "  \n",
}


class Shop:
    """Every command succeeds."""

    def __init__(self, folder: Path) -> None:
        self.build_folder = str(folder)

    def run_all(self, *_: Any) -> Any:
        return SimpleNamespace(code=0)

    def phase(self, text: str) -> None:
        pass


def lock(text: str) -> dict[str, Any]:
    return make_lock("s" * 16, "linux-x86_64-glibc2.36", "3.11.2", text)


def installed(home: Any, folder: Path, text: str) -> bytes:
    """What uv reads."""
    plan = {"arguments": [], "options": [], "rebuild": False, "uv": "uv", "files": "", "requirements": []}
    maker = Maker(Known(home, plan, {}, BuildPlace(home)), Shop(folder))  # type: ignore[arg-type]  # runs nothing
    maker._install(str(folder / "made"), lock(text), None)
    return (folder / "requirements.lock").read_bytes()


@pytest.mark.parametrize("twin", TWINS)
def test_a_text_that_counts_as_one_of_this_machine_is_installed_as_that_one(home, tmp_path, twin):
    Path(home.locks()).mkdir(parents=True)
    keep_own(home.locks(), lock(OWN))
    told = lock(TWINS[twin])
    if is_lock(told) and is_own(home.locks(), told):
        assert installed(home, tmp_path, TWINS[twin]) == installed(home, tmp_path, OWN)


@pytest.mark.parametrize("text", [each for each in TWINS.values() if "\r" in each])
def test_a_lock_with_an_end_of_line_of_some_readers_only_is_none(text):
    assert not is_lock(lock(text))
