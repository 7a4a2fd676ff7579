from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import ConfigurationError
from holdfast.project.compute import read_compute
from holdfast.project.conda_file import read_conda
from holdfast.project.configuration_folders import ConfigurationFolders
from holdfast.project.documents import parse_document, render_scalar, set_value, set_value_in_file
from holdfast.project.nodes import Scalar
from holdfast.project.problems import Problem, errors_in
from holdfast.project.runconfig import read_runconfig
from holdfast.project.spark import read_spark

PIECES = (
    *("type", "Target", "dependencies", "local", "pip", "python=3", "true", "1", "é", ":", ": ", "-", "- ", " "),
    *("\n", "\r\n", "\t", "[", "]", "{", "}", ",", "&a", "*a", "!x", "|", ">", "'", '"', "#", " # ", "?", "---"),
    *("...", "<<", "%", "@", "\\", "~", "\0", "\ufeff", "\u2028", "\x85", "\ud800"),
)
YAML_LIKE = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)


@settings(max_examples=40, deadline=None)
@given(st.one_of(YAML_LIKE, st.text()))
def test_no_text_makes_a_reader_raise(tmp_path_factory, text):
    root = tmp_path_factory.getbasetemp() / "any-text"
    (root / "aml_config").mkdir(exist_ok=True, parents=True)
    content = text.encode("utf-8", "surrogatepass")
    for name in ("x.compute", "x.runconfig", "x.yml"):
        (root / "aml_config" / name).write_bytes(content)
    readings = (
        read_compute(ConfigurationFolders(root), "x"),
        read_runconfig(ConfigurationFolders(root), "x"),
        read_conda(root, "aml_config/x.yml"),
        read_spark(root, "aml_config/x.yml"),
    )
    for value, problems in readings:
        assert (value is None) == bool(errors_in(problems))
        assert all(problem.line >= 1 and "\n" not in str(problem) for problem in problems)


NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True)
ANY_VALUE = st.one_of(st.text(max_size=20), st.booleans(), st.integers(-(10**9), 10**9))
WRITTEN = st.sampled_from(
    ["plain", "'single ''quoted'", '"double \\" quoted"', "", "~", "12", "[a, b]", "{a: b}", "*anchor", "a b  c", "no"]
)
COMMENT = st.sampled_from(["", "  # why", " # 'odd\" : [comment", "\t# tab"])
BETWEEN = st.sampled_from(["", "# a comment: with colon", "   ", "#"])


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(NAMES, WRITTEN, COMMENT, BETWEEN), max_size=6, unique_by=lambda each: each[0]),
    st.one_of(NAMES, st.integers(0, 5)),
    ANY_VALUE,
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_setting_a_value_keeps_every_other_line_and_reads_as_the_value(entries, chosen, value, end, last):
    key = entries[chosen % len(entries)][0] if isinstance(chosen, int) and entries else f"k{chosen}"
    lines = ["# first", "anchored: &anchor x"]
    for name, written, comment, between in entries:
        lines += [f"{name}: {written}{comment}", between]
    text = end.join(lines) + (end if last else "")

    changed = set_value(text, key, value)

    document, problems = parse_document(changed, "f")
    assert problems == [] and document is not None
    entry = document.entry(key)
    assert entry is not None and isinstance(entry.value, Scalar)
    assert entry.value.text == (value if isinstance(value, str) else render_scalar(value))
    old, new = text.split(end), changed.split(end)
    if key in [each[0] for each in entries]:
        assert len(old) == len(new)
        differing = [after for before, after in zip(old, new, strict=True) if before != after]
        assert all(line.startswith(f"{key}:") for line in differing) and len(differing) <= 1
        comment = next(each[2] for each in entries if each[0] == key)
        assert not differing or differing[0].endswith(comment)
    else:
        kept = old[:-1] if old[-1] == "" else old
        assert new[: len(kept)] == kept and len(new) == len(kept) + 2 and new[-1] == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('key: "x"  # c\r\nb: 1\r\n', 'key: "new"  # c\r\nb: 1\r\n'),
        ("key: 'x' # c", "key: 'new' # c"),
        ('{"key":"x",\n "b":1}', '{"key":"new",\n "b":1}'),
        ('{"b":1}', '{"b":1, "key": "new"}'),
        ("{}", "{key: new}"),
        ("", "key: new\n"),
        ("# only a comment\n", "# only a comment\nkey: new\n"),
        ("key:\n  A: 1\n  # inside\n\nb: 1\n", "key: new\n  # inside\n\nb: 1\n"),
        ("key: # why\n  - A\nb: 1\n", "key: new # why\nb: 1\n"),
        ("key: |\n  A\n  B\n\nb: 1\n", "key: new\n\nb: 1\n"),
        ("key:\n  - |\n    A\n\nb: 1\n", "key: new\n\nb: 1\n"),
        ("key:   # nothing yet\n", "key: new   # nothing yet\n"),
        ("a: &x 1\nkey: *x\n", "a: &x 1\nkey: new\n"),
        ("? key\n: b\n", "? key\n: new\n"),
        ("  a: 1\n  b: 2\n", "  a: 1\n  b: 2\n  key: new\n"),
        ("---\na: 1\n...\n", "---\na: 1\nkey: new\n...\n"),
        ("\ufeffkey: x\r\n", "\ufeffkey: new\r\n"),
        ('"key" : x\n', '"key" : new\n'),
    ],
)
def test_a_value_is_changed_in_the_way_the_file_is_written(text, expected):
    assert set_value(text, "key", "new") == expected


