"""`experiment clean` and `experiment diagnostics`: making room, and a zip for bug reports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from holdfast.cli import terminal
from holdfast.cli.command_context import any_project, current_context, current_project
from holdfast.cli.options import DURATION, SIZE, address_option, ignored_target, run_names, run_option, target_option
from holdfast.cli.output_format import CliCommand
from holdfast.cli.screen import READ, Screen, working
from holdfast.errors import ExitCode, HostError, UsageError
from holdfast.farside.system.real_paths import real_path
from holdfast.frozen import replace
from holdfast.history.run_folder import RunFolders
from holdfast.presenting.cleaning_page import cleaning_lines
from holdfast.project.folder import Project
from holdfast.project.provenance import STATE_FOLDER
from holdfast.project.quantities import format_size
from holdfast.workbench.reach import events
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.named_machines import host_of_target
from holdfast.workbench.records import clean, clean_machine
from holdfast.workbench.records.diagnostics import write_diagnostics


@click.command("clean", cls=CliCommand)
@click.option(
    "-r", "--run", "runs", multiple=True, metavar="RUN", shell_complete=run_names, help="This run; may be repeated."
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Every ended run of this project, and what no run there needs any more: stored files, old versions.",
)
@click.option(
    "--all-projects",
    is_flag=True,
    help="Like --all, for every project with runs on the machine of -t or --address. Lists them and asks first.",
)
@target_option("Only what is on this compute target.")
@address_option
@click.option(
    "--environments",
    is_flag=True,
    help="Also built environments that no run is using; with --all the package cache too. Alone: only these.",
)
@click.option(
    "--older-than",
    type=DURATION,
    metavar="DURATION",
    help="With --environments: only those that were not used for so long, e.g. 30d.",
)
@click.option(
    "--keep",
    type=SIZE,
    metavar="SIZE",
    help="With --environments: those used longest ago, until all and the package cache take less, e.g. 20GB.",
)
@click.option("--discard-outputs", is_flag=True, help="Also runs with files that only their machine has.")
@click.option("-y", "--yes", "sure", is_flag=True, help="Do not ask before all environments are removed.")
def clean_command(
    runs: tuple[str, ...],
    everything: bool,
    all_projects: bool,
    target: str | None,
    address: str | None,
    environments: bool,
    older_than: float | None,
    keep: int | None,
    discard_outputs: bool,
    sure: bool,
) -> int:
    """Remove what ended runs left on their machine: their working folders.

    The history stays, with outputs, logs and metrics. A living run is never touched, nor is the folder that a
    project's runs share. A run with files that only its machine has is kept; on a terminal, clean asks. A machine that
    cannot be reached does not keep the others from it; it is an error where it was named, by -t or by one of its runs.

    Outside a project, --all means --all-projects, and targets are your own. Runs of projects that are not on this
    machine are kept and listed: what they wrote may exist only there.
    """
    if (runs and (everything or all_projects)) or not (runs or everything or all_projects or environments):
        raise UsageError(
            "Say what to clean.",
            "holdfast experiment clean --run RUN, or --all for every ended run, or --environments for these alone.",
        )
    if not environments and (older_than is not None or keep is not None):
        raise UsageError("--older-than and --keep are for environments.", "Add --environments.")
    context = current_context()
    wanted = clean.Rubbish(
        None if everything or all_projects else runs,
        target,
        environments,
        discard_outputs,
        clean.CleanLimits(older_than, keep),
    )
    project = any_project(context)
    if all_projects or address is not None or (not runs and _is_outside(project, context)):
        return _clean_anywhere(project, wanted, address, sure, context)
    if environments and everything and not sure and not _is_sure(target):
        return ExitCode.DECLINED
    kept = _tell(clean.clean(project, wanted, context))
    if kept and terminal.can_ask() and terminal.agreed(_what_is_lost(len(kept)), "", "Kept."):
        _tell(clean.clean(project, clean.Rubbish(tuple(kept), target, discard=True), context))
    return 0


def _is_outside(project: Project, context: Context) -> bool:
    """Whether the command was typed in no project. Raises ProjectError for one whose own folder is not to be used."""
    if project.id or not project.is_bare:
        return False
    if real_path(project.root / STATE_FOLDER) != real_path(context.home):
        _ = project.state_directory
    return True


def _clean_anywhere(project: Project, wanted: clean.Rubbish, address: str | None, sure: bool, context: Context) -> int:
    name = address or wanted.target
    if wanted.runs:
        hint = "Leave out --address. For a run of another project: --project DIR"
        raise UsageError("A run already has its machine.", hint)
    if wanted.runs is not None:
        named = clean_machine.clean_environments_of(host_of_target(project, wanted.target, context, address), wanted)
        _tell(named if name else clean_machine.clean_environments(project, wanted, context))
        return 0
    if name is None:
        hint = "Add -t NAME, or --address HOST; `-t local` is this machine."
        raise UsageError("To clean for all projects, name one machine.", hint)
    machine = clean_machine.Machine(name, host_of_target(project, wanted.target, context, address))
    with working(f"looking at the runs on {name} …"):
        found = clean_machine.survey(machine, context)
    terminal.notices(cleaning_lines(machine, found, wanted))
    if not sure and not terminal.agreed(f"Clean {name}?", "Cleaning a whole machine needs confirmation."):
        return ExitCode.DECLINED
    kept = _tell(clean_machine.clean_machine(machine, found, wanted, context))
    if kept and not wanted.discard and terminal.can_ask() and terminal.agreed(WHAT_ONLY_IS_THERE, "", "Kept."):
        _tell(clean_machine.clean_machine(machine, found, replace(wanted, discard=True), context))
    return 0


WHAT_ONLY_IS_THERE = "Also remove files that only that machine has?"


def _what_is_lost(count: int) -> str:
    runs = "this run, with files" if count == 1 else f"these {count} runs, with files"
    return f"Remove {runs} that only the machine has?"


def _tell(happening: Iterator[events.Event]) -> list[str]:
    """Returns the runs that were kept because nobody else has what they wrote."""
    screen, sizes, kept = Screen(only=(*READ, events.Removed)), list[int](), list[str]()
    try:
        for event in happening:
            screen.show(event)
            if isinstance(event, events.Removed) and event.is_only_copy:
                kept.append(event.name)
            elif isinstance(event, events.Removed) and not event.kept:
                sizes.append(event.size)
    except HostError:
        screen.finish_line()
        if sizes:
            terminal.notice(f"{len(sizes)} removed, {format_size(sum(sizes))} freed; not all:")
        raise
    screen.finish_line()
    terminal.notice(f"{len(sizes)} removed, {format_size(sum(sizes))} freed.")
    return kept


def _is_sure(target: str | None) -> bool:
    where = f"on {target}" if target else "on every machine that has runs of this project"
    terminal.notice(f"Environments and the package cache {where} are shared: other projects may use them.")
    return terminal.agreed(
        "Remove those that no run is using now?", "Removing environments of all projects needs confirmation."
    )


@click.command("diagnostics", cls=CliCommand)
@run_option()
@ignored_target()
@click.option("--file", "destination", type=click.Path(path_type=Path), help="Where to write it. [default: RUN.zip]")
def diagnostics_command(run: str, destination: Path | None) -> None:
    """Write a zip for a bug report: record, plan, logs, versions; no secrets."""
    context = current_context()
    project = current_project(context)
    run_id = RunFolders(project.state_directory).resolve(run)
    path = destination or context.directory / f"{run_id}.zip"
    names = write_diagnostics(project, run_id, path, context)
    terminal.data(path)
    terminal.notice(f"In it: {', '.join(names)}. The script's output is included: read it before you share it.")
