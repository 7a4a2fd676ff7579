"""The page that `make bench` writes."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timezone

import pytest
import report
from machine import Machine
from measuring import Figures, one
from results import Bar, Line, Row, Table

pytestmark = pytest.mark.kit

MACHINE = Machine("A processor", 2, 8_000_000_000, "Linux 6.1", "3.11.7", 0.25)


def row() -> Row:
    ours = Line("ours", Figures((0.010, 0.012, 0.011)))
    peer = Line("peer", Figures((0.040, 0.044, 0.045)), Bar(0.2))
    absent = Line("absent", Figures((), "could not be installed: no such version"), Bar(0.5))
    return Row("some-row", "Some work", "What was done.", (Table("", "ms", 1000, ours, (peer, absent), "A note."),))


def page(rows: list[Row], failures: dict[str, str]) -> str:
    when = datetime(2030, 1, 2, tzinfo=timezone.utc)
    return report.render(report.Page(when, MACHINE, {"holdfast": "1.0", "peer": "2.0"}, rows, failures))


def test_a_row_has_its_table_its_note_and_the_commands_that_show_it():
    assert report.row_text(row()) == (
        "## Some work\n"
        "\n"
        "What was done.\n"
        "\n"
        "|  | median, ms | least | spread | ratio | bar |  |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        "| ours | 11 | 10 | ± 5% |  |  |  |\n"
        "| peer | 44 | 40 | ± 3% | 0.25 | at most 0.2 times | missed |\n"
        "| absent | could not be installed: no such version |  |  |  | at most 0.5 times | not measured |\n"
        "\n"
        "A note.\n"
        "\n"
        "Measure it with `.venv/bin/python bench/run.py --only some-row`, profile it with "
        "`.venv/bin/python bench/run.py --profile some-row`."
    )


def test_a_figure_that_is_not_repeated_has_neither_least_nor_spread():
    table = Table("Memory", "MB", 1e-6, Line("both", one(23_700_000), Bar(40)), (Line("one", one(8e6), is_peer=False),))
    assert report.table_text(table).splitlines() == [
        "|  | MB | bar |  |",
        "| --- | ---: | ---: | ---: |",
        "| both | 23.7 | at most 40 MB | met |",
        "| one | 8 |  |  |",
    ]


def test_a_row_that_could_not_be_measured_stands_in_the_summary_with_its_reason():
    text = page([], {"Some work": "`holdfast` failed with exit code 1"})
    assert "| Some work |  | `holdfast` failed with exit code 1 |  |  | not measured |" in text


def test_a_row_that_is_measured_again_takes_its_place_in_the_page_and_leaves_the_others():
    first, second = row(), replace(row(), name="other", title="Some work: more", moment="2030-01-02 at a load of 0.1")
    figure = Table("", "MB", 1, Line("ours", one(5), Bar(4)))
    titles = ["New work", "Some work", "Some work: more"]
    old = page([first, second], {})
    new = page([replace(second, tables=(figure,)), replace(second, name="new", title="New work")], {})
    both = report.merged(old, new, titles)
    assert re.findall(r"^## (.*)", both, re.MULTILINE) == ["Summary", *titles]
    assert [line for line in both.splitlines() if line.startswith(("| Some work", "| New work"))] == [
        "| New work | 11 ms | peer: 44 ms | 0.25 | at most 0.2 times | missed |",
        "| New work | 11 ms | absent: could not be installed: no such version |  | at most 0.5 times | not measured |",
        "| Some work | 11 ms | peer: 44 ms | 0.25 | at most 0.2 times | missed |",
        "| Some work | 11 ms | absent: could not be installed: no such version |  | at most 0.5 times | not measured |",
        "| Some work: more | 5 MB |  |  | at most 4 MB | missed |",
    ]
    assert report.row_text(first) in both
    assert both.count("Measured 2030-01-02 at a load of 0.1. Measure it with") == 2
    assert report.merged(both, new, titles) == both


def test_a_bar_in_a_text_does_not_end_a_cell():
    assert report.markdown_table(["", "a"], [["x", "1 | 2"]]).splitlines()[-1] == "| x | 1 \\| 2 |"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0, "0"), (0.0213, "0.021"), (0.25, "0.25"), (1.234, "1.23")),
        *((9, "9"), (12.34, "12.3"), (123.4, "123"), (12345.6, "12,346")),
    ],
)
def test_numbers_have_the_digits_that_count(value, text):
    assert report.number_text(value) == text
