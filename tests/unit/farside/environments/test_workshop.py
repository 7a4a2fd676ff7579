"""What programs of a build get, and what is recorded about them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.farside.environments.workshop import Result, Room, Start, Supervision, Workshop
from holdfast.farside.system.children import Exit
from holdfast.farside.system.layout import CONTROL
from holdfast.farside.system.refusal import Refused


def attend(pid: int, pump) -> Exit:
    _, status = os.waitpid(pid, 0)
    pump.move()
    return Exit(os.waitstatus_to_exitcode(status), None)


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    (tmp_path / CONTROL).touch()
    owner = Supervision(str(tmp_path), attend, lambda: None, lambda: None, lambda seconds: None, lambda *a, **b: None)
    secrets = {"SCRIPT_TOKEN": "for-the-script", "HOLDFAST_INDEX_1": "me:for-the-index"}
    return Workshop(owner, secrets, ["HOLDFAST_INDEX_1"])


def test_a_program_is_given_the_secrets_of_the_build_alone_and_none_gets_into_the_log(shop, tmp_path):
    result = shop.run(["env"], {"PLAIN": "yes"})
    shop.run(["echo", "a for-the-script b"], {})

    assert "PLAIN=yes" in result.output
    assert "HOLDFAST_INDEX_1=" in result.output
    assert "SCRIPT_TOKEN" not in result.output
    log = (tmp_path / CONTROL).read_text()
    assert "for-the-index" not in log and "for-the-script" not in log


def test_what_a_program_reads_stands_in_no_file(shop, tmp_path):
    heard: list[str] = []

    result = shop.run(["cat"], {}, heard.append, "one\ntwo\n")

    assert (result.code, heard) == (0, ["one", "two"])
    assert [path.name for path in tmp_path.iterdir()] == [CONTROL]


def test_a_program_that_is_not_there_is_said_so(shop):
    with pytest.raises(Refused, match="no program"):
        shop.run(["/nowhere/uv"], {})


class Elsewhere(Room):
    """A room whose commands run in a shell with their variables."""

    def __init__(self) -> None:
        Room.__init__(self, "/")
        self.abandoned = 0

    def passes(self, inherited: dict[str, str]) -> dict[str, str]:
        return {}

    def start(self, argv: list[str], variables: dict[str, str], given: bytes | None) -> Start:
        return Start(["/bin/cat"], {}, "/", "\n".join(sorted(variables)).encode() + b"\n" + (given or b""))

    def ended(self, result: Result) -> Result:
        return result._replace(code=42)

    def abandon(self) -> None:
        self.abandoned += 1


def test_in_another_room_a_program_gets_what_that_room_passes(shop):
    shop.room = Elsewhere()

    result = shop.run(["uv"], {"PLAIN": "yes"}, None, "given\n")

    assert result.output == "HOLDFAST_INDEX_1\nPLAIN\ngiven\n"
    assert result.code == 42


def test_what_runs_in_another_room_is_ended_before_the_run_is(shop):
    class Stopped(Exception):
        pass

    def stop() -> None:
        raise Stopped

    shop.room, shop.owner = Elsewhere(), shop.owner._replace(check_stop=stop)

    with pytest.raises(Stopped):
        shop.run(["uv"], {})

    assert shop.room.abandoned == 1


def test_commands_that_go_together_stop_at_the_first_that_fails(shop):
    heard: list[str] = []

    good = shop.run_all([["printf", "%s\n", "it's a; b"], ["echo", "then"]], {}, heard.append)
    bad = shop.run_all([["sh", "-c", "exit 7"], ["echo", "never"]], {}, heard.append)

    assert (good.code, bad.code) == (0, 7)
    assert heard == ["it's a; b", "then"]
