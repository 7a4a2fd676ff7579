"""`holdfast runconfiguration`: create, list, delete."""

from __future__ import annotations

import click

from holdfast.cli import terminal
from holdfast.cli.here import current_project
from holdfast.cli.options import runconfig_names, target_names
from holdfast.cli.output import Column, Group, Output, output_options

group = Group("runconfiguration", help="Create, list and delete run configurations.")

_NAME = click.option(
    "-n", "--name", required=True, metavar="NAME", shell_complete=runconfig_names, help="The stem of NAME.runconfig."
)


@group.command("create")
@_NAME
@click.option(
    "-t",
    "--target",
    required=True,
    metavar="TARGET",
    shell_complete=target_names,
    help="Compute target that it runs on.",
)
def create_command(name: str, target: str) -> None:
    """Write aml_config/NAME.runconfig for TARGET."""
    from holdfast.workbench.machines.configuring import create_runconfig

    for file in create_runconfig(current_project(), name, target):
        click.echo(file)


@group.command("list")
@output_options
def list_command(output: Output) -> None:
    """List the run configurations; a file with problems is named, with them."""
    from holdfast.workbench.machines.configuring import list_runconfigs

    rows = []
    for each in list_runconfigs(current_project()):
        run = each.run
        rows.append(
            {
                "name": each.name,
                "target": run.target if run else None,
                "framework": run.framework if run else None,
                "file": each.file or "(built in)",
            }
        )
        for problem in each.problems:
            terminal.warning(str(problem))
    columns = [
        Column("name", "Name"),
        Column("target", "Target"),
        Column("framework", "Framework"),
        Column("file", "File"),
    ]
    output.show(rows, columns)


@group.command("delete")
@_NAME
def delete_command(name: str) -> None:
    """Remove aml_config/NAME.runconfig. Runs that used it keep their own copy of it."""
    from holdfast.workbench.machines.configuring import delete_runconfig

    for file in delete_runconfig(current_project(), name):
        terminal.notice(f"removed aml_config/{file}")
