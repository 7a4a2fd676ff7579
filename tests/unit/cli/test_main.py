"""How the command line ends: exit codes, messages on stderr, no unnecessary imports."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE
from typing import Any
from unittest import mock

import click
import pytest

from holdfast.cli import main as entry
from holdfast.cli import terminal
from holdfast.cli.output_format import CliCommand, Group, Output, output_options
from holdfast.errors import ExitCode, ProjectError
from holdfast.project import provenance

from .conftest import Terminal


@pytest.fixture
def run(monkeypatch, capsys):
    """`run(function, *arguments)`: as if `history` had one command `do` that calls the function."""

    def call(action: Callable[[], Any], *arguments: str) -> tuple[int, str, str]:
        group = Group("history", help="History.")

        @group.command("do")
        @click.option("--number", type=int, help="A number.")
        @output_options
        def do(number: int | None, output: Output) -> Any:
            """Do it."""
            del number, output
            return action()

        monkeypatch.setattr(entry, "GROUPS", {**entry.GROUPS, "history": entry.CommandEntry("History.", "made:up")})
        monkeypatch.setattr(entry, "_load", lambda _place: group)
        return entry.main(list(arguments or ("history", "do"))), *capsys.readouterr()

    return call


def raising(problem: BaseException) -> Callable[[], None]:
    def action() -> None:
        raise problem

    return action


@pytest.mark.parametrize("group", ["", "experiment"])
def test_help_shows_every_command_and_imports_none(group):
    words = [group, "--help"] if group else ["--help"]
    code = f"import sys; from holdfast.cli.main import main; main({words}); print(*sorted(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    help_text, _, modules = out.rstrip().rpartition("\n")

    shown = entry.GROUPS[group].commands if group else {**entry.GROUPS, **entry.SHORT_FORMS}
    assert all(f"\n  {name} " in help_text for name in shown) and "..." not in help_text.partition("\nCommands:")[2]
    assert not {"rich", "yaml", "jmespath", "sqlite3", "pathspec"} & set(modules.split())
    assert [name for name in modules.split() if name.startswith("holdfast")] == [
        "holdfast",
        "holdfast.cli",
        "holdfast.cli.early_connection",
        "holdfast.cli.main",
        "holdfast.cli.output_format",
        "holdfast.cli.tables",
        "holdfast.cli.terminal",
        "holdfast.errors",
        "holdfast.farside",
        "holdfast.farside.system",
        "holdfast.farside.system.harmless",
        "holdfast.frozen",
        "holdfast.presenting",
        "holdfast.presenting.lines",
        "holdfast.shown_text",
    ]


def test_the_version_is_one_line(capsys):
    from holdfast import __version__

    assert entry.main(["--version"]) == 0
    assert capsys.readouterr().out == f"holdfast {__version__}\n"


def test_an_unknown_command_names_the_nearest(run, capsys):
    assert entry.main(["experment"]) == ExitCode.USAGE
    assert "Did you mean `experiment`?" in capsys.readouterr().err
    code, _, error = run(lambda: None, "history", "doo")
    assert code == ExitCode.USAGE
    assert error == "error: There is no `holdfast history` command `doo`.\n  Did you mean `do`?\n  Available: do\n"


@pytest.mark.parametrize(
    ("arguments", "first"),
    [
        ("history do --nmber 1", "error: No such option"),
        ("history do --number one", "error: Invalid value for '--number'"),
        ("history do extra", "error: Got unexpected extra argument (extra)"),
        ("history do -o xml", "error: Invalid value for '-o' / '--output'"),
        ("history do --query [?a=", "error: "),
        ("history", "Usage: holdfast history [OPTIONS] COMMAND"),
    ],
)
def test_a_wrong_command_line_is_an_error_of_usage(arguments, first, run):
    code, out, error = run(lambda: None, *arguments.split())
    assert (code, out) == (ExitCode.USAGE, "")
    assert error.startswith(first)


def test_a_line_without_a_command_is_one_too(capsys):
    assert entry.main([]) == ExitCode.USAGE
    assert capsys.readouterr().err.startswith("Usage: holdfast [OPTIONS] COMMAND")


def test_an_error_of_ours_is_a_message_and_its_hint(run):
    code, out, error = run(raising(ProjectError("`x` is no project.", "Make one:\nholdfast project create x")))
    assert (code, out) == (ExitCode.PROJECT, "")
    assert error == "error: `x` is no project.\n  Make one:\n  holdfast project create x\n"


def test_an_unexpected_error_is_one_line_and_says_how_to_see_more(run):
    code, _, error = run(raising(KeyError("a\nb")))
    assert code == ExitCode.INTERNAL
    assert error.splitlines()[0] == "internal error: KeyError: 'a\\nb'"
    assert "--debug" in error
    assert "Traceback" not in error


@pytest.mark.parametrize("arguments", ["history do --debug", "history --debug do", "--debug history do"])
def test_debug_anywhere_on_the_line_shows_the_traceback(arguments, run):
    code, _, error = run(raising(KeyError("a")), *arguments.split())
    assert code == ExitCode.INTERNAL
    assert error.startswith("Traceback")


def test_the_variable_for_debugging_shows_the_traceback(run, monkeypatch):
    monkeypatch.setenv("HOLDFAST_DEBUG", "1")
    assert run(raising(ProjectError("no")))[2].startswith("Traceback")


def test_details_are_shown_only_when_asked_for(run):
    assert run(lambda: terminal.detail("more"))[2] == ""
    assert run(lambda: terminal.detail("more"), "history", "do", "--verbose")[2] == "more\n"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_file_that_cannot_be_written_is_no_internal_error(number, run):
    code, _, error = run(raising(OSError(number, "No room", "/a\nb")))
    assert code == ExitCode.STORAGE
    assert error.startswith("error: A file `/a\\nb` cannot be read or written: No room.\n")


@pytest.mark.parametrize(("result", "code"), [(None, 0), (7, 7), (ExitCode.RUN, 246), (True, 0)])
def test_what_a_command_returns_is_the_exit_code(result, code, run):
    assert run(lambda: result)[0] == code
    assert run(lambda: click.get_current_context().exit(3))[0] == 3, "and how click leaves one"


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), click.Abort()])
def test_an_interrupt_ends_as_shells_have_it(problem, run):
    assert run(raising(problem)) == (130, "", "")


def test_a_broken_pipe_to_another_process_is_not_taken_for_ours(run, monkeypatch):
    monkeypatch.setattr(entry, "_reader_is_gone", lambda: False)
    assert run(raising(BrokenPipeError(errno.EPIPE, "Broken pipe")))[0] == ExitCode.INTERNAL


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_a_reader_that_has_seen_enough_is_no_error(unbuffered):
    """The output is longer than a pipe holds, so the writer still writes when the reader leaves."""
    code = (
        "import sys; from holdfast.cli import main as m; from holdfast.cli.output_format import CliCommand, Output; "
        "m._load = lambda place: CliCommand('x', callback=lambda: Output('json').show(['y' * 2_000_000], [])); "
        "sys.exit(m.main(['check']))"
    )
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=PIPE, stderr=PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", 141)


def typed(line: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    """Runs a line in the shell; `holdfast` in it is this one."""
    line = line.replace("holdfast", 'exec "$0" -m holdfast')
    return subprocess.run(["sh", "-c", line, sys.executable], cwd=folder, capture_output=True, check=False)


def process(folder: Path, *words: str, before: str = "pass") -> subprocess.CompletedProcess[str]:
    """The process behind the `holdfast` script, which exits without cleanup."""
    program = f"import sys; from holdfast.__main__ import run; {before}; sys.argv[0] = 'holdfast'; run()"
    environment = {"PATH": os.defpath, "HOME": str(folder)}
    line = [sys.executable, "-c", program, *words]
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)


def test_all_output_is_written_before_the_process_ends_and_what_was_to_be_done_then_is_done(tmp_path):
    done = process(tmp_path, "--help", before="import atexit, os; atexit.register(os.write, 1, b'restored')")
    assert done.returncode == 0
    assert done.stdout.endswith("Try: holdfast submit train.py\nrestored")


def test_an_error_has_its_exit_code_and_its_words_in_a_process_too(tmp_path):
    done = process(tmp_path, "nothing")
    assert done.returncode == ExitCode.USAGE
    assert done.stderr.startswith("error: ") and "`nothing`" in done.stderr


def test_a_current_folder_that_was_removed_is_no_defect(tmp_path):
    done = typed("mkdir gone && cd gone && rmdir ../gone && holdfast history list", tmp_path)
    assert done.returncode == ExitCode.PROJECT
    assert done.stderr.startswith(b"error: The current folder does not exist any more.")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("holdfast project sample list >&-", 0),
        ("holdfast history info -r none 2>&-", ExitCode.USAGE),
        ("holdfast history info -r none <&- >&- 2>&-", ExitCode.USAGE),
        ("holdfast history info -r none 2>/dev/full", ExitCode.USAGE),
    ],
)
def test_a_stream_that_is_closed_or_full_does_not_change_the_exit_code(line, code, tmp_path):
    done = typed(line, tmp_path)
    assert done.returncode == code
    assert b"Traceback" not in done.stderr


def test_output_that_finds_no_room_is_an_error_of_storage_said_once(tmp_path):
    done = typed("holdfast project sample list >/dev/full", tmp_path)
    assert done.returncode == ExitCode.STORAGE
    assert done.stderr.splitlines()[0].endswith(b": No space left on device.")
    assert b"Exception ignored" not in done.stderr


def test_a_file_is_never_opened_under_the_number_of_a_closed_stream():
    """Output for the terminal would be written into the file."""
    code = "import os; from holdfast.cli import terminal; terminal.provide_streams(); print(os.open('/', 0) > 2)"
    typed = f'exec "$0" -c "{code}" <&- 2>&-'
    done = subprocess.run(["sh", "-c", typed, sys.executable], capture_output=True, text=True, check=False)
    assert done.stdout == "True\n"


def test_names_that_are_not_utf8_can_be_printed(holdfast):
    result = holdfast("caf\udce9")
    assert result.code == ExitCode.USAGE
    assert "`caf\\udce9`" in result.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_for_the_shell(shell, capsys):
    assert entry.main(["completion", shell]) == 0
    captured = capsys.readouterr()
    assert f"_HOLDFAST_COMPLETE={shell}_complete" in captured.out
    assert captured.err == ""


def test_completing_a_command_imports_no_command_module(monkeypatch, capsys):
    monkeypatch.setenv("_HOLDFAST_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_LINE", "holdfast comp")
    monkeypatch.setattr(entry, "_load", raising(AssertionError("imported")))
    assert entry.main([]) == 0
    assert capsys.readouterr().out.split() == ["plain,computetarget", "plain,completion"]


def test_commands_and_groups_inside_a_group_are_ours():
    group = Group("outer")

    @group.group("inner")
    def inner() -> None: ...

    @inner.command("do")
    def do() -> None: ...

    assert isinstance(inner, Group)
    assert isinstance(do, CliCommand)


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"NO_COLOR": ""}, True)],
)
def test_colour_is_shown_where_it_is_wanted(variables, coloured, monkeypatch):
    monkeypatch.delenv("NO_COLOR")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    shown, piped = Terminal(), io.StringIO()
    terminal.write(shown, terminal.Styled("warning:", "warning"), " x")
    terminal.write(piped, terminal.Styled("warning:", "warning"), " x")
    assert shown.getvalue() == ("\x1b[1;33mwarning:\x1b[0m x\n" if coloured else "warning: x\n")
    assert piped.getvalue() == "warning: x\n"


@pytest.mark.parametrize("words", [("history", "list"), ("submit", "--dry-run", "t.py"), ("status",)], ids=" ".join)
def test_a_command_looks_once_whose_the_project_s_folder_is(words, command, monkeypatch, tmp_path):
    (tmp_path / "t.py").write_text("")
    command("submit", "--dry-run", "t.py")  # makes it
    looked = mock.Mock(wraps=provenance.is_made)
    monkeypatch.setattr(provenance, "is_made", looked)
    command(*words)
    assert looked.call_count == 1
