"""The page of verdicts says what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast.farside.gpu.judge.answer import PREFIXES, Answer
from holdfast.farside.gpu.judge.evidence import LADDER
from holdfast.farside.gpu.judge.reasons import OCCASIONS, REASONS, SAID, WORDS, Blanks, filled, words
from holdfast.farside.gpu.judge.verdict import Verdict

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "reference" / "gpu-verdicts.md").read_text(encoding="utf-8")
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
    rows = re.findall(r"^\| `([a-z-]+)` \| `(GPU [^`]+)` \|", PAGE, re.MULTILINE)
    assert rows == [(state, prefix.strip()) for state, prefix in PREFIXES.items()]


def test_the_page_says_of_every_key_and_every_evidence_what_it_is():
    before_states = PAGE[: PAGE.index("## States")]
    keys = re.findall(r"^\| `([a-z]+)` \|", before_states, re.MULTILINE)
    assert keys == [name for name in Verdict._fields if name not in Answer._fields]
    assert all(f"`{each}`" in before_states for each in LADDER)


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [
        ("Reasons", "## On occasions", [(name, *words(name, SHOWN)) for name in REASONS]),
        (
            "On occasions",
            "## From the output",
            [(each.reason, each.when, *filled(each.words, SHOWN)) for each in OCCASIONS],
        ),
        ("From the output", None, [(name, *words(name, SHOWN, is_said=True)) for name in SAID]),
    ],
)
def test_the_page_has_every_reason_with_its_sentence_and_remedy(begin, end, expected):
    section = PAGE[PAGE.index(f"## {begin}") : PAGE.index(end) if end else None]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    assert rows == [f"| `{reason}` | {' | '.join(cells)} |" for reason, *cells in expected]


def test_every_blank_of_the_texts_is_one_of_those_that_are_filled():
    for each in [*WORDS.values(), *SAID.values(), *(each.words for each in OCCASIONS)]:
        assert set(re.findall(r"%\((\w+)\)s", " ".join(each))) <= set(Blanks._fields)


def test_what_stands_for_something_is_explained():
    explained = re.findall(r"^\| ([A-Z][A-Z, ]*) \|", PAGE, re.MULTILINE)
    stand_ins = {found for text in SHOWN for found in re.findall(r"\b[A-Z]+\b", text)}
    assert stand_ins | {"NAME"} == set(", ".join(explained).split(", "))
