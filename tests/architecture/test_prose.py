"""Each sentence that Holdfast prints is asserted in one test function; and the rule is proved to notice a violation."""

from __future__ import annotations

from pathlib import Path

import pytest

from architecture.prose_rules import read_asserted, read_said, repeated

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = {
    "no basic auth credentials": "said by Docker",
    "Error response from daemon": "said by Docker",
    "Host key verification failed": "said by ssh",
    "There is no run `": "the beginning of what `UnknownName` says of a run, too",
}
"""Texts of messages that may be asserted again, with the reason: most come from other programs."""


def test_a_sentence_is_asserted_in_one_test() -> None:
    said, asserted = read_said(ROOT / "src" / "holdfast"), read_asserted(ROOT / "tests")

    assert repeated(said, asserted, ALLOWED) == []
    assert len(said) > 1000
    assert "architecture/test_prose.py test_a_sentence_is_asserted_in_one_test" in asserted


SOURCE = """
def refuse(host, number):
    "Tests may quote the words of a docstring as they like."
    say(f"{host} did not call within {number} s.")
    say("The disk of %s is full, and nothing was written." % host)
    search("no route to host|connection refused by the host")
    run("sudo systemctl restart the docker daemon")
"""
TWICE = {
    "in `assert` and in `match=`": """
def test_one(): assert "gpu1 did not call within 3 s." in said
def test_two():
    with raises(Error, match=r"did not call within 5 s\\."): pass
""",
    "in a table of the module and in `assert`": """
TABLE = [("gpu1", "the disk of gpu1 is full, and nothing was")]
@parametrize("name, words", TABLE)
def test_one(name, words): assert words in said
def test_two(): assert "is full, and nothing was written" in said
""",
    "in parameters and in a variable": """
@parametrize("words", ["nothing", "the disk of gpu1 is full, and nothing was"])
def test_one(words): assert words in said
def test_two():
    words = f"{name} is full, and nothing was written"
    assert words == said
""",
}
ONCE = {
    "twice in one test": "def test_one(): assert 'did not call within' in said and 'did not call within 3' in more",
    "a value": "def test_one(): assert '`gpu1`' in said\ndef test_two(): assert '`gpu1` is full' in said",
    "given": "def test_one(): fail('did not call within')\ndef test_two(): assert 'did not call within' in said",
    "the name of a case": "@parametrize('x', [1], ids=['did not call within'])\ndef test_one(x): pass\n"
    "def test_two(): assert 'did not call within' in said",
    "a table of two tests": "TABLE = ['did not call within']\n"
    "@parametrize('x', TABLE)\ndef test_one(x): pass\n@parametrize('x', TABLE)\ndef test_two(x): pass",
    "a table that is given": "TABLE = ['did not call within']\n"
    "def test_one(): fail(TABLE)\ndef test_two(): assert 'did not call within' in said",
    "a docstring": "def test_one(): assert 'the words of a' in x\ndef test_two(): assert 'the words of a' in x",
    "a pattern": "def test_one(): assert 'no route to host' in x\ndef test_two(): assert 'no route to host' in x",
    "a command": "def test_one(): assert 'systemctl restart the docker daemon' in x\n"
    "def test_two(): assert 'sudo systemctl restart the docker daemon' in x",
    "a page": "def test_one(): assert 'did not call within' in x\n"
    "def test_two(): assert x == 'gpu1\\ngpu2 did not call within 3 s\\ngpu3'",
}


@pytest.mark.parametrize("test", TWICE.values(), ids=TWICE.keys())
def test_a_sentence_in_two_tests_is_named_with_both(test: str, tmp_path: Path) -> None:
    (complaint,) = complaints(test, tmp_path)

    assert complaint.startswith("holdfast.hosts:")
    first = "TABLE" if "TABLE" in test else "test_one"
    assert complaint.endswith(f" is asserted in test_it.py {first}, test_it.py test_two")


@pytest.mark.parametrize("test", ONCE.values(), ids=ONCE.keys())
def test_the_rule_is_silent_about(test: str, tmp_path: Path) -> None:
    assert complaints(test, tmp_path) == []


def test_what_is_allowed_may_be_repeated(tmp_path: Path) -> None:
    first, _, second = TWICE.values()
    assert complaints(first + second.replace("_one", "_three").replace("_two", "_four"), tmp_path, "did not call") == [
        "holdfast.hosts:5 `The disk of … is full, and nothing was written.` is asserted in "
        "test_it.py test_four, test_it.py test_three"
    ]


def complaints(test: str, folder: Path, *allowed: str) -> list[str]:
    (folder / "src").mkdir()
    (folder / "src" / "hosts.py").write_text(SOURCE)
    (folder / "tests").mkdir()
    (folder / "tests" / "test_it.py").write_text(test)
    return repeated(read_said(folder / "src"), read_asserted(folder / "tests"), allowed)