@pytest.mark.parametrize("text", ["a: &x 1\nb: *x\n", "- a\n", "a: 'x\n", "a: 1\na: 2\n"])
def test_a_change_that_would_touch_more_than_the_value_is_refused(text):
    with pytest.raises(ConfigurationError):
        set_value(text, "a", "new")


def test_a_file_is_changed_with_its_line_ends_and_mode(tmp_path):
    path = tmp_path / "x.compute"
    path.write_bytes(b"\xef\xbb\xbftype: local\r\n# end\r\n")
    path.chmod(0o600)
    set_value_in_file(tmp_path, "x.compute", "type", "docker")
    assert path.read_bytes() == b"\xef\xbb\xbftype: docker\r\n# end\r\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["x.compute"]


HOSTILE = {"lists": "[" * 200_000, "maps": "{a: " * 100_000, "deep": "- " * 200_000, "keys": "? " * 200_000}


@pytest.mark.parametrize("text", [*HOSTILE.values(), "- a\n" * 50_000], ids=[*HOSTILE, "long"])
def test_a_hostile_document_is_refused_quickly(text):
    document, problems = parse_document(text, "f")
    assert document is None and len(problems) == 1


def test_an_alias_bomb_is_refused_by_its_size_written_out():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    document, problems = parse_document("\n".join(lines), "f")
    assert document is None
    assert [str(each) for each in problems] == ["f:5: has more than 20000 values. Remove aliases (`*name`) or values."]


def test_a_few_aliases_are_read_as_their_values():
    document, problems = parse_document("a: &x true\nb: *x\n", "f")
    assert problems == [] and document is not None
    entry = document.entry("b")
    assert entry is not None and isinstance(entry.value, Scalar)
    assert (entry.value.text, entry.value.place.line) == ("true", 2)


def test_the_reader_without_the_c_library_gives_the_same_places(monkeypatch):
    import yaml

    text = 'é𝒳: "ü" # c\r\nb: |\r\n  a\r\n\r\nm:\r\n  - &q a # q\r\n  # c\r\nr: *q\r\n{x: y}: z\r\nz:\r\n'
    with_library = parse_document(text, "f")
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    assert parse_document(text, "f")[0] == with_library[0]


def test_a_problem_is_one_line_whatever_the_key_holds():
    problem = Problem("aml_config/gpu.compute", 3, "a\n\x1b[31m", "unknown key", "Write `baseDockerImage`.")
    assert str(problem) == "aml_config/gpu.compute:3: a\\x0a\\x1b[31m: unknown key. Write `baseDockerImage`."
