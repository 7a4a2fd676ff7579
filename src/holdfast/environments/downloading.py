"""Wheels from their indexes into a store of this machine, several at once, each checked against its hash. A link that
breaks is taken up where it broke; what is not whole does not stay."""

from __future__ import annotations

import hashlib
import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPException
from typing import Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from holdfast.environments.index_access import Access, Answer
from holdfast.environments.wheel_files import WheelFile
from holdfast.errors import HoldfastError, PreparationError
from holdfast.frozen import dataclass

AT_ONCE = 6
PAUSES = (0.5, 1.0, 2.0, 4.0)
"""Seconds before a file is tried again; counted anew whenever something came."""
PIECE = 1 << 18
EVERY = 0.2
_FOR_GOOD = (400, 401, 403, 404, 405, 407, 410, 451)


class Store(Protocol):
    """Contents by their sha256."""

    def put_stream(self, stream: Download, /) -> tuple[str, int]: ...


@dataclass(frozen=True)
class Progress:
    """`total` bytes as far as they are known."""

    files: int
    of_files: int
    done: int
    total: int


def download(files: Sequence[WheelFile], access: Access, store: Store) -> Iterator[Progress]:
    """Until all are in the store. Raises PreparationError for the first that cannot be had, StorageError where there
    is no room; then, and when whoever iterates stops, nothing more is fetched."""
    work = _Work(files, access, store)
    threads = [threading.Thread(target=work.go, daemon=True) for _ in range(min(AT_ONCE, len(files)))]
    for thread in threads:
        thread.start()
    try:
        while any(thread.is_alive() for thread in threads) and work.failure is None:
            work.ended.wait(EVERY)
            work.ended.clear()
            yield work.progress()
    finally:
        work.is_over = True
        for thread in threads:
            thread.join(2.0)
    if work.failure is not None:
        raise work.failure


class _Work:
    def __init__(self, files: Sequence[WheelFile], access: Access, store: Store) -> None:
        self._access, self._store, self._count = access, store, len(files)
        self._left: queue.SimpleQueue[WheelFile] = queue.SimpleQueue()
        for file in sorted(files, key=lambda each: -(each.size or 0)):
            self._left.put(file)
        self._downloads: list[Download] = []
        self._finished = 0
        self._expected = sum(file.size or 0 for file in files)
        self._guard = threading.Lock()
        self.ended = threading.Event()
        self.failure: BaseException | None = None
        self.is_over = False

    def progress(self) -> Progress:
        with self._guard:
            done = sum(each.done for each in self._downloads)
            unknown = sum(each.length for each in self._downloads if each.file.size is None)
            return Progress(self._finished, self._count, done, max(done, self._expected + unknown))

    def go(self) -> None:
        while not self.is_over:
            try:
                file = self._left.get_nowait()
            except queue.Empty:
                break
            try:
                self._fetch(file)
            except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
                if not self.is_over:
                    self.failure = self.failure or error
                self.is_over = True
        self.ended.set()

    def _fetch(self, file: WheelFile) -> None:
        one = Download(file, self._access, lambda: self.is_over)
        with self._guard:
            self._downloads.append(one)
        try:
            self._store.put_stream(one)
        finally:
            one.close()
        with self._guard:
            self._finished += 1


class Download:
    """A file as something to read, once. At its end it has been checked: whoever gets there has all of it."""

    def __init__(
        self,
        file: WheelFile,
        access: Access,
        is_over: Callable[[], bool] = lambda: False,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.file, self._access, self._is_over, self._sleep = file, access, is_over, sleep
        self._answer: Answer | None = None
        self._hash = hashlib.sha256()
        self._failures = 0
        self.done = self.length = 0

    def read(self, size: int, /) -> bytes:
        """Raises PreparationError where the file cannot be had, or is not the one that was asked for."""
        while True:
            if self._is_over():
                raise PreparationError("The download was given up.")
            try:
                data = self._read(min(size, PIECE))
            except (HTTPError, URLError, HTTPException, OSError) as error:
                self._fail(error)
                continue
            if data:
                self._failures = 0
                self._hash.update(data)
                self.done += len(data)
            else:
                self._check()
            return data

    def close(self) -> None:
        if self._answer is not None:
            self._answer.close()
            self._answer = None

    def _read(self, size: int) -> bytes:
        if self._answer is None:
            self._answer = self._open()
        data = self._answer.read(size)
        if not data and self.done < self.length:
            raise ConnectionError("the link was cut")
        return data

    def _open(self) -> Answer:
        answer = self._access.open(self.file.url, self.done)
        left = int(answer.headers.get("Content-Length") or 0)
        if self.done and answer.status == 206:
            self.length = self.done + left if left else self.length
            return answer
        self.length = left
        skip = self.done  # a server that only gives whole files
        while skip:
            data = answer.read(min(skip, PIECE))
            if not data:
                answer.close()
                raise ConnectionError("the link was cut")
            skip -= len(data)
        return answer

    def _fail(self, error: Exception) -> None:
        """Returns when it may be tried again."""
        self.close()
        if isinstance(error, HTTPError):
            error.close()
        if self._failures == len(PAUSES) or _is_for_good(error):
            raise _unreachable(self.file, error) from error
        self._sleep(PAUSES[self._failures])
        self._failures += 1

    def _check(self) -> None:
        if self._hash.hexdigest() != self.file.sha256:
            raise PreparationError(
                f"What came as `{self.file.name}` from {_host(self.file)} is another file: its sha256 is "
                f"{self._hash.hexdigest()}, and {self.file.sha256} was expected.",
                "Try again. If it stays so, the index was changed or something on the way changes files; to choose "
                "packages anew: --upgrade",
            )


def _is_for_good(error: Exception) -> bool:
    if isinstance(error, HTTPError):
        return error.code in _FOR_GOOD
    reason = error.reason if isinstance(error, URLError) else error
    return isinstance(reason, (ssl.SSLCertVerificationError, FileNotFoundError, PermissionError))


def _unreachable(file: WheelFile, error: Exception) -> HoldfastError:
    reason = error.reason if isinstance(error, URLError) and not isinstance(error, HTTPError) else error
    hint = "Check the network of this machine and its settings: HTTPS_PROXY, SSL_CERT_FILE, pip.conf. Then try again."
    if isinstance(error, HTTPError) and error.code in (401, 403):
        hint = "It wants a name and a password: write them into ~/.netrc, or into the address of the index."
    elif isinstance(reason, ssl.SSLCertVerificationError):
        hint = "Name the certificates of your network in SSL_CERT_FILE."
    elif isinstance(reason, socket.gaierror):
        hint = "Its name is not known here: is this machine online? " + hint
    return PreparationError(f"`{file.name}` cannot be downloaded from {_host(file)}: {reason}.", hint)


def _host(file: WheelFile) -> str:
    parts = urlsplit(file.url)
    return parts.netloc.rpartition("@")[2] or "this machine"
