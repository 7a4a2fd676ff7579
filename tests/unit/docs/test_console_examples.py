"""The runner of the documentation's examples notices wrong examples."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from integration.console_examples import Answer, Example, collect, complaint, matches, run

PAGE = """\
# A page

<!-- run -->
```console
$ mkdir mnist && cd mnist
$ export NAME=ada
$ echo "hello $NAME" \\
>     again
hello ada again
```

```console
$ not run: it has no mark
```

<!-- run: exit 3 -->
```bash
basename "$PWD"
(exit 3)
```
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "reader").mkdir()
    return tmp_path / "reader"


def test_the_marked_blocks_of_a_page_are_collected_in_order_and_typed_into_one_shell(folder):
    examples = collect(PAGE)
    assert examples == [
        Example(5, "mkdir mnist && cd mnist"),
        Example(6, "export NAME=ada"),
        Example(7, 'echo "hello $NAME" \\\n    again', 0, ("hello ada again",)),
        Example(18, 'basename "$PWD"\n(exit 3)', 3),
    ]
    answers = run(examples, folder, os.environ, timeout=60)
    assert answers == [Answer(0, ""), Answer(0, ""), Answer(0, "hello ada again\n"), Answer(3, "mnist\n")]
    assert [complaint(*pair) for pair in zip(examples, answers, strict=True)] == ["", "", "", ""]


def test_nothing_is_typed_after_a_command_that_failed(folder):
    examples = [Example(1, "false"), Example(2, "echo late")]
    answers = run(examples, folder, os.environ, timeout=60)
    assert answers == [Answer(1, "")]
    assert "exit code 1, expected 0" in complaint(examples[0], answers[0])


def test_other_output_than_shown_is_a_complaint_with_both():
    said = complaint(Example(7, "holdfast status", 0, ("Completed",)), Answer(0, "Failed\n"))
    assert said == "line 7: $ holdfast status\nshown:\nCompleted\n\nreally:\nFailed\n"


SAME, OTHER = True, False


@pytest.mark.parametrize(
    ("shown", "output", "does_match"),
    [
        (("RunId: mnist_1521077190506",), "RunId: mnist_1790000000123\n", SAME),
        (("took 4.9 s, from 2026-11-15 19:53:01",), "took 12 s, from 2027-01-01 00:00:00\n", SAME),
        (("0:00:04.892389",), "1:00:00\n", SAME),
        (("first", "…", "last"), "first\na\nb\nlast\n", SAME),
        (("first", "…", "last"), "first\nlast\n", SAME),
        (("step 1 loss …",), "step 1 loss 0.731\n", SAME),
        (("name   status", "-----  ------"), "name       status\n---------  ------\n", SAME),
        (("first", "last"), "first\nmiddle\nlast\n", OTHER),
        (("accuracy 0.97",), "accuracy 0.96\n", OTHER),
        (("a.c",), "abc\n", OTHER),
        (("first", "…"), "second\n", OTHER),
        (("RunId: mnist_1521077190506",), "RunId: none\n", OTHER),
    ],
)
def test_what_differs_from_run_to_run_may_differ_and_nothing_else(shown, output, does_match):
    assert matches(shown, output) is does_match


def test_a_mark_without_a_block_is_an_error():
    with pytest.raises(ValueError, match="line 1: <!-- run --> must stand right above"):
        collect("<!-- run -->\n\n```console\n$ true\n```\n")
