"""The verdict on a run, from the files in its folder, by whoever sees its end."""

import json
import os
from typing import Any, Dict, Optional

from holdfast.farside.gpu.judging import facts as known
from holdfast.farside.gpu.judging import reasons
from holdfast.farside.gpu.judging.answer import UNKNOWN, answer
from holdfast.farside.gpu.judging.facts import End, Facts
from holdfast.farside.gpu.judging.reasons import Blanks
from holdfast.farside.gpu.judging.verdict import Verdict, as_json, judge
from holdfast.farside.gpu.request import Request
from holdfast.farside.gpu.watching import samples
from holdfast.farside.layout import GPU_FACTS, SAMPLES


def conclude(folder: str, end: End, request: Optional[Request] = None) -> Dict[str, Any]:
    """The keys of the journal's event `gpu`. Never raises for files that are missing or damaged: what they would have
    said is unknown. `request` is what the run asked for, where no file says it."""
    facts = _facts(os.path.join(folder, GPU_FACTS))
    if facts is None:
        facts = known.NOTHING._replace(request=request or Request())
    try:
        verdict = judge(facts, end, samples.read(_content(os.path.join(folder, SAMPLES))))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        # Whole lines of a kind that nobody writes: a verdict must not cost a run its ending.
        said = answer(UNKNOWN, reasons.NOT_WATCHED, Blanks())
        verdict = Verdict(*said, devices=(), waited=None, spells=(), evidence="")
    return as_json(verdict)


def _facts(path: str) -> Optional[Facts]:
    try:
        return known.parse(json.loads(_content(path).decode("utf-8")))
    except ValueError:
        return None


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as source:
            return source.read()
    except OSError:
        return b""
