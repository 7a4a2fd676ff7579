"""A line on the terminal that says what takes so long, and for how long it has."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator

from holdfast.cli import terminal

EVERY = 1.0
"""Seconds: what takes less is done before anybody wonders."""


@contextlib.contextmanager
def working(text: str) -> Iterator[None]:
    """`text` and the seconds, as long as the block lasts; only where somebody watches."""
    if not terminal.is_terminal(sys.stderr):
        yield
        return
    done = threading.Event()
    ticking = threading.Thread(target=_tick, args=(text, done), daemon=True)
    ticking.start()
    try:
        yield
    finally:
        done.set()
        ticking.join()


def _tick(text: str, done: threading.Event) -> None:
    began, is_shown = time.monotonic(), False
    while not done.wait(EVERY):
        line = f"{text} ({time.monotonic() - began:.0f} s)"
        sys.stderr.write("\r\x1b[K" + terminal.one_line(line)[: terminal.width() - 1])
        sys.stderr.flush()
        is_shown = True
    if is_shown:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
