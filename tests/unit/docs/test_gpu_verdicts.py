"""The page of verdicts says what the code says."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.farside.gpu.judging import reasons
from holdfast.farside.gpu.judging.answer import PREFIXES
from holdfast.farside.gpu.judging.reasons import Blanks

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "gpu-verdicts.md"
SHOWN = Blanks(
    devices="DEVICES", detail="DETAIL", visible="VALUE", file="FILE", by="WHERE", driver="VERSION", looks="N"
)  # fmt: skip


def test_the_page_has_every_state_with_how_its_sentence_begins() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| `(GPU [^`]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert rows == [(state, prefix.strip()) for state, prefix in PREFIXES.items()]


def test_the_page_has_every_reason_with_its_sentence_and_remedy() -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page[page.index("## Reasons") : page.index("## From the output")]
    rows = [line for line in section.splitlines() if line.startswith("| `")]

    assert rows == [
        f"| `{name}` | {reasons.sentence(name, SHOWN)} | {reasons.remedy(name, SHOWN)} |" for name in reasons.REASONS
    ]


def test_the_page_has_what_is_said_from_the_output_alone() -> None:
    page = PAGE.read_text(encoding="utf-8")
    rows = [line for line in page[page.index("## From the output") :].splitlines() if line.startswith("| `")]

    assert rows == [f"| `{name}` | {reasons.sentence(name, SHOWN, is_said=True)} |" for name in reasons.SAID]


def test_every_blank_of_the_texts_is_one_of_those_that_are_filled() -> None:
    for name in reasons.REASONS:
        texts = [*reasons.WORDS[name], reasons.SAID.get(name, "")]
        assert set(re.findall(r"%\((\w+)\)s", " ".join(texts))) <= set(Blanks._fields)
