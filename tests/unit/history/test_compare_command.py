"""`holdfast history compare`, by its whole output."""

from __future__ import annotations

import json

from holdfast.model import Ending, Reason
from holdfast.snapshots.manifest import ManifestEntry, encode_rows
from holdfast.snapshots.store import ObjectStore
from unit.history.conftest import Outcome

A, B = "iris_1521077190506", "iris_1521077190507"
COMPLETED, FAILED = Ending(Reason.COMPLETED, 0), Ending(Reason.EXIT_CODE, 3)


def snapshot(archive, files: dict[str, str]) -> str:
    put = ObjectStore(archive.state / "objects").put_bytes
    rows = tuple(ManifestEntry(path, "f", put(text.encode()), len(text)) for path, text in sorted(files.items()))
    return put(encode_rows(rows))


def test_comparing_shows_code_arguments_configuration_packages_and_metrics(archive, history):
    archive.add(
        archive.completed,
        {"loss": 0.5, "name": "x"},
        {"run": {"Framework": "Python", "Target": "local"}},
        snapshot=snapshot(archive, {"train.py": "rate = 1\nrun()\n", "old.py": "1\n"}),
    )
    archive.add(
        (*archive.failed[:2], {**archive.failed[2], "packages": ["numpy==2.0"]}, *archive.failed[3:]),
        {"loss": 0.75},
        {"run": {"Framework": "PySpark", "Target": "local"}},
        arguments=("--rate", "0.2"),
        snapshot=snapshot(archive, {"train.py": "rate = 2\nrun()\n", "new.py": "2\n"}),
    )
    first, second = COMPLETED.sentence(), FAILED.sentence()
    wide = len(first)
    assert history("compare", A, "last", "-o", "table") == Outcome(
        0,
        f"""\
Run       {A:{wide}}  {B}
--------  {"-" * wide}  {"-" * len(second)}
status    {"Completed":{wide}}  Failed
ended     {first}  {second}
duration  {"4.9s":{wide}}  2.0s

Arguments  iris_1521077190506  iris_1521077190507
---------  ------------------  ------------------
--rate     0.1                 0.2

Configuration  iris_1521077190506  iris_1521077190507
-------------  ------------------  ------------------
run.Framework  Python              PySpark

Packages  iris_1521077190506  iris_1521077190507
--------  ------------------  ------------------
numpy     1.26.4              2.0
torch     2.1.0               -

Metrics  iris_1521077190506  iris_1521077190507  change
-------  ------------------  ------------------  ------
loss                    0.5                0.75   +0.25
name                      x                   -

Code
added    new.py
removed  old.py
changed  train.py

--- /dev/null
+++ b/new.py
@@ -0,0 +1 @@
+2
--- a/old.py
+++ /dev/null
@@ -1 +0,0 @@
-1
--- a/train.py
+++ b/train.py
@@ -1,2 +1,2 @@
-rate = 1
+rate = 2
 run()

""",
        "",
    )


def test_comparing_a_run_with_its_like_says_what_is_the_same(archive, history):
    archive.add()
    archive.add()
    shown = history("compare", "-r", A, "-r", B, "-o", "table")
    assert shown.out == "The same: arguments, configuration, packages, code.\n"


def test_a_long_difference_of_code_is_cut_unless_asked_for(archive, history):
    for text in ("", "".join(f"line {i}\n" for i in range(100))):
        archive.add(snapshot=snapshot(archive, {"a.py": text}))
    cut, whole = (history("compare", A, B, "-o", "table", *more).out for more in ([], ["--code"]))
    assert "… 43 more lines: --code\n" in cut
    assert "+line 99\n" not in cut
    assert "+line 99\n" in whole
    assert "more lines" not in whole


def test_a_snapshot_that_is_gone_does_not_stop_the_comparison(archive, history):
    archive.add()
    archive.add(snapshot="b" * 64)
    shown = history("compare", A, B, "-o", "table")
    assert shown.code == 0
    assert "It cannot be compared: The store has no object" in shown.out
    assert json.loads(history("compare", A, B).out)["code"]["problem"]


def test_comparing_needs_two_runs(archive, history):
    archive.add()
    said = "error: Two runs are needed, and 1 given.\n  holdfast history compare RUN RUN\n"
    assert history("compare", A) == Outcome(240, "", said)


def test_durations_that_look_the_same_are_no_difference_to_people_but_one_to_programs(archive, history):
    archive.add()
    started = archive.completed[3]
    archive.add((*archive.completed[:3], {**started, "t": started["t"] - 0.001}, *archive.completed[4:]))
    assert "duration" not in history("compare", A, B, "-o", "table").out
    facts = json.loads(history("compare", A, B, "-o", "json").out)["facts"]
    assert [(each["name"], each["first"]) for each in facts] == [("duration", "0:00:04.892389")]
