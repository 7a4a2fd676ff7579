"""A glob after `--include` that the shell replaced by the names of files: the second of them would be the script."""

from __future__ import annotations

import itertools
import os

from holdfast.errors import UsageError
from holdfast.shown_text import pasted
from holdfast.workbench.submitting.named_file import is_script
from holdfast.workbench.submitting.submit_request import SubmitRequest


def refuse_expanded(request: SubmitRequest) -> None:
    """`--include data/* train.py`: the shell makes the second file of `data/` the script, and all others arguments."""
    folder = os.path.dirname(request.include[-1]) if request.include else ""
    words = (request.script or "", *request.arguments)
    rest = list(itertools.dropwhile(lambda word: os.path.dirname(word) == folder, words))
    if folder and len(rest) < len(words) and rest and is_script(rest[0]):
        raise UsageError(
            "The shell expanded the glob after --include.",
            f"Quote it: holdfast submit --include {pasted(f'{folder}/*')} {pasted(rest[0])}",
        )
