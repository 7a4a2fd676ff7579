"""`make compare BEFORE=<commit>`: this tree beside an earlier commit of it, the same commands in turns.

Both are built and installed as for a user. Each line has both medians and the median of the rounds' ratios: within a
round, the machine is equally busy for both. A ratio above 1 means that this tree is slower.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "scripts"), str(ROOT / "tests")]

import children  # noqa: E402 - package_index, which peers needs, lies in scripts/, kit in tests/
import peers  # noqa: E402
from changing_scripts import contender, write_script  # noqa: E402
from children import Place  # noqa: E402
from container_places import attach, engine, in_turn, using  # noqa: E402
from far_boxes import FarBox, disconnect, far_boxes, kept_connections, make_box, reaching  # noqa: E402
from measuring import Contender, FailedError, Figures  # noqa: E402
from session import Session  # noqa: E402

BEFORE, NOW = "before", "now"
_OVER_SSH = ["holdfast", "submit", "-c", "gpu1", "s.py"]


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="what to compare this tree with")
    parser.add_argument("--repeat", type=int, default=15, metavar="N", help="rounds (15)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", ignore_cleanup_errors=True) as scratch:
        tools = {BEFORE: _earlier(options.commit, Path(scratch)), NOW: peers.install([peers.OURS], say)[peers.OURS]}
        session = Session(Path(scratch), tools, options.repeat, say=say)
        print(f"| | {options.commit} | this tree | ratio |\n|---|---:|---:|---:|")
        for title, figures in _measured(session):
            print(_line(title, figures[BEFORE], figures[NOW]), flush=True)


def _earlier(commit: str, scratch: Path) -> peers.Tool:
    tree, folder = scratch / "tree", scratch / BEFORE
    tree.mkdir()
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(["tar", "x"], cwd=tree, input=archive, check=True)
    say(f"installing {commit}")
    constraints = str(tree / "constraints.txt")
    fresh = ["--refresh-package", peers.OURS, "--reinstall-package", peers.OURS]
    what = [*fresh, "--constraints", constraints, "--build-constraints", constraints, str(tree)]
    return peers.Tool(BEFORE, folder, problem=peers.install_into(folder, what))


def _measured(session: Session) -> Iterator[tuple[str, dict[str, Figures]]]:
    helped = _both(session, "help")
    yield (
        "`--help`",
        _in_turns(
            session,
            helped,
            lambda name, place: Contender(name, lambda: children.seconds(place, ["holdfast", "--help"], "submit")),
        ),
    )
    here = _both(session, "here")
    yield (
        "one line, here",
        _in_turns(session, here, lambda name, place: contender(name, place, ["holdfast", "submit", "s.py"])),
    )
    with far_boxes() as kit:
        box = make_box(kit, "gpu1")
        new, kept = _both(session, "new", box), _both(session, "kept", box)
        yield (
            "over SSH, new connection",
            _in_turns(session, new, lambda name, place: contender(name, place, _OVER_SSH, lambda: disconnect(place))),
        )
        yield (
            "over SSH, kept connection",
            _in_turns(session, kept, lambda name, place: contender(name, place, _OVER_SSH, lambda: _connect(place))),
        )
    with engine() as daemon:
        places = {name: using(place, daemon) for name, place in _both(session, "container").items()}
        for place in places.values():
            attach(place)
        command = ["holdfast", "submit", "-c", "here", "s.py"]
        contenders = [contender(name, place, command) for name, place in places.items()]
        yield "in a container", session.compare(in_turn(daemon, contenders), usual=15, warm_up=2)


def _both(session: Session, title: str, box: FarBox | None = None) -> dict[str, Place]:
    places = {name: session.place(f"{title}-{name}", name) for name in (BEFORE, NOW)}
    for place in places.values():
        write_script(place.project, "first")
    return {name: reaching(place, [box]) if box else place for name, place in places.items()}


def _in_turns(
    session: Session, places: dict[str, Place], made: Callable[[str, Place], Contender]
) -> dict[str, Figures]:
    return session.compare([made(name, place) for name, place in places.items()], usual=15, warm_up=2)


def _connect(place: Place) -> None:
    if not kept_connections(place):
        children.run(place, _OVER_SSH)


def _line(title: str, before: Figures, now: Figures) -> str:
    if before.problem or now.problem:
        raise FailedError(f"{title}: {before.problem or now.problem}")
    ratio = statistics.median(new / old for old, new in zip(before.values, now.values, strict=True))
    return f"| {title} | {before.median * 1000:.0f} ms | {now.median * 1000:.0f} ms | {ratio:.2f} |"


def say(text: str) -> None:
    print(f"compare: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
