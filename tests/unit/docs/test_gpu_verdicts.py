"""The page of verdicts says what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast.farside.gpu.judge.evidence import LADDER
from holdfast.farside.gpu.judge.reasons import OCCASIONS, PREFIXES, REASONS, SAID, WORDS, Blanks, Cause, Verdict, filled

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


def shown(cause: Cause) -> tuple[str, str, str]:
    return filled(cause, SHOWN)[:3]


def test_the_page_has_every_state_with_how_its_sentence_begins():
    rows = re.findall(r"^\| `([a-z-]+)` \| `(GPU [^`]+)` \|", PAGE, re.MULTILINE)
    assert rows == [(state, prefix.strip()) for state, prefix in PREFIXES.items()]


def test_the_page_says_of_every_key_and_every_evidence_what_it_is():
    before_states = PAGE[: PAGE.index("## States")]
    keys = re.findall(r"^\| `([a-z]+)` \|", before_states, re.MULTILINE)
    assert keys == list(Verdict._fields[4:])
    assert all(f"`{each}`" in before_states for each in LADDER)


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [
        ("Reasons", "## On occasions", [shown(WORDS[name]) for name in REASONS]),
        (
            "On occasions",
            "## From the output",
            [(each.reason, when, *shown(each)[1:]) for when, each in OCCASIONS],
        ),
        ("From the output", None, [shown(each) for each in SAID.values()]),
    ],
)
def test_the_page_has_every_reason_with_its_sentence_and_remedy(begin, end, expected):
    section = PAGE[PAGE.index(f"## {begin}") : PAGE.index(end) if end else None]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    assert rows == [f"| `{reason}` | {' | '.join(cells)} |" for reason, *cells in expected]


def test_every_blank_of_the_texts_is_one_of_those_that_are_filled():
    for each in [*WORDS.values(), *SAID.values(), *(cause for _, cause in OCCASIONS)]:
        assert set(re.findall(r"%\((\w+)\)s", " ".join(each[1:3]))) <= set(Blanks._fields)


def test_what_stands_for_something_is_explained():
    explained = re.findall(r"^\| ([A-Z][A-Z, ]*) \|", PAGE, re.MULTILINE)
    stand_ins = {found for text in SHOWN for found in re.findall(r"\b[A-Z]+\b", text)}
    assert stand_ins | {"NAME"} == set(", ".join(explained).split(", "))
