"""Text for people keeps the rules of `text_rules.py`; and each rule is proved to notice a violation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from architecture import source_rules, text_rules

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "holdfast"
Rule = Callable[[list[source_rules.Module]], list[str]]
RULES: list[Rule] = [text_rules.unguarded_output, text_rules.unquoted_words]
BROKEN = [
    ("unguarded_output", "cli/a.py", "stream.write(name)", "cli.a:1 writes past holdfast.cli.terminal: stream.write"),
    ("unguarded_output", "cli/a.py", "click.echo(name)", "click.echo"),
    ("unguarded_output", "cli/a.py", "print(name)", "print"),
    ("unguarded_output", "cli/a.py", "sys.stdout.buffer.write(name)", "sys.stdout.buffer.write"),
    ("unquoted_words", "hosts/a.py", "f'Try: holdfast status -r {name}'", "has name unquoted in `holdfast status -r`"),
    ("unquoted_words", "hosts/a.py", "f'chmod go-w {place.path}'", "has place.path unquoted"),
    ("unquoted_words", "hosts/a.py", "f'holdfast logs -r {pasted(run)} -t {name}'", "has name unquoted"),
    ("unquoted_words", "farside/a.py", "'Over there: docker pull %s' % name", "has name unquoted"),
    ("unquoted_words", "farside/a.py", "'%s: holdfast logs -r %s' % (why, run)", "has run unquoted"),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.__name__))
def test_text_for_people_keeps_the_rule(rule: Rule) -> None:
    modules = source_rules.read(PACKAGE)
    assert rule(modules) == []
    assert any(module.name == text_rules.DOOR for module in modules)


@pytest.mark.parametrize(("rule", "file", "code", "complaint"), BROKEN)
def test_a_rule_about_text_notices_what_breaks_it(
    rule: str, file: str, code: str, complaint: str, tmp_path: Path
) -> None:
    place = tmp_path / file
    place.parent.mkdir()
    place.write_text(code)
    complaints = getattr(text_rules, rule)(source_rules.read(tmp_path))
    assert len(complaints) == 1 and complaint in complaints[0]


def test_the_rules_about_text_are_silent_about_what_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "cli").mkdir()
    (tmp_path / "cli" / "terminal.py").write_text("stream.write(one_line(name))\n")
    (tmp_path / "cli" / "a.py").write_text(
        "terminal.write(stream, name)\nf'holdfast status -r {pasted(name)}, submitted by {user}'\nf'`{name}` is gone'\n"
        "f'All: holdfast history list\\n{more}'\n"
    )
    modules = source_rules.read(tmp_path)
    assert [rule(modules) for rule in RULES] == [[], []]
