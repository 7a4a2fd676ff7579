"""The reference pages say what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import click
import generate_cli_reference

from holdfast.cli.main import GROUPS, SHORT_FORMS, command_tree
from holdfast.errors import ExitCode
from holdfast.project import compute, container_keys, docker_arguments, runconfig

DOCS = Path(__file__).resolve().parents[3] / "docs"


def test_the_page_of_exit_codes_lists_every_code_and_no_other():
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", (DOCS / "reference" / "exit-codes.md").read_text(), re.MULTILINE)

    assert rows == [(str(code.value), code.name) for code in ExitCode]


def test_the_page_of_compute_targets_lists_every_key_and_no_other():
    page = (DOCS / "reference" / "compute-targets.md").read_text()
    keys = [
        key
        for cell in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", page, re.MULTILINE)
        for key in re.findall(r"\w+", cell)
    ]

    assert sorted(keys) == sorted([*compute.KEYS, "type", *compute.SPELLINGS])


def test_the_page_of_run_configurations_lists_every_key_and_no_other():
    page = (DOCS / "reference" / "run-configurations.md").read_text()
    keys = [
        key
        for cell in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", page, re.MULTILINE)
        for key in re.findall(r"\w+", cell)
    ]

    assert sorted(keys) == sorted([*runconfig.KEYS, *runconfig.DATA_KEYS, *runconfig.EARLY_KEYS])


def test_the_page_of_compute_targets_names_what_is_refused_and_the_defaults():
    page = (DOCS / "reference" / "compute-targets.md").read_text()
    named = set(re.findall(r"`(--[a-z-]+)`", page))

    assert named <= {*docker_arguments.REFUSED, "--secret"}
    assert container_keys.DEFAULT_IMAGE in page and container_keys.SHARE in page


def test_the_page_of_commands_is_what_the_commands_say():
    assert generate_cli_reference.main(["--check"]) == 0, "run: make docs"


def test_a_page_of_commands_that_is_out_of_date_is_noticed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(generate_cli_reference, "PAGE", tmp_path / "cli.md")
    monkeypatch.setattr(generate_cli_reference, "reference", lambda: "now\n")

    assert generate_cli_reference.main(["--check"]) == 1
    assert "Run: make docs" in capsys.readouterr().err
    assert generate_cli_reference.main([]) == 0
    assert generate_cli_reference.main(["--check"]) == 0


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
