"""Options on the wrong side of the script: reported before the run starts, and no error if they could be intended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from holdfast.cli.main import main
from holdfast.cli.submit_command import submit_command
from holdfast.errors import ExitCode
from holdfast.workbench.reach import events
from holdfast.workbench.submitting import submit

Said = Callable[..., str]


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    """`said(*words)`: what `submit` says before it starts anything."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("import sys\n")
    (tmp_path / "aml_config").mkdir()
    (tmp_path / "aml_config" / "gpu1.compute").write_text("type: local\n")
    (tmp_path / "aml_config" / "gpu1.runconfig").write_text(
        "Target: gpu1\nFramework: Python\nArgumentVector: [train.py]\n"
    )

    def nothing(*_: Any, **__: Any) -> Iterator[events.Event]:
        return iter(())

    def call(*words: str, code: int = 0) -> str:
        monkeypatch.setattr(submit, "submit", nothing)
        assert main(["submit", *words]) == code
        return capsys.readouterr().err

    return call


def test_every_option_that_the_script_gets_is_named_with_the_line_that_was_meant(said):
    assert said("-c", "gpu1", "train.py", "--gpus", "1", "--rate", "0.1", "--require-gpu", "--time-limit=1s") == (
        "warning: `--gpus 1`, `--require-gpu` and `--time-limit=1s` stand after the script, so the script gets them.\n"
        "  Options of submit come first: "
        "holdfast submit -c gpu1 --gpus 1 --require-gpu --time-limit=1s train.py --rate 0.1\n"
        "  If the script is to get them, this is quiet: holdfast submit -c gpu1 -- train.py …\n"
    )


def test_the_words_that_start_the_script_stay_before_it(said):
    shown = said("-c", "gpu1", "python", "-u", "train.py", "--gpus", "1", "x")
    assert "holdfast submit -c gpu1 --gpus 1 python -u train.py x\n" in shown
    assert "holdfast submit -c gpu1 -- python -u train.py …\n" in shown


@pytest.mark.parametrize("words", [("-t", "gpu1"), ("-c", "gpu1"), ("--target", "gpu1"), ("--run-configuration", "x")])
def test_who_meant_another_place_is_told_that_the_run_is_local(said, words):
    shown = said("train.py", *words)
    assert (
        f"warning: `{' '.join(words)}` stands after the script, so the script gets it and the run is local.\n" in shown
    )
    assert f"holdfast submit {' '.join(words)} train.py\n" in shown


def test_every_long_option_of_the_command_is_known(said):
    options = [each for each in submit_command.params if isinstance(each, click.Option) and each.expose_value]
    names = [name for each in options for name in each.opts if name.startswith("--")]
    assert {"--dry-run", "--async", "--stop-if-idle", "--output"} <= set(names)
    for name in names:
        assert f"`{name}" in said("train.py", name)


@pytest.mark.parametrize(
    "words",
    [
        ("train.py", "-d", "data", "-a", "-o", "out"),
        ("train.py", "-c", "5", "-t", "0.5"),
        ("train.py", "--help", "--verbose", "--debug"),
        ("train.py", "--gpus-per-node", "1"),
        ("train.py", "--", "--gpus", "1"),
        ("--", "train.py", "--gpus", "1"),
        ("-c", "gpu1", "--", "train.py", "--dry-run"),
    ],
)
def test_what_is_likely_the_scripts_own_or_is_said_to_be_so_is_not_worth_a_word(said, words):
    assert said(*words) == ""


@pytest.mark.parametrize("script", ["train.py", "gpu1.runconfig"])
@pytest.mark.parametrize(
    ("text", "is_known"), [("add('--gpus')", True), ("add('--gpus-per-node')", False), ("gpus = 1", False)]
)
def test_an_option_that_the_script_names_is_its_own(said, tmp_path, script, text, is_known):
    (tmp_path / "train.py").write_text(text)
    assert ("--gpus 1" in said(script, "--gpus", "1")) is not is_known


@pytest.mark.parametrize(("text", "is_known"), [("add('-t', int)", True), ("# a hand-tuned value\n", False)])
def test_a_letter_counts_only_in_quotes(said, tmp_path, text, is_known):
    (tmp_path / "train.py").write_text(text)
    assert ("-t gpu1" in said("train.py", "-t", "gpu1")) is not is_known


def test_the_value_of_a_secret_is_not_shown_once_more(said):
    for words in (("--secret", "TOKEN=hush"), ("--secret=TOKEN=hush",)):
        shown = said("train.py", *words)
        assert "`--secret TOKEN` stands after" in shown
        assert "hush" not in shown


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("--epochs 3 train.py", "train.py --epochs 3"),
        ("--epochs=3 -c gpu1 train.py --rate 1", "-c gpu1 train.py --epochs=3 --rate 1"),
        ("--dry-run -e 3 train.py", "--dry-run train.py -e 3"),
        ("--epochs 3", "SCRIPT --epochs …"),
        ("-ax train.py", "SCRIPT -x …"),
    ],
)
def test_an_option_of_the_script_before_it_is_shown_its_place(said, typed, meant):
    lines = said(*typed.split(), code=ExitCode.USAGE).splitlines()
    assert lines[0].startswith("error: No such option")
    assert lines[1:] == [
        f"  An option of the script goes after it: holdfast submit {meant}",
        "  Those of submit: holdfast submit --help",
    ]
