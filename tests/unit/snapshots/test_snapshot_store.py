"""The content-addressed store."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat

import pytest

from holdfast.errors import StorageError
from holdfast.snapshots import store as store_module
from holdfast.snapshots.store import CHUNK, ObjectStore, digest_of_stream


def everything(store: ObjectStore) -> list[str]:
    return sorted(str(each.relative_to(store.root)) for each in store.root.rglob("*") if each.is_file())


def test_what_was_put_can_be_read_and_lies_at_its_digest(store):
    digest = store.put_bytes(b"hello")
    assert digest == hashlib.sha256(b"hello").hexdigest()
    assert store.path_of(digest) == store.root / digest[:2] / digest[2:]
    assert stat.S_IMODE(store.path_of(digest).stat().st_mode) == 0o444
    assert store.has(digest)
    assert store.read(digest) == b"hello"
    with store.open(digest) as stream:
        assert stream.read() == b"hello"


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK])
def test_a_file_of_any_size_is_stored_under_its_digest(store, tmp_path, size):
    content = bytes(range(256)) * (size // 256 + 1)
    file = tmp_path / "file"
    file.write_bytes(content[:size])
    with file.open("rb", buffering=0) as stream:
        assert store.put_stream(stream) == (hashlib.sha256(content[:size]).hexdigest(), size)
    with file.open("rb") as stream:
        assert digest_of_stream(stream) == hashlib.sha256(content[:size]).hexdigest()
    assert len(everything(store)) == 1


def test_an_object_that_exists_is_not_written_again_and_a_stream_may_yield_little_at_a_time(store):
    class Dripping(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(size or 0, 3))

    digest, size = store.put_stream(Dripping(b"0123456789"))
    assert (store.read(digest), size) == (b"0123456789", 10)
    before = store.path_of(digest).stat()
    store.put_bytes(b"0123456789")
    store.put_stream(io.BytesIO(b"0123456789"))
    assert store.path_of(digest).stat().st_ino == before.st_ino


@pytest.mark.parametrize("size", [10, CHUNK + 10])
def test_an_object_cut_short_by_a_crash_is_written_again(store, size):
    content = b"x" * size
    path = store.path_of(store.put_bytes(content))
    path.chmod(0o644)
    path.write_bytes(b"")
    store.put_stream(io.BytesIO(content))
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "digest",
    ["", "..", "../../etc/passwd", "/" * 64, "A" * 64, "a" * 63, "a" * 65, "../" + "a" * 61, "a\n" * 32, "é" * 64],
)
def test_a_hostile_digest_never_becomes_a_path(store, digest):
    for ask in (store.path_of, store.has, store.read, store.open):
        with pytest.raises(StorageError, match="is not a digest"):
            ask(digest)


def test_a_missing_object_is_named_and_a_damaged_one_not_returned(store):
    with pytest.raises(StorageError, match="0" * 64) as caught:
        store.read("0" * 64)
    assert caught.value.hint
    path = store.path_of(store.put_bytes(b"hello"))
    path.chmod(0o644)
    path.write_bytes(b"hullo")
    with pytest.raises(StorageError, match="damaged"):
        store.read(hashlib.sha256(b"hello").hexdigest())


@pytest.mark.parametrize("size", [10, CHUNK + 10])
def test_a_full_disk_is_a_storage_error_and_leaves_nothing_behind(store, monkeypatch, size):
    def full(descriptor: int, data: bytes) -> None:
        os.write(descriptor, data[:5])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(store_module, "_write", full)
    with pytest.raises(StorageError, match="no room left") as caught:
        store.put_stream(io.BytesIO(b"x" * size))
    assert "holdfast experiment clean" in caught.value.hint
    assert everything(store) == []


def test_a_store_that_cannot_be_made_is_a_storage_error(tmp_path):
    (tmp_path / "state").write_text("a file is in the way")
    with pytest.raises(StorageError, match="cannot be written") as caught:
        ObjectStore(tmp_path / "state" / "objects").put_bytes(b"hello")
    assert str(tmp_path) in caught.value.hint


def test_an_error_while_reading_stays_what_it_is_and_leaves_nothing_behind(store):
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell() >= CHUNK:
                raise OSError(errno.EIO, "Input/output error")
            return super().read(size)

    with pytest.raises(OSError, match="Input/output error"):
        store.put_stream(Failing(b"x" * (CHUNK + 5)))
    assert everything(store) == []


def test_all_digests_are_listed_and_foreign_files_are_not(store):
    assert store.digests() == set()
    digests = {store.put_bytes(str(number).encode()) for number in range(20)}
    (store.root / "README").write_text("not ours")
    assert store.digests() == digests
