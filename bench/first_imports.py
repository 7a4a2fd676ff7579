"""The first script that imports what was just installed: pip compiles bytecode when it installs, Holdfast leaves it to
that script. So each comparison with pip also has the sum of both."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from measuring import Figures

SCRIPT = 'import numpy, pandas, sklearn\nprint("hi")\n'


def note(
    figures: Mapping[str, Figures], imports: Mapping[str, Sequence[float]], ours: str, other: str, by: str = "by hand"
) -> str:
    """`imports` are the seconds of that script in every round, including those that did not count. Returns an empty
    text if one of the two could not be measured."""
    if not (figures[ours].values and figures[other].values):
        return ""
    rounds = len(figures[ours].values)
    later = {name: Figures(tuple(imports[name][-rounds:])).median for name in (ours, other)}
    both = {name: figures[name].median + later[name] for name in (ours, other)}
    return textwrap.fill(
        "pip compiles bytecode while it installs. In Holdfast's environments the first script that imports a package "
        f"compiles it, and the bytecode is kept. The first script that imports all three takes {later[ours]:.1f} s as "
        f"a Holdfast run and {later[other]:.1f} s {by}; with it the sums are {both[ours]:.1f} against "
        f"{both[other]:.1f} s, {both[ours] / both[other]:.2f} times.",
        width=118,
    )
