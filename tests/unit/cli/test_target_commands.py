"""`computetarget`, and what other commands say about targets: what is missing, what is shown, what happens to keys."""

from __future__ import annotations

import io
import sys
import threading

import pytest

from holdfast.cli import screen
from holdfast.cli.tables import draw_page
from holdfast.workbench.reach.context import read_context

from .conftest import Terminal


@pytest.mark.parametrize(
    ("words", "missing", "whole"),
    [
        ([], ["TYPE", "--name"], "attach remote --name NAME --address HOST"),
        (["remote"], ["--name", "--address"], "attach remote --name NAME --address HOST"),
        (["remote", "-n", "gpu1"], ["--address"], "attach remote --name gpu1 --address HOST"),
        (["--type", "remote", "-a", "box"], ["--name"], "attach remote --name NAME --address box"),
        (["local"], ["--name"], "attach local --name NAME"),
        (["docker"], ["--name"], "attach docker --name NAME"),
        (["localdocker"], ["--name"], "attach docker --name NAME"),
        (["remotedocker", "-n", "gpu1"], ["--address"], "attach remotedocker --name gpu1 --address HOST"),
        (["--type", "remotedocker"], ["--name", "--address"], "attach remotedocker --name NAME --address HOST"),
    ],
)
def test_all_that_an_attach_lacks_is_said_at_once(command, words, missing, whole):
    done = command("computetarget", "attach", *words)
    assert done.code == 240
    first, second = done.err.splitlines()
    assert [part.partition(" ")[0] for part in first.partition("missing: ")[2].split("; ")] == missing
    assert second == f"  holdfast computetarget {whole}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["docker", "-a", "gpu1"], ["`docker` target is this machine", "computetarget attach remotedocker …"]),
        (["docker", "--home", "/scratch/me"], ["`docker`", "export HOLDFAST_HOME=/scratch/me"]),
        (["local", "-a", "gpu1"], ["`local`", "computetarget attach remote …"]),
        (["local", "--image", "x"], ["runs no containers", "computetarget attach docker …"]),
        (["remote", "-a", "gpu1", "--image", "x"], ["`remote`", "computetarget attach remotedocker …"]),
        (["docker", "--image", "Ubuntu"], ["--image: `Ubuntu`", "`ubuntu`"]),
        (["remotedocker", "-a", "gpu1", "--image", "http://x"], ["--image: `http://x`"]),
        (["remote", "--address", "ssh://me@gpu1"], ["--address: `ssh://me@gpu1`", ": gpu1"]),
        (["remote", "--address", "gpu1", "--home", ""], ["--home: no folder is named.", "`~/`"]),
    ],
    ids=" ".join,
)
def test_words_of_another_type_and_names_that_are_none_are_refused_before_anything_is_tried(command, words, said):
    done = command("computetarget", "attach", *words, "-n", "box")
    assert done.code == 240
    assert all(each in done.err for each in said), done.err


def test_a_target_that_is_not_there_gets_the_nearest_and_all_there_are(command, configure, tmp_path):
    for name in ("gpu1", "bench"):
        configure(f"{name}.compute", "type: remote\naddress: box\n")
    (tmp_path / "t.py").touch()
    done = command("submit", "-t", "gpu", "t.py")
    assert done.code == 240
    assert done.err.splitlines()[:3] == [
        "error: There is no compute target `gpu`.",
        "  Did you mean `gpu1`?",
        "  Available: bench, gpu1, local",
    ]
    assert "attach local" not in done.err


def test_a_target_is_shown_as_its_file_has_it(command, configure, monkeypatch):
    monkeypatch.setattr("holdfast.cli.computetarget._inventory", lambda *_: None)
    configure("gpu1.compute", "type: remote\naddress: gpu1:2222\npythonLocation: /py\n")
    assert command("computetarget", "show", "gpu1", "-o", "table").out.splitlines() == [
        "name                    gpu1",
        "file                    aml_config/gpu1.compute",
        "type                    remote",
        "address                 gpu1:2222",
        "pythonLocation          /py",
        "userManagedEnvironment  true",
    ]


def test_a_target_whose_file_is_broken_is_detached_with_a_word_about_its_key(command, configure):
    file = configure("gpu1.compute", "type: [remote\n")
    keys = read_context().home / "keys"
    keys.mkdir(parents=True)
    for name in ("gpu1-0123abcd", "gpu1-big-0123abcd", "gpu1-other"):
        (keys / name).write_text("private")
        (keys / f"{name}.pub").write_text(f"ssh-ed25519 AAAA-of-{name} holdfast")
    done = command("computetarget", "detach", "gpu1")
    assert done.code == 0, done.err
    assert "ssh-ed25519 AAAA-of-gpu1-0123abcd holdfast" in done.err
    assert done.err.count("ssh-ed25519") == 1, "keys of others are not its"
    assert "Remove both by hand" in done.err
    assert (keys / "gpu1-0123abcd").exists(), "it may be another project's"
    assert not file.exists()


def test_long_lines_of_a_page_are_broken_between_words(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    rows = [("Folder", "one two three four five six seven eight nine ten"), ("Folder", "x"), ("Cores", "4")]
    shown, piped = Terminal(), io.StringIO()
    draw_page(rows, shown)
    draw_page(rows, piped)
    assert shown.getvalue().splitlines() == [
        "Folder  one two three four five six",
        "          seven eight nine ten",
        "        x",
        "Cores   4",
    ]
    assert piped.getvalue().splitlines()[0] == "Folder  one two three four five six seven eight nine ten"


def test_what_takes_long_is_said_with_the_time_and_goes_away(monkeypatch):
    class Watched(Terminal):
        written = threading.Event()

        def write(self, text: str) -> int:
            self.written.set()
            return super().write(text)

    stream = Watched()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(screen, "EVERY", 0.01)
    with screen.working("looking …"):
        assert stream.written.wait(60)
    assert stream.getvalue().startswith("\r\x1b[Klooking … (0 s)")
    assert stream.getvalue().endswith("\r\x1b[K")


def test_nothing_is_printed_without_a_terminal(monkeypatch):
    monkeypatch.setattr(threading, "Thread", lambda **_: pytest.fail("a line is drawn"))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with screen.working("looking …"):
        pass


def test_runs_of_one_target_are_listed_by_its_short_option(command, recorded):
    run_id = recorded.add()
    assert run_id in command("history", "list", "-t", "local", "-o", "json").out
    assert command("history", "list", "-t", "gpu1", "-o", "json").out == "[]\n"
