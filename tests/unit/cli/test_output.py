"""`-o` and `--query`: the exact form of tables, JSON and tab-separated text."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from holdfast.cli.output_format import Column, Output, _checked_query
from holdfast.errors import UsageError

from .conftest import Terminal

ROWS = [
    {"run_id": "mnist_1", "status": "Completed", "loss": 0.25, "note": None},
    {"run_id": "mnist_22", "status": "Failed", "loss": None, "note": "two\nlines\tand \x1b[31mred"},
]
COLUMNS = [
    Column("run_id", "Run"),
    Column("loss", "Loss", "right", lambda value: f"{value or 0:.1f}"),
    Column("note", "Note"),
]


def shown(output: Output, data: Any, columns: list[Column] | None = None, stream: io.StringIO | None = None) -> str:
    target = stream or io.StringIO()
    output.show(data, columns if columns is not None else COLUMNS, target)
    return target.getvalue()


def test_the_default_is_json_in_a_pipe_and_a_table_on_a_terminal():
    assert json.loads(shown(Output(), ROWS)) == ROWS
    assert shown(Output(), ROWS, stream=Terminal()).split()[:3] == ["Run", "Loss", "Note"]


def test_a_table_in_a_pipe_is_aligned_text_without_control_characters():
    assert shown(Output("table"), ROWS) == (
        "Run       Loss  Note\n"
        "--------  ----  --------------------------------\n"
        "mnist_1    0.2\n"
        "mnist_22   0.0  two\\nlines\\tand \\x1b[31mred\n"
    ).replace("-" * 32, "-" * len(r"two\nlines\tand \x1b[31mred"))


def test_a_table_on_a_terminal_has_no_unwanted_colour_and_does_not_take_values_for_markup():
    assert "\x1b" not in shown(Output("table"), ROWS, stream=Terminal())
    assert "[bold]loud[/bold]" in shown(Output("table"), [{"note": "[bold]loud[/bold]"}], [], Terminal())


@pytest.mark.parametrize(
    ("output", "data", "columns", "text"),
    [
        (Output("table"), ROWS[0], COLUMNS, "Run   mnist_1\nLoss  0.2\nNote\n"),
        (Output("table"), {"a": 1, "long": [1, 2]}, [], "a     1\nlong  [1, 2]\n"),
        (Output("table"), [], COLUMNS[:1], "Run\n---\n"),
        (Output("table"), [], [], ""),
        (Output("tsv"), ROWS, COLUMNS, "mnist_1\t0.25\t\nmnist_22\t\ttwo\\nlines\\tand \\x1b[31mred\n"),
    ],
    ids=["titles and values of a dict", "keys and values", "titles only", "nothing", "tabs and nothing else"],
)
def test_what_is_not_queried_has_the_columns_of_the_command(output, data, columns, text):
    assert shown(output, data, columns) == text


@pytest.mark.parametrize(
    ("form", "query", "text"),
    [
        ("tsv", "[].run_id", "mnist_1\nmnist_22\n"),
        ("tsv", "[].[run_id, loss]", "mnist_1\t0.25\nmnist_22\t\n"),
        ("tsv", "[].{n: run_id, s: status}", "mnist_1\tCompleted\nmnist_22\tFailed\n"),
        ("tsv", "length(@)", "2\n"),
        ("tsv", "[0].status == 'Completed'", "true\n"),
        ("tsv", "[5]", ""),
        ("table", "[].{name: run_id, l: loss}", "name         l\n--------  ----\nmnist_1   0.25\nmnist_22\n"),
        ("table", "[].[run_id]", "column1\n--------\nmnist_1\nmnist_22\n"),
        ("table", "[?loss].run_id", "result\n-------\nmnist_1\n"),
        ("table", "[0].run_id", "mnist_1\n"),
    ],
)
def test_with_a_query_the_result_decides_about_the_columns(form, query, text):
    assert shown(Output(form, query), ROWS) == text


def test_json_keeps_letters_and_escapes_only_what_cannot_be_written():
    text = shown(Output("json"), {"name": "größe-\udcff", "loss": float("nan"), "l": [float("-inf")]}, [])
    assert text == '{\n  "name": "größe-\\udcff",\n  "loss": "NaN",\n  "l": [\n    "-Infinity"\n  ]\n}\n'
    text.encode("utf-8")


def test_json_for_a_stream_that_knows_no_unicode_is_plain_ascii():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    Output("json").show({"name": "größe 😀"}, [], stream)
    stream.seek(0)
    assert json.loads(stream.read()) == {"name": "größe 😀"}


def test_jsonc_has_colours_on_a_terminal_only(monkeypatch):
    monkeypatch.delenv("NO_COLOR")
    coloured = shown(Output("jsonc"), {"a": "b", "n": 1}, [], Terminal())
    assert coloured == '{\n  \x1b[36m"a"\x1b[0m: \x1b[32m"b"\x1b[0m,\n  \x1b[36m"n"\x1b[0m: \x1b[33m1\x1b[0m\n}\n'
    assert shown(Output("jsonc"), {"a": "b"}, []) == '{\n  "a": "b"\n}\n'


@pytest.mark.parametrize(
    ("query", "position"), [("[?status='Completed']", 9), ("[].{a: ", 8), ("a b", 3), ("a | &", 6)]
)
def test_a_query_that_cannot_be_read_is_shown_with_the_place(query, position):
    with pytest.raises(UsageError) as caught:
        _checked_query(query)
    assert f"at position {position}:" in caught.value.message
    assert caught.value.hint.splitlines()[:2] == [query, " " * (position - 1) + "^"]
    assert "For example: --query" in caught.value.hint


@pytest.mark.parametrize("query", ["sum([].run)", "nonsense(@)", "[?loss > `1`]", "max_by(@, &loss)", "[].ceil(loss)"])
def test_a_query_that_fails_on_the_data_is_an_error_of_usage(query):
    rows = [{"run": "a", "loss": 1}, {"run": "b", "loss": "diverged"}, {"run": "c", "loss": float("nan")}]
    with pytest.raises(UsageError, match="The query does not work: ") as caught:
        shown(Output("json", query), rows)
    assert query in caught.value.hint


def test_a_query_that_counts_with_what_is_no_number_is_an_error_of_usage():
    with pytest.raises(UsageError, match="cannot convert float NaN to integer"):
        shown(Output("json", "[].ceil(loss)"), [{"loss": float("nan")}])
