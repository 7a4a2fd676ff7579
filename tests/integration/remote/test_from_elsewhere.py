"""A run goes on from one of another machine, whose files are at home."""

from __future__ import annotations

from collections.abc import Callable

from integration.remote.benches import FarBench, far_bench  # noqa: F401 - a fixture

SCRIPT = """
import os
stages = [open("made/" + name).read() for name in sorted(os.listdir("made"))] if os.path.isdir("made") else []
os.makedirs("made", exist_ok=True)
open("made/%d" % len(stages), "w").write("stage %d" % len(stages))
os.path.lexists("made/first") or os.symlink("0", "made/first")
print(stages, os.listdir("outputs"))
"""


def test_what_is_at_home_goes_along_to_a_box_and_back(far_bench: Callable[..., FarBench]) -> None:  # noqa: F811
    bench = far_bench()
    bench.write("t.py", SCRIPT)
    assert bench.run("submit", "-t", "local", "t.py").code == 0
    there = bench.submit("--from", "last", "t.py")
    assert there.out == "['stage 0', 'stage 0'] []\n"
    back = bench.run("submit", "-t", "local", "--from", "last", "t.py")
    assert "['stage 0', 'stage 2', 'stage 0'] []\n" in back.out
    bench.run("experiment", "clean", "--all")
    gone = bench.submit("--from", "last:made/3", "t.py")
    assert gone.out == "['stage 3'] []\n", "removed over there, and at home"
    missing = bench.submit("--from", "last:made/7", "t.py")
    assert missing.code == 242 and "made/7" in missing.err
    alone = bench.submit("--no-outputs", "t.py")
    assert alone.code == 0
    left = bench.run("submit", "-t", "local", "--from", "last", "t.py")
    assert left.code == 242 and "history download" in left.err
