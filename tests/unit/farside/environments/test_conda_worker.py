"""What the worker says when something goes wrong, without rattler."""

from __future__ import annotations

import errno
import hashlib
import json
import subprocess
import sys

import pytest

from holdfast.farside.environments import conda_build, conda_worker
from holdfast.farside.environments.conda_build import CondaProblem, about_spec
from holdfast.farside.environments.conda_worker import Failed, Reporter, failure, without_secrets


class GatewayError(Exception):
    """As rattler's: it says in words alone what happened."""


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("could not find subdir 'noarch' in channel 'x'\nCaused by: No such file (os error 2)", "channel"),
        ("HTTP status client error (404 Not Found) for url (https://h/noarch/repodata.json)", "channel"),
        ("hash mismatch when extracting https://h/x.conda", "channel"),
        ("error sending request for url (https://h/noarch/repodata.json)\nCaused by: dns error", "network"),
        ("HTTP status server error (503 Service Unavailable) for url (https://h/repodata.json)", "network"),
        ("failed to link x\nCaused by: failed to copy: No space left on device (os error 28)", "storage"),
        ("cannot create /data/x: Permission denied (os error 13)", "storage"),
        ("something else", "other"),
    ],
)
def test_the_kind_of_a_failure_is_read_from_its_words(message, kind):
    found = failure(GatewayError(message))

    assert (found.kind, found.message) == (kind, message)


def test_an_error_of_the_system_is_about_storage():
    assert failure(OSError(errno.EROFS, "Read-only file system")).kind == "storage"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("see https://ada:w%20rd@h:8080/c/x.conda.", "see https://h:8080/c/x.conda."),
        ("see https://ada:p@ss@h/c", "see https://h/c"),
        ("(https://h/api/t/tk-12_3/c/noarch)", "(https://h/api/c/noarch)"),
        ("http://tok@h/t/${NAME}/c", "http://h/c"),
        ("file:///t/data/c and mail ada@h", "file:///t/data/c and mail ada@h"),
    ],
)
def test_secrets_in_addresses_are_left_out(text, plain):
    assert without_secrets(text) == plain


def concerned(reason: str, specs: list[str]) -> str:
    return about_spec(CondaProblem("unsatisfiable", reason, ""), specs).spec


def test_the_spec_concerned_is_the_one_that_the_solver_names_first():
    reason = "Cannot solve: numpy >=3 cannot be installed because\n└─ numpy 3.0 would require\n   └─ python >=4"

    assert concerned(reason, ["python=3.11", "numpy-base", "conda-forge::numpy>=3"]) == "conda-forge::numpy>=3"
    assert concerned("who knows", ["a", "b"]) == ""
    assert concerned("who knows", ["a >=1"]) == "a >=1"


def test_progress_is_told_a_few_times_per_second_and_always_at_a_start():
    lines: list[dict[str, object]] = []
    reporter = Reporter(lines.append, 2, 100)

    reporter.on_transaction_start(2)
    download = reporter.on_download_start(reporter.on_populate_cache_start(0, "x"))
    for done in range(100):
        reporter.on_download_progress(download, done, None)
    reporter.on_populate_cache_complete(0)
    reporter.on_populate_cache_complete(0)
    reporter.on_link_complete(0)
    reporter.tell()

    assert lines[0] == {"phase": "download", "done": 0, "of": 2, "bytes": 0, "total": 0}
    assert lines[-1] == {"phase": "link", "done": 1, "of": 2, "bytes": 99, "total": 100}
    assert len(lines) < 50


def test_a_script_that_fails_is_remembered():
    reporter = Reporter(lambda _: None, 1, 0)

    reporter.on_post_link_complete(reporter.on_post_link_start("good", "x"), True)
    reporter.on_post_link_complete(reporter.on_post_link_start("bad", "x"), False)

    assert reporter.broken == ["bad"]


def test_an_archive_of_a_folder_must_have_its_sha256(tmp_path):
    archive = tmp_path / "a b.conda"
    archive.write_bytes(b"content")
    right = hashlib.sha256(b"content").digest()

    conda_worker.check_local(archive.as_uri(), right)
    conda_worker.check_local("https://h/other.conda", bytes(32))
    for url, sha256 in ((archive.as_uri(), bytes(32)), (archive.as_uri(), None), (archive.as_uri() + "x", right)):
        with pytest.raises(Failed) as caught:
            conda_worker.check_local(url, sha256)
        assert caught.value.kind == "channel"


@pytest.mark.parametrize("request_text", ["", "{}", "[]", '{"do": "dance"}', '{"do": "solve", "specs": []}'])
def test_a_worker_that_cannot_work_says_so_in_one_line(request_text):
    argv = [sys.executable, "-I", "-S", conda_build.worker_command("")[2]]
    done = subprocess.run(argv, input=request_text, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, "")
    assert json.loads(done.stdout)["error"]["kind"] == "other"
