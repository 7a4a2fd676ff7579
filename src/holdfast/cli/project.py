"""`holdfast project`: create one from a template, restore a run's code."""

from __future__ import annotations

from pathlib import Path

import click

from holdfast.cli import terminal
from holdfast.cli.here import current_project
from holdfast.cli.options import RUN_HELP, run_names, template_names
from holdfast.cli.output import Column, Group, Output, output_options
from holdfast.errors import UsageError

group = Group("project", help="Create projects, restore a run's code.")
sample = Group("sample", help="What projects can be made from.")
group.add_command(sample)


@group.command("create")
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
    from holdfast.cli.here import surroundings
    from holdfast.project.templates import create_project

    if (name is None) == (named is None):
        raise UsageError("A project needs one name.", "holdfast project create mnist")
    chosen = name or named or ""
    here = surroundings().directory
    project = create_project((path or here) / chosen, chosen, template)
    click.echo(project.root)
    terminal.hint(f"Run it: cd {_typed(project.root, here)} && holdfast submit -c local train.py")


@sample.command("list")
@output_options
def sample_list_command(output: Output) -> None:
    """List the templates."""
    from holdfast.project.templates import template_names

    rows = [{"name": name, "description": text} for name, text in template_names()]
    output.show(rows, [Column("name", "Name"), Column("description", "Description")])


@group.command("restore")
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
    from holdfast.cli.here import surroundings
    from holdfast.cli.shipping import tell_if_shipped
    from holdfast.history.folder import RunFolders
    from holdfast.snapshots.restore import require_room, restore_snapshot
    from holdfast.snapshots.store import ObjectStore

    around = surroundings()
    project = current_project(around)
    folders = RunFolders(project.state_directory)
    submission = folders.submission(folders.resolve(run))
    destination = path or around.directory / submission.run_id
    if not overwrite and destination.resolve() != project.root.resolve():
        require_room(destination)
    store = ObjectStore(project.state_directory / "objects")
    count = restore_snapshot(store, submission.snapshot, destination, overwrite)
    click.echo(destination)
    files = "1 file, as it was" if count == 1 else f"{count} files, as they were"
    terminal.notice(f"{files} for {submission.run_id}.")
    tell_if_shipped(project, destination, around)


def _typed(path: Path, here: Path) -> str:
    import shlex

    try:
        return shlex.quote(str(path.relative_to(here)))
    except ValueError:
        return shlex.quote(str(path))
