"""The runner of mutants: what a patch says, and how the end of its tests is judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutants import BROKEN, FOLDER, KILLED, ROOT, SURVIVED, BrokenMutant, Done, judge, missing_test, parse

HEADER = "A frame that was damaged\nis believed.\nTests: tests/a.py tests/b.py::test_one\n\n"
DIFF = """\
diff --git a/src/holdfast/frames.py b/src/holdfast/frames.py
--- a/src/holdfast/frames.py
+++ b/src/holdfast/frames.py
@@ -1 +1 @@
-old
+new
"""


def test_a_patch_says_what_breaks_and_which_tests_must_fail() -> None:
    mutant = parse("frame-checksum", HEADER + DIFF)
    assert mutant.sentence == "A frame that was damaged is believed."
    assert mutant.tests == ("tests/a.py", "tests/b.py::test_one")


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("one", HEADER, "no line `diff --git"),
        ("one", "Something breaks.\n" + DIFF, "no line `Tests:"),
        ("one", "Tests: tests/a.py\n" + DIFF, "does not begin with a sentence"),
        ("One_two", HEADER + DIFF, "its name"),
        ("one", HEADER + DIFF.replace("src/", "tests/"), "`tests/holdfast/frames.py`, which is not below src/"),
    ],
)
def test_a_patch_that_says_too_little_or_changes_other_files_is_broken(name: str, text: str, why: str) -> None:
    with pytest.raises(BrokenMutant, match=why):
        parse(name, text)


@pytest.mark.parametrize(
    ("code", "word"), [(1, KILLED), (0, SURVIVED), (2, BROKEN), (4, BROKEN), (5, BROKEN), (-9, BROKEN), (None, BROKEN)]
)
def test_only_tests_that_fail_kill_a_mutant(code: int | None, word: str) -> None:
    assert judge(Done(code, "ERROR: not found"))[0] == word


def test_a_test_that_is_gone_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def test_one():\n    pass\n")
    assert missing_test(tmp_path, ["a.py", "a.py::test_one"]) == ""
    assert missing_test(tmp_path, ["a.py", "b.py"]) == "b.py"
    assert missing_test(tmp_path, ["a.py::test_on"]) == "a.py::test_on"


def test_every_mutant_of_the_repository_can_be_read_and_names_tests_that_exist() -> None:
    for path in FOLDER.glob("*.patch"):
        mutant = parse(path.stem, path.read_text(encoding="utf-8"))
        assert missing_test(ROOT, mutant.tests) == "", path.name
