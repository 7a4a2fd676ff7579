"""The page of verdicts says what the code says."""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.farside.gpu.judging import reasons
from holdfast.farside.gpu.judging.answer import PREFIXES, Answer
from holdfast.farside.gpu.judging.evidence import LADDER
from holdfast.farside.gpu.judging.occasions import OCCASIONS
from holdfast.farside.gpu.judging.reasons import Blanks
from holdfast.farside.gpu.judging.verdict import Verdict

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "gpu-verdicts.md"
SHOWN = Blanks(
    devices="DEVICES",
    detail="DETAIL",
    visible="VALUE",
    file="FILE",
    by="WHERE",
    asking=": the run asks with WHERE",
    number="NUMBER",
    amount="AMOUNT",
    pids="PID",
    driver="VERSION",
    looks="N looks",
)


def test_the_page_has_every_state_with_how_its_sentence_begins():
    rows = re.findall(r"^\| `([a-z-]+)` \| `(GPU [^`]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert rows == [(state, prefix.strip()) for state, prefix in PREFIXES.items()]


def test_the_page_says_of_every_key_and_every_evidence_what_it_is():
    page = PAGE.read_text(encoding="utf-8")
    keys = re.findall(r"^\| `([a-z]+)` \|", page[: page.index("## States")], re.MULTILINE)

    assert keys == [name for name in Verdict._fields if name not in Answer._fields]
    assert all(f"`{each}`" in page[: page.index("## States")] for each in LADDER)


def test_the_page_has_every_reason_with_its_sentence_and_remedy():
    assert rows_of("## Reasons", "## On occasions") == [
        row_of(name, *reasons.words(name, SHOWN)) for name in reasons.REASONS
    ]


def test_the_page_has_the_other_words_of_a_reason_with_their_occasion():
    assert rows_of("## On occasions", "## From the output") == [
        row_of(each.reason, each.when, *reasons.filled(each.words, SHOWN)) for each in OCCASIONS
    ]


def test_the_page_has_what_is_said_from_the_output_alone():
    assert rows_of("## From the output") == [
        row_of(name, *reasons.words(name, SHOWN, is_said=True)) for name in reasons.SAID
    ]


def test_every_blank_of_the_texts_is_one_of_those_that_are_filled():
    texts = [*reasons.WORDS.values(), *reasons.SAID.values(), *(each.words for each in OCCASIONS)]
    for words in texts:
        assert set(re.findall(r"%\((\w+)\)s", " ".join(words))) <= set(Blanks._fields)


def test_what_stands_for_something_is_explained():
    page = PAGE.read_text(encoding="utf-8")
    explained = re.findall(r"^\| ([A-Z][A-Z, ]*) \|", page, re.MULTILINE)
    words = {found for text in SHOWN for found in re.findall(r"\b[A-Z]+\b", text)}

    assert words | {"NAME"} == set(", ".join(explained).split(", "))


def rows_of(begin: str, end: str = "") -> list[str]:
    page = PAGE.read_text(encoding="utf-8")
    section = page[page.index(begin) : page.index(end) if end else len(page)]
    return [line for line in section.splitlines() if line.startswith("| `")]


def row_of(reason: str, *cells: str) -> str:
    return f"| `{reason}` | {' | '.join(cells)} |"
