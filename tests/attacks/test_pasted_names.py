"""Names that hints print for pasting: run ids, targets, files, folders. A shell reads each as one word, whatever a
cloned project, a script or a machine called it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.history.records import read_run
from holdfast.hosts.far_end import Said
from holdfast.hosts.ssh import Destination
from holdfast.hosts.ssh_errors import SshAddress, explain, refused
from holdfast.presenting.run_words import ending_lines
from holdfast.shown_text import is_harmless, pasted
from holdfast.snapshots import ignore, warnings

HOSTILE = [
    "$(touch pwned)",
    "`touch pwned`",
    "a; touch pwned",
    "a && touch pwned #",
    "a | tee pwned",
    "a > pwned",
    'it\'s $HOME "quoted" \\',
    "*",
    "~root",
    "!!",
    "a b  c",
    "-rf",
    "=ls",
    "#a",
    "{a,b}",
    "a\ntouch pwned",
    "\x1b[2Ja'b\\",
    "\u202efdp.exe",
    "\u2028x7",
    "größe 日本",
    "",
]


def words_of(shell: Sequence[str], line: str, folder: Path) -> list[str]:
    """What the shell makes of a line that someone pasted: the arguments of `show`. Nothing else may run."""
    (folder / "show").write_text('#!/bin/sh\nfor each in "$@"; do printf \'%s\\0\' "$each"; done\n')
    (folder / "show").chmod(0o755)
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(folder), "LC_ALL": "C.UTF-8"}
    before = sorted(os.listdir(folder))
    said = subprocess.run([*shell, "-c", line], cwd=folder, env=environment, capture_output=True, check=True).stdout
    assert sorted(os.listdir(folder)) == before, f"{line} did more than name something"
    return [os.fsdecode(each) for each in said.split(b"\0")[:-1]]


@pytest.mark.parametrize("shell", [["bash"], ["zsh", "-f"]], ids=["bash", "zsh"])
@pytest.mark.parametrize("name", [*HOSTILE, "caf\udce9\n"])
def test_a_shell_reads_a_name_as_one_word(name, shell, tmp_path, needs):
    needs(shell[0])
    assert words_of(shell, f"show {pasted(name)} end", tmp_path) == [name, "end"]


@pytest.mark.parametrize("name", [each for each in HOSTILE if is_harmless(each)])
def test_every_posix_shell_reads_a_name_that_can_be_shown(name, tmp_path):
    assert words_of(["sh"], f"show {pasted(name)} end", tmp_path) == [name, "end"]


@settings(max_examples=60, deadline=None)
@given(
    names=st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=1, max_size=20)
)
def test_a_shell_reads_any_names_as_they_are(names, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pasting")
    line = " ".join(map(pasted, names))
    assert is_harmless(line)
    assert words_of(["bash"], f"show {line}", folder) == names


def hinted(err: str, command: str) -> str:
    """The command that a hint ends with, from its first word."""
    return next(line[line.index(command) :] for line in err.splitlines() if command in line)


def pasting(line: str, folder: Path) -> list[str]:
    """What would be run: `holdfast`, and words such as `chmod`, stand for a program that shows its arguments."""
    folder.mkdir()
    return words_of(["bash"], "show " + line, folder)


@pytest.mark.parametrize("name", ["$(touch pwned)", "a; touch pwned", "a\ntouch pwned", "\x1b[2Ja b"])
def test_the_folder_of_a_run_that_cannot_be_read_is_named_as_one_word(name, recorded, command, tmp_path):
    recorded.add()
    (recorded.folders.root / name).mkdir()
    err = command("history", "list", "-o", "table").err
    found = pasting(hinted(err, "holdfast history info"), tmp_path / "shell")
    assert found == ["holdfast", "history", "info", "-r", name]


@pytest.mark.parametrize("name", ["$(touch pwned)", "a; touch pwned", "a\ntouch pwned", "it's"])
def test_a_file_that_a_script_wrote_is_fetched_by_its_name_as_one_word(name, recorded, command, tmp_path):
    begin = ["holdfast", "history", "download"]
    for others, left in (([name], []), ([], [[name, 1]])):
        files = {"collected.json": json.dumps({"left": {"files": left, "count": len(left), "size": 1}})}
        run_id = recorded.add(others=others, files=files)
        shown = command("history", "info", "-o", "table").out
        ended = "\n".join(each.remedy for each in ending_lines(read_run(recorded.folders, run_id)))
        words = ["-r", run_id, "-d", "DIR", "--artifact", name] if others else [run_id, name, "-d", "DIR"]
        for number, text in enumerate((shown, ended)):
            found = pasting(hinted(text, "holdfast history download"), tmp_path / f"{run_id}{number}")
            assert found == begin + words


@pytest.mark.parametrize("name", ["$(touch pwned)", "a; touch pwned", "a b"])
def test_a_target_of_a_clone_is_named_as_one_word(name, command, tmp_path):
    (tmp_path / "aml_config").mkdir()
    (tmp_path / "aml_config" / f"{name}.compute").write_text("type: local\npassword: x\n")
    err = command("submit", "-t", name, "t.py").err
    line = hinted(err, "holdfast computetarget attach").partition("`")[0]
    assert pasting(line, tmp_path / "shell") == ["holdfast", "computetarget", "attach", "…", "--name", name]
    err = command("submit", "-c", name, "t.py").err
    line = hinted(err, "holdfast runconfiguration create")
    assert pasting(line, tmp_path / "shell2") == ["holdfast", "runconfiguration", "create", "-n", name, "-t", name]


@pytest.mark.parametrize("folder", ["/scratch/$(touch pwned)", "/scratch/a b; touch pwned", "/home/me/.holdfast"])
def test_a_folder_that_a_machine_names_is_one_word_for_both_shells(folder, tmp_path):
    """The hint is `ssh HOST chmod go-rwx FOLDER`: the shell here reads it, and then the one over there."""
    error = refused(SshAddress("me@gpu1", "ssh me@gpu1"), "open", folder)
    line = hinted(error.hint, "ssh me@gpu1").partition("; else")[0]
    here = pasting(line, tmp_path / "shell")
    assert here[:2] == ["ssh", "me@gpu1"]
    assert pasting(" ".join(here[2:]), tmp_path / "far") == ["chmod", "go-rwx", folder]


def test_a_file_of_host_keys_that_ssh_names_is_one_word(tmp_path):
    said = (
        "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\n"
        "Offending ED25519 key in /home/me/.ssh/$(touch pwned) hosts:3\nHost key verification failed.\n"
    )
    error = explain(SshAddress("me@gpu1", "ssh me@gpu1"), Said(255, said, ""))
    found = pasting(hinted(error.hint, "sed -i"), tmp_path / "shell")
    assert found == ["sed", "-i", "3d", "/home/me/.ssh/$(touch pwned) hosts"]


def test_the_command_to_reach_a_machine_by_hand_is_quoted(tmp_path):
    by_hand = Destination("fe80::1%$(touch pwned)", 22, "x$y").by_hand()
    assert pasting(by_hand, tmp_path / "shell") == ["ssh", "-p", "22", "x$y@fe80::1%$(touch pwned)"]


@pytest.mark.parametrize("name", ["a\x1b[2J", "a\nb", "caf\udce9", "a b*[c]!", "\u202efdp.exe", "größe"])
def test_a_line_to_paste_into_amlignore_can_be_shown_and_leaves_that_file_out(name, tmp_path):
    (tmp_path / name).write_text("")
    (tmp_path / "other").write_text("")
    warning = warnings.special_file(name)
    assert is_harmless(warning.message) and is_harmless(warning.remedy)
    (tmp_path / ".amlignore").write_text(warning.remedy.split("`")[1] + "\n")
    assert ignore.explain(tmp_path, name, {}) is not None and ignore.explain(tmp_path, "other", {}) is None
