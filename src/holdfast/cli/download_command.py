"""Files of runs brought to where they are wanted: `history download`, `promote` and `import`, `asset download`."""

from __future__ import annotations

from pathlib import Path

import click

from holdfast.cli import terminal
from holdfast.cli.command_context import current_context, current_project, tell_if_shipped
from holdfast.cli.find_run import up_to_date
from holdfast.cli.options import (
    artifact_names,
    download_options,
    run_option,
    run_or_artifact_names,
    target_of_run,
    target_option,
)
from holdfast.cli.output_format import CliCommand
from holdfast.cli.screen import Screen, drain
from holdfast.errors import StorageError, UsageError
from holdfast.history.run_folder import RunFolders
from holdfast.presenting.run_words import fetch_command, left_words
from holdfast.project.folder import Project
from holdfast.project.quantities import format_size
from holdfast.shown_text import pasted
from holdfast.workbench.following.outputs import bring_outputs_home
from holdfast.workbench.reach.context import Context
from holdfast.workbench.records.artifacts import Copied, DownloadRequest, download
from holdfast.workbench.records.import_runs import import_runs
from holdfast.workbench.records.promotion import download_asset, promote


@click.command("download", cls=CliCommand)
@run_option(required=False, otherwise="the first word")
@target_of_run()
@download_options(otherwise="a new folder, named as the run")
@click.option(
    "--artifact",
    "named",
    multiple=True,
    metavar="PATH",
    shell_complete=artifact_names,
    help="The same as PATH; may be repeated.",
)
@click.argument("words", nargs=-1, metavar="[RUN] [PATH]...", shell_complete=run_or_artifact_names)
def download_command(
    run: str | None,
    target: str | None,
    directory: Path | None,
    overwrite: bool,
    named: tuple[str, ...],
    words: tuple[str, ...],
) -> None:
    """Copy the files of a run to a folder. Each keeps its path in the project: DIR/outputs/model.pkl.

    PATH is a file, a folder (outputs/plots/), a glob ("*.pkl"), or `.` for everything, also what only the run's machine
    has. Without PATH, it is what is at home. In the project's top, `-d .` puts files where a run by hand would. What
    the run wrote to ../logs goes to DIR/above/1/logs, or to ../logs if DIR is the project's top and PATH names it.
    """
    if run is None and not words:
        raise UsageError("Say which run.", "holdfast history download RUN, or `last` for the newest.")
    run, wanted = (words[0], words[1:]) if run is None else (run, words)
    context = current_context()
    project = current_project(context)
    (run_id,) = up_to_date(project, run, target=target, whole=True)
    wanted, destination = (*wanted, *named), directory or Path(run_id)
    if not wanted:
        _bring_what_was_left(project, run_id, context)
    count = _copy(project, DownloadRequest(run_id, destination, wanted, overwrite), context)
    left = RunFolders(project.state_directory).left_there(run_id)
    if left.count and not wanted:
        terminal.hint(f"Only on the run's machine: {left_words(left)}\nTo fetch it: {fetch_command(run_id, left)}")
    if count:
        tell_if_shipped(project, destination, context)


def _bring_what_was_left(project: Project, run_id: str, context: Context) -> None:
    """Of a run that was submitted with `--no-outputs`."""
    screen = Screen()
    were_left = RunFolders(project.state_directory).outputs_are_left(run_id)
    for news in bring_outputs_home(project, run_id, context):
        screen.show(news)
    screen.finish_line()
    if were_left:
        terminal.notice(f"The outputs are at home now: .holdfast/runs/{run_id}; this is a copy of them:")


def _copy(project: Project, asked: DownloadRequest, context: Context) -> int:
    """How many files were copied."""
    count = total = 0
    try:
        for event in download(project, asked, context):
            if isinstance(event, Copied):
                terminal.data(event.destination)
                count, total = count + 1, total + event.size
            else:
                why = "it is a link to a folder" if event.to_folder else "it links to nothing that the run wrote"
                terminal.warning(f"Skipped `{event.path}`: {why}.")
    except StorageError:
        terminal.notice(f"{count} {'file' if count == 1 else 'files'}, {format_size(total)}; not all:")
        raise
    terminal.notice(f"{count} {'file' if count == 1 else 'files'}, {format_size(total)}.")
    return count


@click.command("promote", cls=CliCommand)
@run_option()
@click.option(
    "-ap",
    "--artifact-path",
    required=True,
    metavar="PATH",
    shell_complete=artifact_names,
    help="File of the run: outputs/model.pkl.",
)
@click.option("-n", "--name", required=True, metavar="NAME", help="Name of the asset: assets/NAME.link is written.")
def promote_command(run: str, artifact_path: str, name: str) -> None:
    """Give a file of a run a name that is committed with the code."""
    project = current_project()
    done = promote(project, RunFolders(project.state_directory).resolve(run), artifact_path, name)
    terminal.data(done.file.relative_to(project.root))
    if done.replaced is not None:
        terminal.notice(f"It led to `{done.replaced.artifact}` of run {done.replaced.run_id} before.")
    terminal.hint(f"Fetch it: holdfast asset download -l {pasted(str(done.file.relative_to(project.root)))} -d DIR")


@click.command("import", cls=CliCommand)
@target_option("Compute target to ask.", required=True)
@click.option("--project", "wanted", metavar="PROJECT", help="Of this project, by name or id. [default: this one]")
@click.option("--all", "everything", is_flag=True, help="Of every project that has runs there.")
def import_command(target: str, wanted: str | None, everything: bool) -> None:
    """Bring the runs that were submitted from other machines: their records, code, logs, metrics and small outputs.

    A run that is here already is left alone. Large outputs stay there until `history download` or `logs -f`.
    """
    if wanted is not None and everything:
        raise UsageError("--all takes every project, and --project one.", "Leave out one of them.")
    context = current_context()
    project = current_project(context)
    folders = RunFolders(project.state_directory)
    before = folders.names()
    drain(import_runs(project, target, wanted, everything, context))
    count = len(folders.names() - before)
    terminal.notice(f"{count} {'run' if count == 1 else 'runs'} imported from {target}.")


@click.command("download", cls=CliCommand)
@click.option(
    "-l",
    "--link-file",
    required=True,
    metavar="LINK",
    type=click.Path(path_type=Path),
    help="The link that `history promote` wrote: assets/NAME.link.",
)
@download_options()
def download_asset_command(link_file: Path, directory: Path, overwrite: bool) -> None:
    """Copy the file that a link leads to, checked against the digest in the link."""
    terminal.data(download_asset(current_project(), link_file, directory, overwrite))
