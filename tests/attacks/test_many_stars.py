"""Ignore patterns with many stars: the time to match grows with path times pattern, and not by powers."""

from __future__ import annotations

import pytest

from holdfast.snapshots import patterns
from holdfast.snapshots.ignore import list_files
from holdfast.snapshots.patterns import RuleSet, parse_rules

A = b"a"
PARTS = b"/".join([A] * 1500)
LONG_PARTS = b"/".join([A * 20] * 200)

pytestmark = pytest.mark.time_limit(20, "an expression that goes back and forth does not end")


@pytest.mark.parametrize("file", [".amlignore", ".gitignore"])
def test_a_line_with_many_stars_does_not_keep_a_listing_from_its_end(tmp_path, file):
    (tmp_path / file).write_text("a*" * 20 + "b\nx/" + "a*" * 20 + "b\n")
    (tmp_path / ("a" * 250)).touch()
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / ("a" * 250)).touch()
    assert {"a" * 250, "x/" + "a" * 250} <= set(list_files(tmp_path).paths)


@pytest.mark.parametrize(
    ("line", "path"),
    [
        (b"*a" * 200 + b"b", A * 255),
        (b"/" + b"*a" * 500 + b"b", A * 4000),
        (b"*?" * 100 + b"b", A * 255),
        (b"/*[ab]*[!b]" * 9 + b"/b", b"/".join([A * 255] * 10)),
        (b"**/a/" * 30 + b"b", PARTS),
        (b"**/a*/" * 30 + b"b", PARTS),
        (b"**/" + b"*a*a*/" * 30 + b"b", LONG_PARTS),
        (b"**/*a*a*/**/" * 30 + b"b", LONG_PARTS),
        (b"a**/" * 30 + b"b", LONG_PARTS),
        (b"***/**/" * 300 + b"b", PARTS),
    ],
)
def test_stars_that_all_fit_and_an_end_that_does_not(line, path):
    """Each star has a thousand places, and none of them helps."""
    assert RuleSet(parse_rules(line, "")).decide(path, path, False) is None
    matching = line.removesuffix(b"b") + b"*"
    assert RuleSet(parse_rules(matching, "")).decide(path, path, False) is not None


@pytest.mark.parametrize(
    "line",
    [
        b"[" + b"[:" * 450_000,
        b"[" + b"[:" * 450_000 + b"]",
        b"/" + A * 500_000 + b"**a" * 3000,
        b"/a" + b"**/" * 100_000,
        b"[!b]" * 5000,
    ],
)
def test_a_line_of_a_megabyte_is_read_once(line):
    assert RuleSet(parse_rules(line, "")).decide(A, A, False) is None


def test_an_expression_does_not_grow_with_what_a_bracket_leaves_out():
    (pattern,) = parse_rules(b"[!m]", "")
    assert pattern.regex is not None and len(pattern.regex) < 30


def test_many_lines_are_many_expressions():
    """To enter a group of one costs as much as all groups before it."""
    rules = RuleSet(parse_rules(b"".join(b"*%d.b\n" % number for number in range(5000)), ""))
    assert len(rules._file_names._alternations) * patterns._TOGETHER == 5000
    assert [rules.decide(name, name, False) is None for name in (b"a4999.b", b"a0.b", b"b")] == [False, False, True]
