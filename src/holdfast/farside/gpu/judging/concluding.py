"""The verdict on a run, from the files in its folder, by whoever sees its end."""

import json
import os
from typing import Any, Dict, Optional

from holdfast.farside.gpu.judging import facts as known
from holdfast.farside.gpu.judging import reasons
from holdfast.farside.gpu.judging.answer import UNKNOWN, worded
from holdfast.farside.gpu.judging.facts import End, Facts
from holdfast.farside.gpu.judging.not_using import not_asked
from holdfast.farside.gpu.judging.verdict import Verdict, as_json, judge
from holdfast.farside.gpu.request import Request
from holdfast.farside.gpu.watching import samples
from holdfast.farside.gpu.watching.samples import Samples
from holdfast.farside.layout import GPU_FACTS, SAMPLES

_DAMAGED = "what was seen of the GPUs cannot be read"
_REMEDY = (
    "Look at `gpu.jsonl` in the run's folder and at the disk that it is on: lines in it are damaged. The run itself is "
    "not concerned."
)
_ANYTHING = (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)


def conclude(folder: str, end: End, request: Optional[Request] = None) -> Dict[str, Any]:
    """The keys of the journal's event `gpu`. Never raises for files that are missing or damaged: what they would have
    said is unknown. `request` is what the run asked for, where no file says it."""
    facts = _facts(os.path.join(folder, GPU_FACTS))
    if facts is None:
        facts = known.NOTHING._replace(request=request or Request())
    try:
        seen = samples.read(_content(os.path.join(folder, SAMPLES)))
    except _ANYTHING:
        return _damaged(facts)
    return judged(facts, end, seen)


def judged(facts: Facts, end: End, seen: Samples) -> Dict[str, Any]:
    """The keys of the journal's event `gpu`. Never raises: whole lines of a kind that nobody writes may be among what
    was seen, and a verdict must not cost a run its ending."""
    try:
        return as_json(judge(facts, end, seen))
    except _ANYTHING:
        return _damaged(facts)


def _damaged(facts: Facts) -> Dict[str, Any]:
    said = worded(UNKNOWN, reasons.NOT_WATCHED, _DAMAGED, _REMEDY) if facts.is_meant else not_asked(facts)
    return as_json(Verdict(*said, devices=(), waited=None, spells=(), evidence=""))


def _facts(path: str) -> Optional[Facts]:
    try:
        return known.parse(json.loads(_content(path).decode("utf-8")))
    except (ValueError, RecursionError):
        return None


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as source:
            return source.read()
    except OSError:
        return b""
