"""What Holdfast reads from a command line before it loads the command."""

from __future__ import annotations

import subprocess
import sys

import pytest

from holdfast.cli.early_connection import TypedTarget, followed, submitted_to, takes_value
from holdfast.cli.submit_command import submit_command


def test_every_option_of_submit_is_known():
    options = {name: each for each in submit_command.params for name in each.opts if name.startswith("-")}
    found = {name: takes_value(name) for name in options}
    assert found == {
        name: None if name in ("--dry-run", "--help", "-h") else not getattr(option, "is_flag", False)
        for name, option in options.items()
    }


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("submit -c gpu1 train.py -t other", TypedTarget("gpu1", None)),
        ("experiment submit --target=gpu2 -a --grace 5s train.py", TypedTarget(None, "gpu2")),
        ("submit --run-configuration gpu1 -t gpu2 train.py", TypedTarget("gpu1", "gpu2")),
        ("submit gpu1.runconfig", TypedTarget("gpu1.runconfig", None)),
        ("submit train.py", TypedTarget(None, None)),
        ("submit -c gpu1 --dry-run train.py", None),
        ("submit -c", None),
        ("submit -c gpu1", None),
        ("submit --unknown train.py", None),
        ("submit -h", None),
        ("logs -f", None),
        ("history list", None),
        ("", None),
    ],
)
def test_the_place_of_a_submission_is_read_or_left_to_the_command(line, expected):
    assert submitted_to(line.split()) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("logs -f", "last"),
        ("experiment logs --follow -r mnist_1", "mnist_1"),
        ("logs -r mnist_1", None),
        ("logs -f --control", None),
        ("logs -f -t gpu1", None),
        ("submit -f x.py", None),
    ],
)
def test_the_run_that_is_followed_is_read_or_left_to_the_command(line, expected):
    assert followed(line.split()) == expected


def test_looking_ahead_loads_neither_click_nor_a_command():
    code = (
        "import sys; from holdfast.cli.early_connection import begin; begin(['submit', '-c', 'none', 'x.py']); "
        "print([name for name in ('click', 'holdfast.cli.experiment', 'holdfast.model') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
