"""Before a run: which ignored files ship all the same, and a word about those that stay here. Each group is named once
in a project; on a terminal the user says whether it ships."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

from holdfast.frozen import replace
from holdfast.history.run_folder import RunFolders
from holdfast.project.include_wishes import as_typed, checked_include
from holdfast.shown_text import pasted
from holdfast.snapshots.ignored_answers import read_answers, write_answers
from holdfast.snapshots.ignored_groups import Ignored, IgnoredGroup, find_ignored, options, summary
from holdfast.snapshots.include_globs import Include
from holdfast.snapshots.take import Snapshot
from holdfast.workbench.reach import events
from holdfast.workbench.reach.context import Context
from holdfast.workbench.submitting.run_plan import Intent

NOT_NOW, ALWAYS, NEVER = "no", "yes, for all runs of this project", "no, and never ask in this project again"


def included(intent: Intent) -> Include:
    """What the command line, the run configuration and an earlier answer name."""
    typed = tuple(checked_include(each, intent.job.folder) for each in intent.request.include)
    agreed = () if intent.request.prepare_only else read_answers(intent.project.state_directory).shipped
    return Include(typed, intent.configuration.run.include, agreed)


def offer(intent: Intent, snapshot: Snapshot, context: Context) -> Generator[events.Event, None, tuple[str, ...]]:
    """Name the groups that were not named before. Globs of those that the user wants shipped from now on: the snapshot
    has to be taken again with them."""
    project, answers = intent.project, read_answers(intent.project.state_directory)
    if answers.is_quiet:
        return ()
    ignored = find_ignored(project.root, snapshot.paths, answers.named)
    targets = [f"{each.target}/" for each in intent.configuration.run.data]
    groups = [each for each in ignored.groups if not any(f"{each.folder}/".startswith(target) for target in targets)]
    if not groups:
        return ()
    ignored = replace(ignored, groups=tuple(groups))
    entries = {entry for each in ignored.groups for entry in each.entries}
    answers = replace(answers, named=answers.named | entries)
    small = [each for each in ignored.groups if not each.is_large]
    reply = yield from _tell(ignored, small, intent.job.folder, context)
    globs = [glob for each in small for glob in each.globs] if reply == ALWAYS else []
    answers = replace(answers, shipped=(*answers.shipped, *globs), is_quiet=reply == NEVER)
    if reply is not None and not write_answers(project.state_directory, answers):
        yield events.Warned("Could not save your answer.", f"Check the disk of {project.state_directory}.")
    yield from _confirmed(globs, reply)
    return tuple(globs)


def not_again(intent: Intent) -> Iterator[events.Event]:
    """Ignored files that the run had from which this one goes on, and which this one lacks: a script that finds its
    checkpoint but not its vocabulary may go on without a word."""
    if intent.earlier is None:
        return
    now = included(intent)
    has = {*now.typed, *now.written, *now.agreed}
    before = RunFolders(intent.project.state_directory).includes(intent.earlier.run)
    lacks = [glob for glob in before if glob not in has]
    if lacks:
        ship = options(lacks, intent.job.folder)
        yield events.Noted(f"{intent.earlier.run} had ignored files that this run lacks. To ship them: {ship}")


def _tell(
    ignored: Ignored, small: Sequence[IgnoredGroup], folder: str, context: Context
) -> Generator[events.Event, None, str | None]:
    """The user's reply; None if there was none."""
    for group in ignored.groups:
        if group.is_large:
            words = f"{as_typed(group.data_folder, folder)}:{group.data_folder}"
            yield events.Noted(f"{summary([group])}. To send the folder once per machine: --data {pasted(words)}")
    if not small:
        return NOT_NOW
    globs = [glob for each in small for glob in each.globs]
    them = "it" if sum(each.count for each in small) == 1 else "them"
    text = summary(small, ignored.is_part)
    if context.choose is None:
        yield events.Noted(f"{text}. To ship {them}: {options(globs, folder)}")
        return NOT_NOW
    return context.choose(f"{text}. Ship {them}?", (NOT_NOW, ALWAYS, NEVER))


def _confirmed(globs: Sequence[str], reply: str | None) -> Iterator[events.Event]:
    if globs:
        lines = ", ".join(f"`/{glob.removeprefix('/')}`" for glob in globs)
        yield events.Noted(f"Shipped from now on. To stop that, write into .amlignore: {lines}")
    elif reply == NEVER:
        yield events.Noted("This project's ignored files are not named again. To ship some: --include GLOB")
