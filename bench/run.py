"""`make bench`: measure Holdfast beside its peers and write `docs/benchmarks.md`.

bench/run.py                     everything; writes the page
bench/run.py --only one-run      one row (may be repeated), shown and not written
bench/run.py --only one-run --update    the same, and its part of the page is written anew
bench/run.py --profile history   where the time of a row goes
bench/run.py --quick             little data and few rounds: does it still work?
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Protocol

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "scripts"), str(ROOT / "tests")]

import machine  # noqa: E402 - package_index, which peers needs, lies in scripts/, kit in tests/
import peers  # noqa: E402
import report  # noqa: E402
from measuring import FailedError  # noqa: E402
from results import Row  # noqa: E402
from rows import (  # noqa: E402
    bytes_sent,
    container_environment,
    container_over_ssh,
    data_again,
    environment_findings,
    first_line,
    from_earlier,
    help_text,
    history,
    in_container,
    installed_size,
    leases,
    long_journal,
    many_boxes,
    many_runs,
    new_environment,
    one_more_package,
    one_run,
    outputs_home,
    over_ssh,
    sampling,
    scalars,
    small_outputs_home,
    snapshot,
    supervision,
    table_of_lies,
    unchanged_environment,
)
from session import Session  # noqa: E402

PAGE = ROOT / "docs" / "benchmarks.md"


class RowModule(Protocol):
    """A module of `rows/`: `TOOLS` are the installations that it needs."""

    NAME: str
    TITLE: str
    TOOLS: tuple[str, ...]

    def measure(self, session: Session) -> Row: ...

    def profile(self, session: Session) -> str: ...


MODULES: tuple[RowModule, ...] = (
    one_run,
    over_ssh,
    in_container,
    container_over_ssh,
    first_line,
    bytes_sent,
    outputs_home,
    small_outputs_home,
    from_earlier,
    data_again,
    many_boxes,
    help_text,
    scalars,
    snapshot,
    history,
    long_journal,
    many_runs,
    unchanged_environment,
    new_environment,
    one_more_package,
    container_environment,
    environment_findings,
    supervision,
    sampling,
    leases,
    table_of_lies,
    installed_size,
)


def main(arguments: Sequence[str]) -> None:
    options = parse(arguments)
    by_name = {module.NAME: module for module in MODULES}
    chosen = [by_name[name] for name in options.profile or options.only or by_name]
    tools = peers.install(needed_tools(chosen), say)
    before = machine.this_machine()
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", ignore_cleanup_errors=True) as scratch:
        session = Session(Path(scratch), tools, options.repeat, options.quick, say)
        if options.profile:
            for module in chosen:
                print(module.profile(session))
            return
        rows, failures = measure_all(chosen, session)
    page = report.Page(datetime.now(timezone.utc), before, machine.versions(tools), rows, failures)
    text = report.render(page)
    if options.update and not failures:
        titles = [module.TITLE for module in MODULES]
        PAGE.write_text(report.merged(PAGE.read_text(encoding="utf-8"), text, titles), encoding="utf-8")
        say(f"wrote {', '.join(row.name for row in rows)} into {PAGE.relative_to(ROOT)}")
    elif options.only or options.quick:
        print(text)
    else:
        PAGE.write_text(text, encoding="utf-8")
        say(f"wrote {PAGE.relative_to(ROOT)}")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    names = [module.NAME for module in MODULES]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=f"of {', '.join(names)}")
    parser.add_argument("--update", action="store_true", help="with --only: write these rows into the page")
    parser.add_argument("--profile", action="append", choices=names, metavar="NAME", help="where its time goes")
    parser.add_argument("--repeat", type=int, metavar="N", help="rounds, instead of each row's own number")
    parser.add_argument("--quick", action="store_true", help="little data, few rounds; nothing is written")
    options = parser.parse_args(arguments)
    if options.update and (options.quick or not options.only):
        parser.error("--update goes with --only, and not with --quick")
    if options.repeat is not None and options.repeat < 1:
        parser.error("--repeat must be at least 1")
    return options


def needed_tools(modules: Sequence[RowModule]) -> list[str]:
    wanted = {name for module in modules for name in module.TOOLS}
    return [name for name in (peers.OURS, *peers.PEERS) if name in wanted]


def measure_all(modules: Sequence[RowModule], session: Session) -> tuple[list[Row], Mapping[str, str]]:
    rows, failures = [], {}
    for module in modules:
        begin = time.monotonic()
        say(f"== {module.NAME}: {module.TITLE}")
        try:
            load = os.getloadavg()[0]
            moment = f"{datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC at a load of {load:.1f}"
            rows.append(replace(module.measure(session), moment=moment))
        except FailedError as error:
            failures[module.TITLE] = str(error)
            say(f"failed: {error}")
        say(f"== {module.NAME} took {time.monotonic() - begin:.0f} s")
    return rows, failures


def say(text: str) -> None:
    print(f"bench: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
