"""`holdfast check`: what this machine has, and what may keep runs from working."""

from __future__ import annotations

import click

from holdfast.cli.output import Command, Output, output_options


@click.command("check", cls=Command)
@output_options
def command(output: Output) -> None:
    """Look at this machine: system, Pythons, disk, Docker, GPUs, and what is wrong with them.

    Needs no project. A GPU driver that hangs is given up after ten seconds.
    """
    from holdfast.cli.here import surroundings
    from holdfast.cli.machine_page import as_dict, show_facts
    from holdfast.cli.progress import working
    from holdfast.workbench.machines.check import check_this_machine

    with working("looking at this machine; a driver that hangs is given up after ten seconds …"):
        checked = check_this_machine(surroundings())
    if output.query is None and output.chosen_format() == "table":
        show_facts(checked.facts, checked.findings, engine=checked.engine)
    else:
        output.show(as_dict(checked.facts, checked.findings, checked.engine))
