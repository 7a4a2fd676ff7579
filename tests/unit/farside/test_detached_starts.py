"""Processes that outlive the connection, and the proof that they do. A program named systemd-run stands in for the
user's service manager, which tests do not have."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.farside.engines import direct
from holdfast.farside.operations import logout
from holdfast.farside.system.layout import MARKER, Home
from holdfast.farside.system.refusal import Refused
from unit.farside.programs import program


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """One that is not there yet."""
    return Home(str(tmp_path / "new"))


@pytest.fixture
def systemd_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Records its arguments, then runs what follows its options."""
    program(tmp_path / "bin" / "systemd-run", f'echo "$@" >> {tmp_path}/words\nshift 4\nexec "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    return tmp_path / "words"


def test_a_proof_lives_until_it_is_looked_for_and_leaves_nothing(home):
    logout.begin(home, "abc")
    assert (Path(home.path) / "proofs" / "abc").exists()
    assert logout.look(home, "abc", 0) == {"alive": True}
    assert logout.look(home, "abc", 0) == {"alive": False}
    assert os.listdir(home.path) == [MARKER]
    with pytest.raises(Refused):
        logout.begin(home, "../x")  # a token is not a path


def test_a_user_unit_gets_its_request_by_a_pipe_alone(home, systemd_run):
    logout.start_by(home, direct.USER_UNIT)
    logout.begin(home, "unheard-token")
    assert logout.look(home, "unheard-token", 0) == {"alive": True}
    words = systemd_run.read_text()
    assert words.startswith("--user --scope --quiet --collect ")
    assert words.rstrip().endswith(f"detached {logout.PROOF_NAME} {home.path}")
    assert "unheard-token" not in words


def test_a_service_manager_that_starts_nothing_is_quoted(home, systemd_run):
    program(systemd_run.parent / "bin" / "systemd-run", "echo 'Failed to connect to bus: No medium found' >&2\nexit 1")
    assert direct.user_unit_works() == (False, "Failed to connect to bus: No medium found")
    logout.start_by(home, direct.USER_UNIT)
    with pytest.raises(Refused, match="No medium found"):
        logout.begin(home, "abc")


def test_the_way_of_starting_can_be_taken_back(home):
    assert direct.start_setting(home) == ""
    logout.start_by(home, direct.USER_UNIT)
    assert direct.start_setting(home) == "user-unit"
    logout.start_by(home, "")
    logout.start_by(home, "")
    assert direct.start_setting(home) == ""
    with pytest.raises(Refused):
        logout.start_by(home, "cron")
