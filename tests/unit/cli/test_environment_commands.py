"""What the commands about environments pass on, show and refuse."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.options import environment_ids
from holdfast.environments.spec_findings import SpecFinding
from holdfast.errors import HostError
from holdfast.frozen import replace
from holdfast.history.journal_fold import EnvironmentUsed
from holdfast.hosts.replies import Framework, Installed, ListedEnvironment
from holdfast.model import Ending, Reason, Run, Status, Submission
from holdfast.workbench.environments.inventory import _one
from holdfast.workbench.environments.suitability import EnvironmentCheck, Remark
from holdfast.workbench.reach import events
from holdfast.workbench.records.clean import CleanLimits, Rubbish
from holdfast.workbench.submitting.submit_request import EnvironmentWishes, SubmitRequest

SUBMISSION = Submission("p_1", 1, "p", "p", "", (), "local", "local", "local", "a" * 64, 5.0, "g")
RUN = Run(SUBMISSION, Status.COMPLETED, Ending(Reason.COMPLETED, 0), environment="0123456789abcdef", python="3.11.2")
FAILED = replace(RUN, status=Status.FAILED, ending=Ending(Reason.PREPARATION, detail="no such package."))
STEERING = "\x1b[2Jgone\nerror: no\x9b"
ESCAPED = "\\x1b[2Jgone\\nerror: no\\x9b"


def environment_used(packages: int, built: bool, seconds: float) -> events.Recorded:
    return events.Recorded("iris_1", EnvironmentUsed(0.0, "0123456789abcdef", ("a",) * packages, built, seconds))


def listed(name: str, state: str = "ready") -> ListedEnvironment:
    return ListedEnvironment(name, state, "Python 3.11: numpy", "3.11.2", 12, 2_000_000, 1_000, 1e9, 1e9, 3.2)


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> tuple[list[SubmitRequest], list[events.Event]]:
    """The requests, and the events that follow."""
    asked: list[SubmitRequest] = []
    happening: list[events.Event] = []

    def submit(_project: Any, request: SubmitRequest, *_: Any, **__: Any) -> Iterator[events.Event]:
        asked.append(request)
        yield from happening

    monkeypatch.setattr("holdfast.workbench.submitting.submit.submit", submit)
    return asked, happening


def test_prepare_asks_for_an_environment_and_nothing_else(submitted, command):
    asked, happening = submitted
    run = replace(RUN, packages=("numpy==1", "six==2"))
    happening += [environment_used(2, True, 3.21), events.Ended(run)]
    outcome = command("experiment", "prepare", "-c", "gpu", "-t", "box", "-d", "e.yml", "--rebuild", "--upgrade")
    assert outcome == (0, "", "Environment 01234567 is ready: Python 3.11.2, 2 packages, built in 3.2 s.\n")
    wishes = EnvironmentWishes(None, upgrade=True, rebuild=True)
    request = SubmitRequest(None, (), "gpu", "box", conda_file="e.yml", environment=wishes, prepare_only=True)
    assert asked == [request]


@pytest.mark.parametrize(
    ("happened", "code", "said"),
    [
        (
            [environment_used(1, False, 0.01), events.Ended(RUN)],
            0,
            ["Environment 01234567 was ready: Python 3.11.2, 0 packages.\n"],
        ),
        ([events.Ended(FAILED)], 250, ["could not be built: no such package.", "holdfast logs -r p_1 --control"]),
        ([events.Ended(replace(RUN, python=STEERING))], 0, [f"Python {ESCAPED}, 0 packages.\n"]),
    ],
    ids=["nothing to do", "failed", "steering the terminal"],
)
def test_prepare_says_what_became_of_it(submitted, command, happened, code, said):
    submitted[1].extend(happened)
    outcome = command("experiment", "prepare")
    assert outcome.code == code
    assert all(each in outcome.err for each in said)


def test_ctrl_c_leaves_a_build_that_has_begun_alone(monkeypatch, command):
    def submit(*_: Any, **__: Any) -> Iterator[events.Event]:
        yield events.RunCreated("p_1")
        yield events.RunStarted("p_1")
        raise KeyboardInterrupt

    monkeypatch.setattr("holdfast.workbench.submitting.submit.submit", submit)
    outcome = command("experiment", "prepare")
    assert outcome.code == 253
    assert "goes on being built" in outcome.err
    assert "holdfast cancel -r p_1" in outcome.err


def test_wishes_of_submit_reach_the_plan_and_contradictions_do_not(monkeypatch, command):
    asked: list[SubmitRequest] = []

    def dry_run(_project: Any, request: SubmitRequest, _context: Any) -> tuple[()]:
        asked.append(request)
        return ()

    monkeypatch.setattr("holdfast.workbench.submitting.submit.dry_run", dry_run)
    of_last = ("submit", "--dry-run", "--environment-of", "last")
    assert command(*of_last, "--rebuild", "t.py", "--upgrade").code == 0
    assert command(*of_last, "--upgrade", "t.py").code == 240
    assert command(*of_last, "-d", "e.yml", "t.py").code == 240
    assert asked == [SubmitRequest("t.py", ("--upgrade",), environment=EnvironmentWishes("last", False, True))]


def test_where_nothing_was_removed_nothing_is_said_to_be_freed(removed, command, monkeypatch):
    kept = events.Removed("environment abd2", 0, "The environment abd2 is in use.")
    monkeypatch.setattr("holdfast.workbench.environments.inventory.remove_environments", lambda *_: iter([kept]))
    outcome = command("environment", "remove", "abd")
    assert outcome.code == 246
    assert outcome.err.startswith("error: The environment abd2 is in use.\n")
    everything = command("environment", "remove", "--all", "--yes")
    assert (everything.code, everything.err) == (0, "kept environment abd2: The environment abd2 is in use.\n")


@pytest.fixture
def removed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A host with two environments; returns what was removed."""
    gone: list[str] = []

    def remove(_host: Any, names: list[str]) -> Iterator[events.Removed]:
        for name in names:
            gone.append(name)
            yield events.Removed(f"environment {name}", 1000)

    def find(_host: Any, names: tuple[str, ...]) -> list[ListedEnvironment]:
        there = [listed("abc1"), listed("abd2", "in use")]
        return [_one(there, name) for name in names] if names else there

    monkeypatch.setattr("holdfast.workbench.environments.inventory.find_environments", find)
    monkeypatch.setattr("holdfast.workbench.environments.inventory.remove_environments", remove)
    return gone


