"""Whether a run used GPUs, as JSON and back: in the journal, the index and queries. Any JSON is accepted; what it does
not say is not known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from holdfast.model import GpuUse, Reason, Run, UseState, Verdict


def verdict_of(data: object) -> Verdict | None:
    """None for what is no verdict at all. A state that this version does not know is one that it cannot judge by."""
    if not isinstance(data, Mapping) or not isinstance(data.get("state"), str):
        return None
    return Verdict(
        state=_STATES.get(data["state"], UseState.UNKNOWN),
        reason=_text(data.get("reason")),
        sentence=_text(data.get("sentence")),
        remedy=_text(data.get("remedy")),
        devices=tuple(_use(each) for each in _list(data.get("devices")) if isinstance(each, Mapping)),
        waited=_amount(data.get("waited")),
        spells=tuple(found for found in map(_spell, _list(data.get("spells"))) if found is not None),
        evidence=_text(data.get("evidence")),
    )


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """`verdict_of` gives back an equal one."""
    return {
        "state": verdict.state.value,
        "reason": verdict.reason,
        "sentence": verdict.sentence,
        "remedy": verdict.remedy,
        "devices": [each._asdict() for each in verdict.devices],
        "waited": verdict.waited,
        "spells": [list(each) for each in verdict.spells],
        "evidence": verdict.evidence,
    }


def in_brief(verdict: Verdict | None) -> str:
    """In a few words, for a column; empty where there is nothing to say."""
    if verdict is None or verdict.state is UseState.NOT_ASKED:
        return ""
    words = in_words(verdict.state)
    if verdict.state is UseState.USED:
        means = [each.mean for each in verdict.devices if each.first_use is not None and each.mean is not None]
        return f"{words} {sum(means) / len(means):.0f} %" if means else words
    return words


def in_full(run: Run) -> str:
    """The sentence and what to do; empty where there is nothing to say."""
    if run.gpu is None or run.gpu.state is UseState.NOT_ASKED:
        return ""
    return f"{run.gpu.sentence} {remedy(run)}".strip()


def in_words(state: UseState) -> str:
    match state:
        case UseState.NOT_ASKED:
            return "not asked for"
        case UseState.USED:
            return "used"
        case UseState.PARTLY_USED:
            return "partly"
        case UseState.NOT_USED:
            return "NOT used"
        case UseState.NOT_AVAILABLE:
            return "not available"
        case UseState.UNKNOWN:
            return "unknown"


def remedy(run: Run) -> str:
    """What to do about the verdict; empty where its sentence, or how the run ended, has said so."""
    verdict, ending = run.gpu, run.ending
    is_said = ending is not None and ending.reason is Reason.NO_GPU and bool(ending.detail)
    return "" if verdict is None or is_said or verdict.remedy in verdict.sentence else verdict.remedy


def is_repeated(note: str, run: Run) -> bool:
    """Whether the verdict says what a note said before the script started: the same check's sentence and remedy."""
    verdict = run.gpu
    if verdict is None or verdict.state is UseState.NOT_ASKED or not verdict.remedy:
        return False
    said = f"{verdict.sentence.partition(': ')[2]} {verdict.remedy}"
    return note[1:] == said[1:] and note[:1].lower() == said[:1].lower()  # behind the colon it goes on in small letters


_STATES = {each.value: each for each in UseState}


def _use(data: Mapping[str, Any]) -> GpuUse:
    number, peak = _amount(data.get("number")), _amount(data.get("peak_memory"))
    return GpuUse(
        number=0 if number is None else int(number),
        uuid=_text(data.get("uuid")),
        name=_text(data.get("name")),
        mean=_amount(data.get("mean")),
        peak_memory=None if peak is None else int(peak),
        first_use=_amount(data.get("first_use")),
        busy=_amount(data.get("busy")),
        is_leased=data.get("is_leased") is True,
    )


def _spell(data: object) -> tuple[float, float] | None:
    if not isinstance(data, list) or len(data) != 2:
        return None
    begin, end = _amount(data[0]), _amount(data[1])
    return None if begin is None or end is None or end < begin else (begin, end)


def _amount(value: object) -> float | None:
    """What is measured is not negative; bytes of a GPU fit into 2**53 too."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
        return None
    return float(value) if math.isfinite(value) else None


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
