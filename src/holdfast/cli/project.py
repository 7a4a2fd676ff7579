"""`holdfast project`, `holdfast runconfiguration` and `holdfast asset`: the files of a project."""

from __future__ import annotations

from pathlib import Path

import click

from holdfast.cli import terminal
from holdfast.cli.command_context import any_project, current_context, current_project, tell_if_shipped
from holdfast.cli.options import RUN_HELP, run_names, runconfig_names, target_option, template_names
from holdfast.cli.output_format import CliCommand, Column, Output, output_options
from holdfast.errors import ExitCode, UsageError
from holdfast.farside.system.real_paths import real_path
from holdfast.history.run_folder import RunFolders
from holdfast.presenting.run_words import taken_over
from holdfast.project.compute import render_address
from holdfast.project.templates import create_project
from holdfast.project.templates import template_names as templates
from holdfast.shown_text import one_line, pasted
from holdfast.snapshots.restore import require_room, restore_snapshot
from holdfast.snapshots.store import ObjectStore
from holdfast.workbench.machines.target_files import (
    create_runconfig,
    delete_runconfig,
    list_runconfigs,
    list_targets,
    unused_in,
)
from holdfast.workbench.machines.target_owners import OfProject
from holdfast.workbench.records.adoption import examine, take_over


@click.command("create", cls=CliCommand, has_project=False)
@click.argument("name", required=False)
@click.option("-n", "--name", "named", metavar="NAME", help="The same as NAME.")
@click.option(
    "--template",
    default="blank",
    show_default=True,
    metavar="T",
    shell_complete=template_names,
    help="See `holdfast project sample list`.",
)
@click.option(
    "--path",
    "-p",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder to make it in. [default: here]",
)
def create_command(name: str | None, named: str | None, template: str, path: Path | None) -> None:
    """Create the project NAME, in a new folder of that name."""
    if (name is None) == (named is None):
        raise UsageError("A project needs one name.", "holdfast project create mnist")
    chosen = name or named or ""
    context = current_context()
    here = context.directory
    project = create_project((path or here) / chosen, chosen, template, context.home)
    terminal.data(project.root)
    terminal.hint(f"Run it: cd {_typed(project.root, here)} && holdfast submit -c local train.py")


@click.command("list", cls=CliCommand, has_project=False)
@output_options
def sample_list_command(output: Output) -> None:
    """List the templates."""
    rows = [{"name": name, "description": text} for name, text in templates()]
    output.show(rows, [Column("name", "Name"), Column("description", "Description")])


@click.command("restore", cls=CliCommand)
@click.option(
    "--run-id",
    "-r",
    "run",
    required=True,
    metavar="RUN",
    shell_complete=run_names,
    help=RUN_HELP,
)
@click.option(
    "--path",
    "-p",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder to write to. [default: RUN]",
)
@click.option("--overwrite", is_flag=True, help="Into a folder that has files, too: replace those that differ.")
def restore_command(run: str, path: Path | None, overwrite: bool) -> None:
    """Write the project's files as they were when RUN was submitted.

    They go to a new folder, so that the project's own files stay; `--path .` in the project's folder puts them there.
    """
    context = current_context()
    project = current_project(context)
    folders = RunFolders(project.state_directory)
    submission = folders.submission(folders.resolve(run))
    destination = path or context.directory / submission.run_id
    if not overwrite and real_path(destination) != real_path(project.root):
        require_room(destination)
    store = ObjectStore(project.state_directory / "objects")
    count = restore_snapshot(store, submission.snapshot, destination, overwrite)
    terminal.data(destination)
    files = "1 file, as it was" if count == 1 else f"{count} files, as they were"
    terminal.notice(f"{files} for {submission.run_id}.")
    tell_if_shipped(project, destination, context)


@click.command("trust", cls=CliCommand)
@click.option("-y", "--yes", "sure", is_flag=True, help="Do not ask.")
def trust_command(sure: bool) -> int:
    """Take over the runs in a project's `.holdfast` that this account did not make here.

    Holdfast ignores a `.holdfast` that this account did not make here, because a repository can contain one. Use this
    after you copy, restore or move a project to another disk.
    """
    project = current_project()
    found = examine(project)
    if found is None:
        terminal.notice(f"There is nothing to take over in {project.root}.")
        return 0
    terminal.notices(taken_over(found))
    if not sure and not terminal.agreed("Use these runs as your own?", "Taking over runs needs confirmation."):
        return ExitCode.DECLINED
    take_over(project)
    terminal.notice(f"Holdfast now uses {one_line(found.place)}.")
    return 0


def _typed(path: Path, here: Path) -> str:
    try:
        return pasted(str(path.relative_to(here)))
    except ValueError:
        return pasted(str(path))


@click.command("list", cls=CliCommand)
@output_options
def list_targets_command(output: Output) -> None:
    """List the compute targets; a file with problems is named, with them.

    The project's own are in aml_config. Yours, for all projects, are in your folder of settings, and are listed by the
    whole path. If both have one of the same name, the project's is used, and `hides` has the path of yours.
    """
    rows, context = [], current_context()
    for each in list_targets(any_project(context)):
        target = each.target
        rows.append(
            {
                "name": each.name,
                "type": target.type if target else None,
                "address": render_address(target.address, target.port) if target and target.address else None,
                "username": target.username if target else None,
                "file": each.file or "(built in)",
                "hides": each.hides,
            }
        )
        for problem in each.problems:
            terminal.warning(str(problem))
    for file in unused_in(context.account):
        terminal.warning(f"{file} is not used: `local` is built in, and only a project can change it.")
    titles = {"name": "Name", "type": "Type", "address": "Address", "username": "User", "file": "File"}
    if any(each["hides"] for each in rows):
        titles["hides"] = "Hides yours"
    output.show(rows, [Column(key, title) for key, title in titles.items()])


_NAME = click.option(
    "-n", "--name", required=True, metavar="NAME", shell_complete=runconfig_names, help="The stem of NAME.runconfig."
)


@click.command("create", cls=CliCommand)
@_NAME
@target_option("Compute target that it runs on.", required=True, metavar="TARGET")
def create_runconfiguration_command(name: str, target: str) -> None:
    """Write aml_config/NAME.runconfig for TARGET."""
    context = current_context()
    project = current_project(context)
    for file in create_runconfig(OfProject(project, context), project.configuration_folders, name, target):
        terminal.data(file)


@click.command("list", cls=CliCommand)
@output_options
def list_runconfigurations_command(output: Output) -> None:
    """List the run configurations; a file with problems is named, with them."""
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


@click.command("delete", cls=CliCommand)
@_NAME
def delete_runconfiguration_command(name: str) -> None:
    """Remove NAME.runconfig: the project's, else your own. Runs that used it keep their own copy of it."""
    context = current_context()
    for file in delete_runconfig(current_project(context), name, context):
        terminal.notice(f"removed {file}")
