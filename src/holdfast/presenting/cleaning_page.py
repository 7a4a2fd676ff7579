"""What cleaning a whole machine is about, before it is done."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.presenting.lines import counted
from holdfast.workbench.records.clean import Rubbish
from holdfast.workbench.records.clean_machine import Machine, ProjectThere

_SHOWN = 20


def cleaning_lines(machine: Machine, found: Sequence[ProjectThere], rubbish: Rubbish) -> list[str]:
    """One line for each project, and what else goes."""
    lines = []
    for each in found[:_SHOWN]:
        name = each.name or "without a name"
        if each.project is not None:
            lines.append(f"  {name}, {each.project.root}: {counted(len(each.ours), 'run')}")
        else:
            kept = "removed too" if rubbish.discard else "kept"
            lines.append(f"  {name}, not on this machine: {counted(len(each.strangers), 'run')}, {kept}")
    if len(found) > _SHOWN:
        lines.append(f"  and {len(found) - _SHOWN} more projects")
    intro = f"This removes ended runs on {machine.name} whose files are at home:"
    if rubbish.discard:
        intro = f"This removes ended runs on {machine.name}, with files that only it has:"
    also = "Stored files and old versions that no run needs go too"
    also += ", and environments and the package cache." if rubbish.environments else "."
    return [*([intro, *lines] if lines else [f"{machine.name} has no runs."]), also]
