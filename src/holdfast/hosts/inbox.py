"""A queue between reader threads and the thread that waits. `put` blocks while over 64 MB wait."""

from __future__ import annotations

import threading
from collections import deque
from queue import Empty

MOST = 64 << 20
"""Of the weights together. Something heavier is let in alone."""


class Inbox:
    """For one that takes, and several that put."""

    def __init__(self) -> None:
        self._items: deque[tuple[object, int]] = deque()
        self._weight = 0
        self._changed = threading.Condition()

    def put(self, item: object, weight: int, timeout: float) -> bool:
        """False: there was no room in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: not self._items or self._weight + weight <= MOST, timeout):
                return False
            self._items.append((item, weight))
            self._weight += weight
            self._changed.notify_all()
            return True

    def get(self, timeout: float | None) -> object:
        """Raises Empty where nothing came in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: bool(self._items), timeout):
                raise Empty
            item, weight = self._items.popleft()
            self._weight -= weight
            self._changed.notify_all()
            return item
