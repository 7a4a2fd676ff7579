"""The comparison finds what a run did otherwise than the command by hand."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from kit.repositories import Outcome, Repository, Step, by_hand, differences, read

pytestmark = pytest.mark.kit
HAND = Outcome(0, "loss 0.5\n", {"outputs/a.txt": b"1\n", "../b.txt": b"2\n"})
README = """# Title
```console
$ pip install -r requirements.txt
$ python prepare.py
$ cd examples
$ python train.py \\
    --steps 3
3 steps
```
"""


@pytest.fixture
def case(tmp_path: Path) -> Repository:
    folder = tmp_path / "case"
    (folder / "examples").mkdir(parents=True)
    (folder / "README.md").write_text(README)
    (folder / "examples" / "train.py").write_text("open('../../above', 'w').write('new')\n")
    about = {"here": ["python prepare.py"], "commands": {"python train.py --steps 3": "--from last --tty"}}
    (folder / "case.json").write_text(json.dumps({**about, "varies": [r"\d\d:\d\d"], "differ": ["*.bin"]}))
    return read(folder)


def test_the_readme_says_what_is_typed_and_where(case):
    prepare, train = case.steps
    assert prepare == Step("python prepare.py", ".", is_here=True)
    assert train == Step("python train.py --steps 3", "examples", ("--from", "last", "--tty"))


def test_a_key_or_command_that_nobody_reads_is_an_error(case):
    (case.folder / "case.json").write_text('{"comands": {}}')
    with pytest.raises(AssertionError, match="comands"):
        read(case.folder)
    (case.folder / "case.json").write_text('{"here": ["python prepair.py"]}')
    with pytest.raises(AssertionError, match="prepair"):
        read(case.folder)


@pytest.mark.parametrize("has_terminal", [True, False])
def test_by_hand_what_a_command_prints_and_writes_is_seen(case, tmp_path, has_terminal):
    top = case.copy(tmp_path / "hand")
    step = Step("python train.py; stty size; exit 3", "examples", ("--tty",) * has_terminal)
    outcome = by_hand(step, top, os.environ)
    assert (outcome.code, outcome.files) == (3, {"../above": b"new"})
    assert ("24 80" in outcome.out) is has_terminal


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, None),
        ({"code": 1}, "exit code 1, by hand 0"),
        ({"out": "loss 0.6\n"}, "printed"),
        ({"files": {"outputs/a.txt": b"1\n"}}, "`../b.txt` is not at home"),
        ({"files": {**HAND.files, "c": b""}}, "`c` is at home, and not made by hand"),
        ({"files": {**HAND.files, "outputs/a.txt": b"3\n"}}, "`outputs/a.txt` holds"),
    ],
)
def test_every_difference_is_found(case, change, message):
    found = differences(case, HAND, replace(HAND, **change), Path("/clone"))
    assert [message in each for each in found] == ([True] if message else [])


def test_what_the_case_names_may_differ(case):
    hand = Outcome(0, "/clone/x at 10:11\n", {"10:11/log": b"10:11", "a.bin": b"1"})
    far = f"/home/me/.holdfast/runs/{'a' * 32}/clone_1795053125398/work/above/above/above/clone/x at 10:12\n"
    run = Outcome(0, far, {"10:12/log": b"10:12", "a.bin": b"2"})
    assert differences(case, hand, run, Path("/clone")) == []
