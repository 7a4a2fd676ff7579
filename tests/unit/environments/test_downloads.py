"""Downloads: complete, checked, resumed where they broke, and nothing kept of those that failed."""

from __future__ import annotations

import hashlib
import io
import ssl
from collections.abc import Callable
from email.message import Message
from pathlib import Path
from typing import Any, cast
from urllib.error import HTTPError, URLError

import pytest

from holdfast.environments.foreign_resolution import WheelFile
from holdfast.environments.wheel_download import PAUSES, Access, PackageDownload, download
from holdfast.errors import PreparationError, StorageError
from holdfast.snapshots.store import ObjectStore

CONTENT = bytes(range(256)) * 8192


class Answer:
    """`cut`: nothing comes after this many bytes, though more was promised."""

    def __init__(self, content: bytes, begin: int, cut: int | None, can_resume: bool) -> None:
        self.status = 206 if begin and can_resume else 200
        data = content[begin:] if self.status == 206 else content
        self.headers = {"Content-Length": str(len(data))}
        self._body = io.BytesIO(data if cut is None else data[:cut])

    def read(self, size: int, /) -> bytes:
        return self._body.read(size)

    def close(self) -> None:
        self._body.close()


class Server:
    """Answers each request with the next of `plan`: an error, where to cut, or None for all of it."""

    def __init__(self, *plan: Exception | int | None, content: bytes = CONTENT, can_resume: bool = True) -> None:
        self._plan, self._content, self._can_resume = list(plan), content, can_resume
        self.begins: list[int] = []

    def open(self, url: str, begin: int = 0) -> Answer:
        self.begins.append(begin)
        step = self._plan.pop(0) if self._plan else None
        if isinstance(step, Exception):
            raise step
        return Answer(self._content, begin, step, self._can_resume)


def wheel(content: bytes = CONTENT, name: str = "a-1-py3-none-any.whl", size: int | None = None) -> WheelFile:
    return WheelFile("a", name, f"https://me:secret@index.example/{name}", hashlib.sha256(content).hexdigest(), size)


def fetched(server: Server, store: ObjectStore, slept: Callable[[float], None] = lambda _: None) -> tuple[str, int]:
    return store.put_stream(PackageDownload(wheel(), cast(Access, server), sleep=slept))


def refusal(code: int) -> HTTPError:
    return HTTPError("https://index.example/a", code, "no", cast(Any, Message()), None)


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return ObjectStore(tmp_path / "packages")


def files(store: ObjectStore) -> list[Path]:
    return [path for path in store.root.rglob("*") if path.is_file()] if store.root.exists() else []


@pytest.mark.parametrize(
    ("server", "begins"),
    [
        (Server(700_000, ConnectionResetError(), 300_000), [0, 700_000, 700_000, 1_000_000]),
        (Server(700_000, can_resume=False), [0, 700_000]),
    ],
    ids=["where it broke", "from the beginning, of a server that gives only whole files"],
)
def test_a_link_that_breaks_is_taken_up(store, server, begins):
    assert fetched(server, store) == (wheel().sha256, len(CONTENT))
    assert server.begins == begins


def test_a_server_that_is_busy_is_asked_again_and_given_up_in_the_end(store):
    slept: list[float] = []
    assert fetched(Server(refusal(503), refusal(429)), store, slept.append)[0] == wheel().sha256
    assert slept == list(PAUSES[:2])
    with pytest.raises(PreparationError, match=r"`a-1-py3-none-any.whl` cannot be downloaded from index.example: "):
        fetched(Server(*[refusal(503)] * 9), ObjectStore(store.root / "other"))


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (refusal(404), "pip.conf"),
        (refusal(401), "~/.netrc"),
        (URLError(ssl.SSLCertVerificationError("self-signed")), "SSL_CERT_FILE"),
    ],
)
def test_what_will_not_change_is_not_tried_again(store, error, hint):
    server = Server(error)
    with pytest.raises(PreparationError) as caught:
        fetched(server, store)
    assert hint in caught.value.hint
    assert "secret" not in str(caught.value)
    assert len(server.begins) == 1


def test_another_file_than_the_one_asked_for_is_an_error_and_is_not_kept(store):
    for size in (100, 3 << 20):
        with pytest.raises(PreparationError, match="is another file: its sha256 is"):
            fetched(Server(content=b"x" * size), store)
    assert files(store) == []


def test_several_files_are_downloaded_and_progress_tells_how_far_they_are(store):
    assert list(download([], cast(Access, Server()), store.put_stream)) == []
    wanted = [wheel(CONTENT, f"a-{number}-py3-none-any.whl") for number in range(20)]
    seen = list(download(wanted, cast(Access, Server()), store.put_stream))
    assert files(store) == [store.path_of(wheel().sha256)]
    assert seen == sorted(seen, key=lambda each: each.done)
    assert all(each.done <= each.total and each.of_files == 20 for each in seen)


def test_one_that_fails_ends_all_and_leaves_nothing_half_written(store):
    class Mixed(Server):
        def open(self, url: str, begin: int = 0) -> Answer:
            if "bad" in url:
                raise refusal(404)
            return super().open(url, begin)

    wanted = [wheel(), wheel(b"other", "bad-1-py3-none-any.whl")]
    with pytest.raises(PreparationError, match="bad-1"):
        list(download(wanted, cast(Access, Mixed()), store.put_stream))
    assert all(path == store.path_of(wheel().sha256) for path in files(store))


def test_a_full_disk_is_said_as_that(tmp_path):
    def full(stream: PackageDownload) -> None:
        stream.read(10)
        raise StorageError("There is no room left.")

    with pytest.raises(StorageError):
        list(download([wheel()], cast(Access, Server()), full))


def test_to_stop_watching_ends_the_downloads(store):
    class Endless(Server):
        def open(self, url: str, begin: int = 0) -> Answer:
            answer = super().open(url, begin)
            answer.read = lambda size, /: b"x"  # type: ignore[method-assign]  # never comes to an end
            return answer

    watching: Any = download([wheel()], cast(Access, Endless()), store.put_stream)
    next(watching)
    watching.close()
    assert files(store) == []
