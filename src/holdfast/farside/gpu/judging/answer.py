"""What can be answered to the question whether a run used the GPUs. Pure."""

from typing import NamedTuple, Optional

from holdfast.farside.gpu.judging import reasons, telling
from holdfast.farside.gpu.judging.checks import Check
from holdfast.farside.gpu.judging.occasions import Occasion
from holdfast.farside.gpu.judging.reasons import Blanks
from holdfast.farside.gpu.judging.tallies import Tally

USED, PARTLY_USED, NOT_USED = "used", "partly-used", "not-used"
NOT_ASKED, NOT_AVAILABLE, UNKNOWN = "not-asked", "not-available", "unknown"
STATES = (USED, PARTLY_USED, NOT_USED, NOT_ASKED, NOT_AVAILABLE, UNKNOWN)
PREFIXES = {
    USED: "GPU used: ",
    PARTLY_USED: "GPU partly used: ",
    NOT_USED: "GPU NOT used: ",
    NOT_ASKED: "GPU not asked for",
    NOT_AVAILABLE: "GPU not available: ",
    UNKNOWN: "GPU use unknown: ",
}


class Use(NamedTuple):
    """Of one device: per cent over the script's time, bytes, seconds after its start, and the share of its time in
    which the device computed for it."""

    number: int
    uuid: str
    name: str
    mean: Optional[float]
    peak_memory: Optional[int]
    first_use: Optional[float]
    busy: Optional[float]
    is_leased: bool


class Answer(NamedTuple):
    """`sentence` is whole, as it is shown."""

    state: str
    reason: str
    sentence: str
    remedy: str


def answer(state: str, reason: str, blanks: Blanks, is_said: bool = False) -> Answer:
    """With the reason's own words. `is_said`: they are known from the output."""
    return worded(state, reason, *reasons.words(reason, blanks, is_said))


def answer_on(state: str, occasion: Occasion, blanks: Blanks) -> Answer:
    """With the words for an occasion."""
    return worded(state, occasion.reason, *reasons.filled(occasion.words, blanks))


def worded(state: str, reason: str, sentence: str, remedy: str) -> Answer:
    shown = PREFIXES[state] + sentence
    return Answer(state, reason, shown if reason == reasons.OK else shown.rstrip(". ") + ".", remedy)


def checked(state: str, found: Check) -> Answer:
    """In the words of a check that failed."""
    return worded(state, found.reason, telling.continued(found.sentence), found.remedy)


def use_of(found: Tally, is_used: bool) -> Use:
    """Who only held memory has not used it: `is_used` is what the verdict says of the device."""
    part, known = found.part, found.known_seconds
    busy = min(1.0, found.worked_seconds / known) if known > 0 else None
    first = None if found.first is None or not is_used else max(0.0, found.first)
    return Use(part.number, part.uuid, part.name, found.mean, found.peak, first, busy, part.is_leased)


def described(use: Use) -> str:
    """`Tesla K80 (GPU-8932f937), 74 % mean, 8.2 GiB peak, first use after 4 s`."""
    shown = [telling.named(use.name, use.uuid, use.number)]
    if use.first_use is None:
        return shown[0] + ", not used"
    if use.mean is not None:
        shown.append("%s mean" % telling.share(use.mean / 100))
    if use.peak_memory is not None:
        shown.append("%s peak" % telling.memory(use.peak_memory))
    return ", ".join([*shown, "first use after %s" % telling.seconds(use.first_use)])
