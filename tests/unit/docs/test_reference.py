"""The reference pages say what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import click
import generate_cli_reference
import generate_protocol_reference
import pytest

from holdfast.cli.main import GROUPS, SHORT_FORMS, command_tree
from holdfast.errors import ExitCode
from holdfast.project import compute, container_keys, runconfig

DOCS = Path(__file__).resolve().parents[3] / "docs"
GENERATORS = [generate_cli_reference, generate_protocol_reference]
KEYS = {
    "compute-targets.md": [*compute.KEYS, "type", *compute.SPELLINGS],
    "run-configurations.md": [*runconfig.KEYS, *runconfig.DATA_KEYS, *runconfig.EARLY_KEYS],
}


def page(name: str) -> str:
    return (DOCS / "reference" / name).read_text(encoding="utf-8")


def test_the_page_of_exit_codes_lists_every_code_and_no_other():
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", page("exit-codes.md"), re.MULTILINE)
    assert rows == [(str(code.value), code.name) for code in ExitCode]


@pytest.mark.parametrize("name", KEYS)
def test_the_page_of_a_kind_of_file_lists_every_key_and_no_other(name):
    cells = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", page(name), re.MULTILINE)
    assert sorted(key for cell in cells for key in re.findall(r"\w+", cell)) == sorted(KEYS[name])


def test_the_page_of_compute_targets_names_what_is_refused_and_the_defaults():
    text = page("compute-targets.md")
    assert set(re.findall(r"`(--[a-z-]+)`", text)) <= {*container_keys.REFUSED, "--secret"}
    assert container_keys.DEFAULT_IMAGE in text and container_keys.SHARE in text


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_generated_page_is_what_the_code_says(generator):
    assert generator.main(["--check"]) == 0, "run: make docs"


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_generated_page_that_is_out_of_date_is_noticed(generator, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(generator, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(generator, "reference", lambda: "now\n")
    assert generator.main(["--check"]) == 1
    assert "Run: make docs" in capsys.readouterr().err
    assert generator.main([]) == 0
    assert generator.main(["--check"]) == 0


def test_every_command_has_a_help_of_its_own_and_every_option_a_meaning():
    silent = []
    for path, context in generate_cli_reference.commands(command_tree(), "holdfast", None):
        if not context.command.help:
            silent.append(path)
        for parameter in context.command.params:
            if isinstance(parameter, click.Option) and not parameter.help and not parameter.hidden:
                silent.append(f"{path} {parameter.opts[0]}")
    assert silent == []


def test_every_entry_of_the_table_leads_to_a_command():
    tree = command_tree()
    for name in [*GROUPS, *SHORT_FORMS]:
        assert isinstance(tree.get_command(click.Context(tree), name), click.Command)


def test_links_between_the_pages_lead_somewhere():
    pages = [*DOCS.rglob("*.md"), *DOCS.parent.glob("*.md")]
    dead = []
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target and not (page.parent / target).exists():
                dead.append(f"{page.relative_to(DOCS.parent)}: {target}")
    assert dead == []