def test_one_is_removed_without_a_confirmation_and_several_are_not(removed, command, monkeypatch):
    outcome = command("environment", "remove", "abc")
    assert (outcome.code, removed) == (0, ["abc1"])
    assert outcome.err == "removed environment abc1\n1.0 kB freed.\n"
    monkeypatch.setattr("holdfast.cli.terminal.agreed", lambda *_: False)
    assert command("environment", "remove", "--all").code == 251
    assert command("environment", "remove", "abc", "abd").code == 251
    assert removed == ["abc1"]
    assert command("environment", "remove", "--all", "--yes").code == 0
    assert removed == ["abc1", "abc1", "abd2"]


@pytest.mark.parametrize("words", [(), ("--all", "abc"), ("ab",), ("x",)])
def test_what_is_to_be_removed_has_to_be_clear(removed, command, words):
    assert command("environment", "remove", *words).code == 240
    assert removed == []


def test_a_table_has_short_ids_and_data_whole_ones(command, monkeypatch):
    there = [listed("0123456789abcdef")]
    monkeypatch.setattr("holdfast.workbench.environments.inventory.list_environments", lambda _host: there)
    table = command("environment", "list", "-o", "table").out.splitlines()
    assert table[0].split() == ["Id", "Python", "Packages", "Size", "Own", "Last", "use", "State", "Asked", "for"]
    assert table[2].split()[:8] == ["01234567", "3.11.2", "12", "2.0", "MB", "1.0", "kB", table[2].split()[7]]
    assert command("environment", "list", "-o", "tsv", "--query", "[].id").out == "0123456789abcdef\n"


REMARK = Remark("error", "gone", "tensorflow-gpu", "It is gone.", "Write `x`.", "e.yml", 7, "x")
OLD = Remark("warning", "file", "", "Old.", "Anew.", "uv.lock")
TWICE = Remark("warning", "shadowed", "a", "Both.", "Keep one.")
OFF = HostError("It is off.", "Turn it on.")
THERE = Installed(True, (), None, "", False, "0123456789abcdef", "/e", "3.11.2", 3)


@pytest.mark.parametrize(
    ("checked", "code", "out"),
    [
        (EnvironmentCheck("e.yml", 3, True, (), THERE, None), 0, ""),
        (
            EnvironmentCheck("e.yml", 3, True, (REMARK,), THERE, None),
            241,
            "e.yml:7: error: It is gone.\n    Write `x`.\n",
        ),
        (EnvironmentCheck("uv.lock", 3, True, (OLD,), THERE, None), 0, "uv.lock: warning: Old.\n    Anew.\n"),
        (EnvironmentCheck("e.yml", 3, True, (), None, OFF), 245, ""),
        (
            EnvironmentCheck("e.yml", 3, True, (REMARK,), None, OFF),
            241,
            "e.yml:7: error: It is gone.\n    Write `x`.\n",
        ),
        (EnvironmentCheck("", 0, False, (TWICE,), THERE, None), 0, "warning: Both.\n    Keep one.\n"),
    ],
)
def test_check_ends_by_what_was_found(checked, code, out, command, monkeypatch):
    monkeypatch.setattr("holdfast.workbench.environments.suitability.check", lambda *_: checked)
    outcome = command("environment", "check", "-o", "table")
    assert (outcome.code, outcome.out) == (code, out)
    assert "Looked at: " in outcome.err


