"""What programs of a build are given, and what is written of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.farside.environments.workshop import Owner, Workshop
from holdfast.farside.layout import CONTROL
from holdfast.farside.refusal import Refused
from holdfast.farside.run.children import Exit
from holdfast.plan import Command, Hole, text

STEP = {"argv": [text(Hole.COMMAND).as_json()], "environment": {}, "directory": "/"}


def attend(pid: int, pump) -> Exit:
    _, status = os.waitpid(pid, 0)
    pump.move()
    return Exit(os.waitstatus_to_exitcode(status), None)


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    (tmp_path / CONTROL).touch()
    owner = Owner(str(tmp_path), attend, lambda: None, lambda: None, lambda seconds: None, lambda *a, **b: None)
    secrets = {"SCRIPT_TOKEN": "for-the-script", "HOLDFAST_INDEX_1": "me:for-the-index"}
    return Workshop(owner, STEP, {}, secrets, ["HOLDFAST_INDEX_1"])


def test_the_step_is_what_the_plan_sends() -> None:
    assert Command((text(Hole.COMMAND),), {}, text("/")).argv[0].as_json() == STEP["argv"][0]


def test_a_program_is_given_the_secrets_of_the_build_and_not_those_of_the_script(shop, tmp_path) -> None:
    result = shop.run(["env"], {"PLAIN": "yes"})

    assert "PLAIN=yes" in result.output
    assert "HOLDFAST_INDEX_1=" in result.output
    assert "SCRIPT_TOKEN" not in result.output
    assert "for-the-index" not in (tmp_path / CONTROL).read_text()


def test_no_secret_of_the_run_gets_into_the_log(shop, tmp_path) -> None:
    shop.run(["echo", "a for-the-script b"], {})

    assert "for-the-script" not in (tmp_path / CONTROL).read_text()


def test_what_a_program_reads_stands_in_no_file(shop, tmp_path) -> None:
    heard: list[str] = []

    result = shop.run(["cat"], {}, heard.append, "one\ntwo\n")

    assert (result.code, heard) == (0, ["one", "two"])
    assert [path.name for path in tmp_path.iterdir()] == [CONTROL]


def test_a_program_that_is_not_there_is_said_so(shop) -> None:
    with pytest.raises(Refused, match="no program"):
        shop.run(["/nowhere/uv"], {})
