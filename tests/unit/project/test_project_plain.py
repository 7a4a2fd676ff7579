"""Plain YAML is read as PyYAML reads it, with the same nodes and places, or left to PyYAML."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.project.compute import ComputeTarget, render_compute
from holdfast.project.nodes import parse_nodes
from holdfast.project.plain import MAXIMUM_LINES, parse_plain
from holdfast.project.runconfig import RunConfiguration, render_runconfig

TEMPLATES = Path(__file__).resolve().parents[3] / "src" / "holdfast" / "project" / "templates"
WRITTEN_BY_HOLDFAST = [
    render_compute(ComputeTarget("gpu1", "remote", address="10.0.0.1:22", username="me", private_key="~/k")),
    render_runconfig(RunConfiguration("gpu1", "gpu1")),
    *(path.read_text() for path in sorted(TEMPLATES.glob("*/aml_config/local.*"))),
]

PLAIN = [
    "Target: gpu1\nFramework: Python\n",
    "a: 1",
    "# first\n\na:   b  # why\n  # deeper\nc: 'it is'\nd: \"# no comment\"\n",
    "a:\nb:  \nc: #nothing\n",
    "a:\n  - x\n  - --epochs\n  - 20\n  - -1\nb: 2\n",
    "a:\n- x\n# between\n- 'y z'\n",
    'a:\n    B: http://x:1/y\n    C: ""\n    D:\n\n\n',
    "dependencies:\n  - python=3.11\n  - numpy>=1.2,<2  # tested\n  - pip:\n      - six\n      - t[x]!=2; a\nb: 1\n",
    "a:\n- pip: # why\n  - x\n- y\n",
    "path: C:\\Users\\me\nhome: ~/a b\nnull: null\nnumber: -.5\n",
]

NOT_PLAIN = {
    "no keys": ["", "# nothing\n", "- x\n", "  a: 1\n", "a:b\n", "a : b\n", "<<: x\n", "k" * 2000 + ": 1\n"],
    "a key twice": ["a: 1\na: 2\n", "a:\n  b: 1\n  b: 2\n"],
    "keys in a line": ["a: b: c\n", "a:\n  - x: 1\n", "a:\n  - b:\n"],
    "lines that go on": ["a: 1\n  2\n", "a: 1\n- x\n", "a:\n  x\n", "a:\n  - x\n - y\n", "a:\n  -\n"],
    "deeper": ["a:\n  - b:\n      - c:\n          - x\n", "a:\n  - b:\n      c: 1\n", "a:\n  b:\n    c: 1\n"],
    "mixed": ["a:\n  - b:\n  - x\n  - c:\n   - y\n", "a:\n  b: 1\n  - x\n"],
    "marks": ["a: [1]\n", "a: &x 1\n", "a: *x\n", "a: !t 1\n", "a: |\n  x\n", "a: @x\n", "a: %x\n", "a: x#y\n"],
    "quotes": ['a: "x\\n"\n', "a: 'it''s'\n", "a: 'x' y\n"],
    "letters": ["a:\tb\n", "a: b\r\n", "a: b # \x07\n", "a: é\n"],
    "documents": ["---\na: 1\n", "a: 1\n...\n", "a: 1\n" + "#\n" * MAXIMUM_LINES],
}


@pytest.mark.parametrize("text", [*PLAIN, *WRITTEN_BY_HOLDFAST])
def test_what_people_and_holdfast_write_is_read_as_pyyaml_reads_it(text):
    found = parse_plain(text)
    assert found is not None
    assert (found, []) == parse_nodes(text, "f")


@pytest.mark.parametrize("text", [text for texts in NOT_PLAIN.values() for text in texts])
def test_everything_else_is_left_to_pyyaml(text):
    assert parse_plain(text) is None


WORDS = ("a", "b1", "C_d", "1", "x y", "null", "---", "...", " # x", ": ", "- ", "  ", "\n", "\t", "\r", "é")
FRAGMENTS = st.sampled_from([*WORDS, *":-# '\"~./\\$@%+=|>&*!?,[{\n"])
VALUES = [
    *("", " ", "x", " x", " 'x'", ' "x y"', " -x", " - x", " x:y", " x #c", " :x", " x: y", " ...", "x>=1", "x[y],z")
]
LINES = st.lists(
    st.tuples(
        st.sampled_from(["", "  ", "    "]),
        st.sampled_from(["a:", "b:", "c:", "- ", "-", "# ", "a: ", "b: ", "c: ", "- a:", "- b: "]),
        st.sampled_from(VALUES),
    ).map("".join)
).map("\n".join)


@given(st.one_of(LINES, st.lists(FRAGMENTS, max_size=30).map("".join)))
def test_no_text_is_read_otherwise_than_by_pyyaml(text):
    found = parse_plain(text)
    assert found is None or (found, []) == parse_nodes(text, "f")
