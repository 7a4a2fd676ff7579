import os
from pathlib import PurePosixPath

import pytest


@pytest.mark.parametrize(
    ("content", "stored"),
    [
        ("größe", "größe".encode()),
        (b"\x00\xff", b"\x00\xff"),
        (bytearray(b"ab"), b"ab"),
        ("", b""),
        ("\ud800", b"\\ud800"),
    ],
)
def test_an_upload_is_stored_under_its_path(api, run, content, stored):
    api.upload("report/a b/summary.txt", content)
    assert (run.directory / "uploads/report/a b/summary.txt").read_bytes() == stored


def test_a_second_upload_of_a_path_replaces_the_first_and_leaves_nothing_else(api, run):
    api.upload("./summary.txt", "first")
    api.upload(PurePosixPath("summary.txt"), "second")
    assert {path.name: path.read_text() for path in (run.directory / "uploads").iterdir()} == {"summary.txt": "second"}


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "names no file"),
        (".", "names no file"),
        ("folder/", "names no file"),
        ("/etc/passwd", "must be relative"),
        ("../up", "must not have .. in it"),
        ("a/../../up", "must not have .. in it"),
        ("a\0b", "NUL"),
        ("a\\b", "separated by /"),
        (".unfinished-1", "being written"),
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(api, run, path, reason):
    with pytest.raises(ValueError, match=r"holdfast\.upload: the path .* cannot be used") as caught:
        api.upload(path, "text")
    assert reason in str(caught.value)
    assert not (run.directory / "uploads").exists()


def test_content_that_is_neither_text_nor_bytes_is_refused(api):
    with pytest.raises(TypeError, match="the content is a dict; give text or bytes"):
        api.upload("summary.json", {"a": 1})


def test_an_upload_that_cannot_be_written_warns_and_leaves_no_half(api, run, capsys):
    (run.directory / "uploads/taken").mkdir(parents=True)
    api.upload("taken", "text")
    api.upload("taken", "text")
    assert capsys.readouterr().err.count("`taken` could not be uploaded") == 1
    assert os.listdir(run.directory / "uploads") == ["taken"]


def test_outside_a_run_an_upload_does_nothing(api, run, monkeypatch, tmp_path):
    monkeypatch.delenv("HOLDFAST_RUN_DIRECTORY")
    api.upload("summary.txt", "text")
    api.upload("../up", object())
    assert list(run.directory.iterdir()) == []


def test_the_current_run_knows_what_it_is_and_where(api, run, monkeypatch):
    current = api.current_run()
    assert (current.id, current.project, current.target) == ("digits_1", "digits", "local")
    assert current.run_configuration == "quick"
    assert current.directory == str(run.directory)
    assert current.outputs == str(run.directory / "work" / "outputs")
    assert repr(current) == "<holdfast run digits_1>"
    monkeypatch.delenv("HOLDFAST_RUN_ID")
    assert api.current_run() is None, "outside a run"
