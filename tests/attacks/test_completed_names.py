"""Names that a shell completes: of runs, targets and files. What is put into the line is one word, whatever a cloned
project or a script called it; a name that cannot be shown is not offered."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.completion import quoted, typed
from kit.waiting import wait_for

BREAKS = " \t\n\"'><=;|&(:"
HOSTILE = [
    "zz$(touch pwned)",
    "zz`touch pwned`",
    "zz; touch pwned",
    "zz a b",
    "zz'\"x",
    "zz*",
    "zz&&x",
    "zz>pwned",
    "zz!x",
]
UNSHOWN = ["zz\ntouch pwned", "zz\x1b[2J", "zz\u202ex", "zz\nplain,x"]


@given(
    text=st.text(st.characters(exclude_characters="\0\n", exclude_categories=["Cs", "Cc"])),
    quote=st.sampled_from(["", "'", '"']),
)
def test_what_is_put_into_the_line_is_read_as_the_name(text, quote):
    shown = quoted(text, quote)
    assert shown is not None or "!" in text
    if shown is not None:
        line = typed(f"holdfast logs -r {quote}{shown}", BREAKS)
        assert (line.words, line.last, line.quote) == (["holdfast", "logs", "-r"], text, quote)


@pytest.mark.parametrize(
    ("line", "words", "last", "rest"),
    [
        ("holdfast logs ", ["holdfast", "logs"], "", ""),
        ("holdfast logs -r a\\ b", ["holdfast", "logs", "-r"], "a b", "a b"),
        ("holdfast logs -r 'a b", ["holdfast", "logs", "-r"], "a b", "a b"),
        ('holdfast logs -r "a\\$b', ["holdfast", "logs", "-r"], "a$b", "a$b"),
        ("holdfast logs -r 'a'b", ["holdfast", "logs", "-r"], "ab", "b"),
        ("holdfast logs --run=ab", ["holdfast", "logs"], "--run=ab", "ab"),
        ("holdfast info --artifact a:b", ["holdfast", "info", "--artifact"], "a:b", "b"),
        ("holdfast logs -r a\\", ["holdfast", "logs", "-r"], "a", "a"),
        ("holdfast logs -r '", ["holdfast", "logs", "-r"], "", ""),
    ],
)
def test_a_line_is_read_as_bash_reads_it(line, words, last, rest):
    found = typed(line, BREAKS)
    assert (found.words, found.last, found.last[found.begin :]) == (words, last, rest)


class Shell:
    """A shell at its prompt in a project, where `holdfast` completes as ever, and else only notes its arguments."""

    def __init__(self, leader: int, root: Path) -> None:
        self._leader, self._root = leader, root
        threading.Thread(target=self._drain, daemon=True).start()

    def completed(self, line: str, name: str) -> list[str]:
        """The arguments that `holdfast` gets of a line that ends with the completion key, in a project with a target of
        that name."""
        file, noted = self._root / "aml_config" / f"{name}.compute", self._root / "noted"
        file.write_text("type: local\n")
        os.write(self._leader, f"{line}\t\r".encode())
        read = wait_for(noted.read_bytes, what=f"the shell runs {line!r}, completed")
        file.unlink()
        noted.unlink()
        assert sorted(os.listdir(self._root)) == ["aml_config", "bin"], f"{name!r} did more than name something"
        return [os.fsdecode(each) for each in read.split(b"\0")[:-1]]

    def _drain(self) -> None:
        with contextlib.suppress(OSError):
            while os.read(self._leader, 1 << 16):
                pass


SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(holdfast completion bash)"'),
    "zsh": (["zsh", "-f", "-i"], 'autoload -Uz compinit; compinit -u -D; eval "$(holdfast completion zsh)"'),
}


@pytest.fixture
def shell(tmp_path: Path, needs: Callable[..., None]) -> Iterator[Callable[[str], Shell]]:
    root, started = tmp_path / "project", []
    (root / "bin").mkdir(parents=True)
    (root / "aml_config").mkdir()
    program = root / "bin" / "holdfast"
    program.write_text(
        '#!/bin/sh\nif [ -n "$_HOLDFAST_COMPLETE" ] || [ "$1" = completion ]; then\n'
        f'    exec {sys.executable} -m holdfast "$@"\nfi\n'
        f'printf \'%s\\0\' "$@" > "$0.new" && mv "$0.new" {root}/noted\n'
    )
    program.chmod(0o755)

    def start(name: str) -> Shell:
        needs(name)
        words, prepare = SHELLS[name]
        leader, follower = os.openpty()
        environment = {**os.environ, "PATH": f"{root / 'bin'}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
        process = subprocess.Popen(
            words, cwd=root, env=environment, stdin=follower, stdout=follower, stderr=follower, start_new_session=True
        )
        os.close(follower)
        started.append((process, leader))
        made = Shell(leader, root)
        os.write(leader, f"{prepare}\r".encode())
        return made

    yield start
    for process, leader in started:
        process.kill()
        process.wait()
        os.close(leader)


@pytest.mark.parametrize("name", SHELLS)
def test_a_completed_name_is_one_word_and_runs_nothing(name, shell):
    made = shell(name)
    for target in HOSTILE:
        assert made.completed("holdfast submit -t zz", target) == ["submit", "-t", target]


@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_name_completed_inside_quotes_is_one_word_and_runs_nothing(quote, shell):
    made = shell("bash")
    for target in HOSTILE:
        if "!" not in target or quote == "'":
            assert made.completed(f"holdfast submit -t {quote}zz", target) == ["submit", "-t", target]


@pytest.mark.parametrize("name", SHELLS)
def test_a_name_that_cannot_be_shown_is_not_offered(name, shell):
    made = shell(name)
    for target in UNSHOWN:
        assert made.completed("holdfast submit -t zz", target) == ["submit", "-t", "zz"]


def test_a_value_behind_an_equals_sign_is_completed_too(shell):
    made = shell("bash")
    assert made.completed("holdfast submit --target=zz", "zz a$b") == ["submit", "--target=zz a$b"]


def test_a_name_with_a_colon_is_completed_behind_it(shell):
    made = shell("bash")
    assert made.completed("holdfast submit -t zz:", "zz:a b") == ["submit", "-t", "zz:a b"]


def test_fish_is_given_whole_names_which_it_quotes_itself(tmp_path, needs):
    needs("fish")
    (tmp_path / "aml_config").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "holdfast").write_text(f'#!/bin/sh\nexec {sys.executable} -m holdfast "$@"\n')
    (tmp_path / "bin" / "holdfast").chmod(0o755)
    for target in (*HOSTILE, *UNSHOWN):
        (tmp_path / "aml_config" / f"{target}.compute").write_text("type: local\n")
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    script = "holdfast completion fish | source; complete -C 'holdfast submit -t zz'"
    words = ["fish", "--no-config", "-c", script]
    found = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout
    assert sorted(found.splitlines()) == sorted(HOSTILE)
    assert sorted(os.listdir(tmp_path)) == ["aml_config", "bin"]
