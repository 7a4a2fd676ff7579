"""`environment check`: is the environment right for its machine, does its file still mean something?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli import terminal
from holdfast.cli.here import current_project, surroundings
from holdfast.cli.options import configuration_options
from holdfast.cli.output import Command, Output, output_options
from holdfast.errors import ExitCode, HostError
from holdfast.frozen import asdict

if TYPE_CHECKING:
    from holdfast.environments.findings import Finding
    from holdfast.workbench.environments.checking import Checked, Framework, Looked, Remark


@click.command("check", cls=Command)
@configuration_options
@click.option("--fix", is_flag=True, help="Write the replacements into the files; comments stay.")
@click.option(
    "--gpu", is_flag=True, help="Runs are to use a GPU. [default: if the machine has one, or the configuration asks]"
)
@output_options
def check_command(
    run_configuration: str | None, target: str | None, conda_file: str | None, fix: bool, gpu: bool, output: Output
) -> int:
    """Look for what will not work: names that are gone, wheels for another system, builds that do not fit the GPU.

    Looks at the file of packages, and at what is installed on the target: in the environment that the file has there if
    it is built, or in your own Python where that is used. Ends with 241 when there are errors.
    """
    from holdfast.cli.progress import working
    from holdfast.workbench.environments.checking import Question, check

    around = surroundings()
    question = Question(run_configuration, target, conda_file, fix, gpu)
    with working("looking at the environment …"):
        checked = check(current_project(around), question, around)
    if output.query is not None or output.chosen_format() != "table":
        output.show(_as_dict(checked))
    else:
        for change in checked.fixed:
            terminal.notice(terminal.one_line(_fixed(change)))
        for remark in checked.remarks:
            click.echo(_page(remark))
        terminal.notice(terminal.one_line(_in_all(checked)))
    if checked.unasked is not None:
        terminal.warning(terminal.one_line(f"What is installed was not looked at: {checked.unasked.message}"))
        terminal.hint("\n".join(map(terminal.one_line, checked.unasked.hint.splitlines())))
    if checked.has_errors:
        return ExitCode.CONFIGURATION
    return checked.unasked.exit_code if isinstance(checked.unasked, HostError) else 0


def _as_dict(checked: Checked) -> dict[str, Any]:
    there = checked.there
    return {
        "file": checked.file or None,
        "findings": [asdict(each) | {"file": each.file or None, "line": each.line or None} for each in checked.remarks],
        "fixed": [{"file": each.file, "line": each.line, "replacement": each.replacement} for each in checked.fixed],
        "looked_at": None
        if there is None
        else asdict(there) | {"gpus": list(there.gpus), "frameworks": [asdict(each) for each in there.frameworks]},
        "not_looked_at": None if checked.unasked is None else checked.unasked.message,
    }


def _page(remark: Remark) -> str:
    line = f":{remark.line}" if remark.line else ""
    place = f"{remark.file}{line}: " if remark.file else ""
    lines = [terminal.one_line(f"{place}{remark.severity}: {remark.sentence}")]
    return "\n".join([*lines, *(f"    {terminal.one_line(line)}" for line in remark.remedy.splitlines())])


def _fixed(change: Finding) -> str:
    place = f"{change.file}:{change.line}"
    if not change.original:
        return f"{place}: added `{change.replacement}`"
    if not change.replacement:
        return f"{place}: removed `{change.original}`"
    return f"{place}: `{change.original}` → `{change.replacement}`"


def _in_all(checked: Checked) -> str:
    """How much was found, and in what: who reads it shall know what was not looked at."""
    errors = sum(1 for each in checked.remarks if each.severity == "error")
    warnings = len(checked.remarks) - errors
    counts = [_count(errors, "error")] * bool(errors) + [_count(warnings, "warning")] * bool(warnings)
    found = ", ".join(counts) if counts else "Nothing else found" if checked.fixed else "Nothing found"
    return f"{found}. Looked at: {'; '.join(_places(checked)) or 'nothing'}."


def _places(checked: Checked) -> Iterator[str]:
    if checked.file:
        unused = "" if checked.is_used else ", which the target makes no use of"
        yield f"{_count(checked.lines, 'line')} of {checked.file}{unused}"
    if checked.there is not None:
        yield _installed(checked.there)
        yield from _devices(checked.there)


def _installed(there: Looked) -> str:
    if not there.is_there:
        return f"nothing on {there.target}, where the environment is not built (holdfast experiment prepare)"
    from holdfast.workbench.environments.listing import short

    whose = f"environment {short(there.environment)}" if there.environment else "your own Python"
    frameworks = ", ".join(_framework(each) for each in there.frameworks)
    of_which = f" ({frameworks})" if frameworks else ""
    packages = _count(there.packages, "package")
    return f"{packages} of {whose} on {there.target}, Python {there.python}{of_which}"


def _framework(framework: Framework) -> str:
    device = "the CPU" if framework.is_cpu else f"CUDA {framework.cuda}" if framework.cuda else ""
    return f"{framework.name} {framework.version}" + (f" for {device}" if device else "")


def _devices(there: Looked) -> Iterator[str]:
    if there.gpus:
        names = ", ".join(dict.fromkeys(there.gpus))
        yield f"{_count(len(there.gpus), 'GPU')} ({names}), driver {there.driver or 'unknown'}"
    elif there.problem:
        yield f"no GPU: {there.problem}"
    elif not there.wants_gpu:
        yield "there is no GPU, so whether a build could use one was not asked (--gpu asks)"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