def test_what_a_machine_says_of_itself_does_not_steer_the_terminal(command, monkeypatch):
    frameworks = (Framework(STEERING, STEERING, STEERING, False),)
    about = (True, (STEERING,), STEERING, "", True, "", "/e", STEERING, 3, frameworks)
    remarks = (Remark("error", "gone", "x", STEERING, STEERING), Remark(STEERING, "x", "x", "x", "x"))
    without = replace(Installed(*about), gpus=(), problem=STEERING)
    for checked in (
        EnvironmentCheck("", 0, True, remarks, Installed(*about), None),
        EnvironmentCheck("", 0, True, (), without, None),
        EnvironmentCheck("", 0, True, (), None, HostError(STEERING, STEERING)),
    ):
        monkeypatch.setattr("holdfast.workbench.environments.suitability.check", lambda *_, checked=checked: checked)
        outcome = command("environment", "check", "-o", "table")
        assert ESCAPED.partition("\\n")[0] in outcome.out + outcome.err
        assert not {"\x1b", "\x9b"} & set(outcome.out + outcome.err)
        assert not any(line.startswith("error: no") for line in outcome.err.splitlines())


@pytest.fixture
def in_project(tmp_path: Path) -> None:
    """Elsewhere, `clean` is about machines."""
    (tmp_path / "aml_config").mkdir()


def test_what_a_machine_says_of_its_environments_does_not_steer_the_terminal(command, monkeypatch, in_project):
    there = [replace(listed("abc1"), id=STEERING, summary=STEERING), listed("abd2")]
    gone = [events.Removed(f"environment {STEERING}", 0, STEERING), events.Removed(STEERING, 7)]
    monkeypatch.setattr("holdfast.workbench.environments.inventory.find_environments", lambda *_: there)
    monkeypatch.setattr("holdfast.workbench.environments.inventory.remove_environments", lambda *_: gone)
    monkeypatch.setattr("holdfast.workbench.records.clean.clean", lambda *_: gone)
    monkeypatch.setattr("holdfast.cli.terminal.agreed", lambda *_: True)
    named = command("environment", "remove", "a").err
    assert f"error: {ESCAPED}\n" in named
    assert not {"\x1b", "\x9b"} & set(named)
    for words in (("environment", "remove", "--all"), ("experiment", "clean", "--environments")):
        outcome = command(*words)
        assert f"kept environment {ESCAPED}: {ESCAPED}\nremoved {ESCAPED}" in outcome.err
        assert not {"\x1b", "\x9b"} & set(outcome.err)


@pytest.fixture
def cleaned(monkeypatch: pytest.MonkeyPatch, in_project: None) -> list[Rubbish]:
    """What `clean` was asked to remove."""
    asked: list[Rubbish] = []

    def clean(_project: Any, rubbish: Rubbish, _context: Any) -> tuple[()]:
        asked.append(rubbish)
        return ()

    monkeypatch.setattr("holdfast.workbench.records.clean.clean", clean)
    return asked


def test_clean_takes_limits_for_environments_and_for_nothing_else(command, cleaned):
    assert command("experiment", "clean", "--environments", "--older-than", "30d", "--keep", "20GB").code == 0
    assert command("experiment", "clean", "--all", "--environments", "--yes").code == 0
    limits = CleanLimits(30 * 86400.0, 20_000_000_000)
    assert cleaned == [Rubbish((), None, True, limits=limits), Rubbish(None, None, True)]
    for words in (["--all", "--keep", "1GB"], ["--environments", "--keep", "much"], []):
        assert command("experiment", "clean", *words).code == 240
    unitless = command("experiment", "clean", "--environments", "--keep", "10")
    assert (unitless.code, "10GB" in unitless.err) == (240, True)
    assert len(cleaned) == 2


