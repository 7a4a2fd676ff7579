"""Runs whose machine could not be asked: shown in their last known state, with a note."""

from __future__ import annotations

import json
import time

import pytest

from holdfast.cli.main import main
from holdfast.cli.screen import drain
from holdfast.errors import Unreachable
from holdfast.frozen import replace
from holdfast.hosts.ssh_errors import SshAddress, silent
from holdfast.presenting.lines import clock_time
from holdfast.workbench.reach import contacts, events
from holdfast.workbench.reach.contacts import LOGIN_NEEDED, Contact, short_reason
from holdfast.workbench.reach.context import read_context
from kit.projects import own_state, project_at

pytestmark = pytest.mark.usefixtures("in_utc")
SINCE = 1_800_000_120.0  # 2027-01-15 08:02 UTC


@pytest.fixture(autouse=True)
def own(tmp_path):
    own_state(tmp_path)


@pytest.fixture
def history(archive, tmp_path, monkeypatch, capfd):
    """A project with a run that goes on on each of three machines, and one that has ended; `gpu1` is down, `gpu2`
    wants a password. Runs a command that must succeed; what it wrote to stdout and to stderr."""
    (tmp_path / "aml_config").mkdir()
    for name in ("gpu1", "gpu2", "gpu3"):
        (tmp_path / "aml_config" / f"{name}.compute").write_text(f"type: remote\naddress: {name}\nusername: me\n")
        archive.add(archive.running, target=name, target_type="remote")
    archive.add(target="gpu1", target_type="remote")
    project = project_at(tmp_path)
    contacts.write(project, "me@gpu1", Contact(unreachable_since=SINCE, reason="Connection refused"))
    contacts.write(project, "me@gpu2", Contact(unreachable_since=SINCE, reason=LOGIN_NEEDED))
    contacts.write(project, "me@gpu3", Contact(reached=SINCE))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("holdfast.workbench.records.refresh.refresh", lambda *_: iter(()))
    monkeypatch.setattr(time, "time", lambda: SINCE + 3600)
    later = replace(read_context(), now=time.time)
    monkeypatch.setattr("holdfast.cli.command_context.read_context", lambda: later)

    def run(*words: str) -> tuple[str, ...]:
        capfd.readouterr()
        assert main(list(words)) == 0
        return tuple(capfd.readouterr())

    return run


def test_the_table_says_what_is_only_the_last_known_status(history):
    out, _ = history("history", "list", "-o", "table")
    statuses = [line for line in out.splitlines() if "Running" in line or "Completed" in line]
    expected = ["Completed", "Running", "Running, login needed", "Running, unreachable since 08:02"]
    assert [status for line, status in zip(statuses, expected, strict=True) if f" {status} " not in line] == []


def test_for_programs_the_status_stays_and_the_state_of_the_host_stands_beside_it(history):
    found = {each["target"]: each for each in json.loads(history("history", "list", "-o", "json")[0])[1:]}
    assert {each["status"] for each in found.values()} == {"Running"}
    assert found["gpu1"]["host_state"] == {
        "unreachable_since": "2027-01-15T08:02:00+00:00",
        "reason": "Connection refused",
    }
    assert found["gpu2"]["host_state"]["reason"] == LOGIN_NEEDED
    assert "host_state" not in found["gpu3"]
    assert "host_state" not in json.loads(history("history", "list", "-o", "json")[0])[0], "it has ended"
    run = found["gpu1"]["run_id"]
    assert json.loads(history("history", "info", "-r", run, "-o", "json")[0])["host_state"]["reason"]
    assert json.loads(history("status", "-r", run, "-o", "json")[0])["host_state"]["reason"] == "Connection refused"
    assert "Running, unreachable since 08:02" in history("status", "-r", run, "-o", "table")[0]


def test_no_host_is_asked_when_that_is_not_wanted(history, monkeypatch):
    monkeypatch.setattr("holdfast.workbench.records.refresh.refresh", lambda *_: pytest.fail("a machine was asked"))
    assert "unreachable since 08:02" in history("history", "list", "--no-refresh", "-o", "table")[0]
    assert "host_state" in history("history", "list", "--no-refresh", "-o", "json")[0]


def test_a_machine_that_is_silent_is_named_with_the_reason_or_the_command_to_log_in(history, capfd):
    drain(
        [
            events.AskingHosts(("gpu1", "gpu2")),
            events.HostSilent("gpu1", SINCE, "Connection refused"),
            events.HostSilent("gpu2", SINCE - 86400, LOGIN_NEEDED, needs_login=True),
            events.HostSilent("gpu box", SINCE - 86400, LOGIN_NEEDED, needs_login=True),
            events.HostSilent("gpu3", SINCE - 86400, "No route to host"),
            events.OutputsWait("iris_1", "gpu1", 3_200_000_000),
            events.Imported("iris_2"),
        ]
    )
    assert capfd.readouterr().err.splitlines() == [
        "warning: gpu1: unreachable since 08:02 (Connection refused)",
        "warning: gpu2: login needed: holdfast computetarget check gpu2",
        "warning: gpu box: login needed: holdfast computetarget check 'gpu box'",
        "warning: gpu3: unreachable since 2027-01-14 08:02 (No route to host)",
        "The outputs of iris_1 (3.2 GB) wait on gpu1.",
        "  To fetch them: holdfast history download -r iris_1 -d DIR",
        "Imported iris_2.",
    ]


def test_on_a_terminal_a_line_says_whom_all_wait_for_and_goes_away(monkeypatch, capfd):
    monkeypatch.setattr("holdfast.cli.terminal.is_terminal", lambda _: True)
    drain([events.AskingHosts(("gpu1", "gpu2"))])
    assert capfd.readouterr().err == "\r\x1b[Kasking gpu1, gpu2 …\r\x1b[K"


def test_a_time_of_today_has_no_date():
    assert clock_time(SINCE, SINCE + 60) == "08:02"
    assert clock_time(SINCE, SINCE + 86400) == "2027-01-15 08:02"
    assert clock_time(SINCE, SINCE + 366 * 86400) == "2027-01-15 08:02"


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("me@gpu1 cannot be reached: ssh: connect to host gpu1 port 22: Connection refused", "Connection refused"),
        ("The far side on me@gpu1 is gone: it said nothing", "it said nothing"),
        ("", "it said nothing"),
    ],
)
def test_of_a_sentence_only_the_reason_is_kept(message, reason):
    assert short_reason(Unreachable(message), "me@gpu1") == reason


def test_of_a_machine_that_did_not_answer_all_but_its_name_is_kept():
    error = silent(SshAddress("me@gpu1", "ssh me@gpu1"), 10.0)
    assert f"me@gpu1 {short_reason(error, 'me@gpu1')}." == error.message