def test_what_was_cleaned_before_a_machine_failed_is_said_and_nothing_where_nothing_was(
    command, monkeypatch, in_project
):
    happening: list[events.Event] = []

    def clean(*_: Any) -> Iterator[events.Event]:
        yield from happening
        raise HostError("gpu1 cannot be reached.", "Turn it on.")

    monkeypatch.setattr("holdfast.workbench.records.clean.clean", clean)
    failed = command("experiment", "clean", "--all", "-t", "gpu1")
    assert (failed.code, failed.err) == (245, "error: gpu1 cannot be reached.\n  Turn it on.\n")
    happening.append(events.Removed("p_1", 1000))
    partly = command("experiment", "clean", "-r", "p_1", "-r", "p_2")
    assert partly.code == 245
    assert partly.err.startswith("removed p_1 (1.0 kB)\n1 removed, 1.0 kB freed; not all:\nerror: gpu1 cannot")


def test_environments_of_all_projects_are_not_removed_without_a_confirmation(command, cleaned, monkeypatch):
    unconfirmed = command("experiment", "clean", "--all", "--environments", "-t", "gpu1")
    assert (unconfirmed.code, cleaned) == (240, [])
    assert "on gpu1 are shared: other projects may use them" in unconfirmed.err
    assert "--yes" in unconfirmed.err
    monkeypatch.setattr("holdfast.cli.terminal.agreed", lambda *_: False)
    assert (command("experiment", "clean", "--all", "--environments").code, cleaned) == (251, [])
    assert (command("experiment", "clean", "--all").code, len(cleaned)) == (0, 1)


def test_what_is_in_use_is_said_once_with_the_command_that_tells_by_whom(command, monkeypatch):
    kept = [events.Removed(f"environment {name}", 0, f"`{name}` is in use.") for name in ("abc1", "abd2")]
    monkeypatch.setattr("holdfast.cli.environment._host", lambda *_: type("Host", (), {"name": "gpu1"}))
    monkeypatch.setattr(
        "holdfast.workbench.environments.inventory.find_environments", lambda *_: [listed("abc1"), listed("abd2")]
    )
    monkeypatch.setattr("holdfast.workbench.environments.inventory.remove_environments", lambda *_: kept)
    said = command("environment", "remove", "abc1", "abd2", "--yes", "-t", "gpu1").err
    for name in ("abc1", "abd2"):
        assert said.count(f"`{name}` is in use.") == 1
        assert said.count(f"holdfast environment show {name} -t gpu1\n") == 1
    assert "show ID" not in said


def test_after_a_fix_nothing_else_was_found(command, monkeypatch):
    change = SpecFinding("gone", "sklearn", "", "", "error", "e.yml", 3, "scikit-learn", "sklearn")
    for fixed, sentence in (((change,), "Nothing else found. "), ((), "Nothing found. ")):
        checked = EnvironmentCheck("e.yml", 3, True, (), THERE, None, fixed)
        monkeypatch.setattr("holdfast.workbench.environments.suitability.check", lambda *_, checked=checked: checked)
        assert sentence in command("environment", "check", "--fix", "-o", "table").err


def test_ids_of_this_machine_are_completed(isolated):
    for name in ("abc1", "abd2", "half"):
        (isolated / ".holdfast" / "environments" / name).mkdir(parents=True)
        if name != "half":
            (isolated / ".holdfast" / "environments" / name / ".complete").write_text("{}")
    nothing: Any = None
    assert environment_ids(nothing, nothing, "a") == ["abc1", "abd2"]
    assert environment_ids(nothing, nothing, "abd") == ["abd2"]


def test_commands_about_environments_load_nothing_heavy():
    code = "import sys, holdfast.cli.environment; print([m for m in sys.modules if m in ('yaml', 'rich', 'sqlite3')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_clean_asks_on_a_terminal_before_it_removes_the_only_copy(command, monkeypatch, in_project):
    asked: list[Rubbish] = []

    def clean(_project: Any, rubbish: Rubbish, _context: Any) -> Iterator[events.Event]:
        asked.append(rubbish)
        why = "" if rubbish.discard else "only there: big.bin"
        yield events.Removed("p_1", 1000, why, is_only_copy=bool(why))
        yield events.Removed("p_2", 0, "it has not ended")

    monkeypatch.setattr("holdfast.workbench.records.clean.clean", clean)
    assert command("experiment", "clean", "--all", "-t", "gpu1").code == 0
    first = Rubbish(None, "gpu1")
    assert asked == [first], "without a terminal it keeps them"
    monkeypatch.setattr("holdfast.cli.terminal.can_ask", lambda: True)
    for answer in (False, True):
        monkeypatch.setattr("holdfast.cli.terminal.agreed", lambda *_, answer=answer: answer)
        done = command("experiment", "clean", "--all", "-t", "gpu1")
        assert "kept p_1: only there: big.bin" in done.err
    assert asked == [first, first, first, Rubbish(("p_1",), "gpu1", discard=True)]
