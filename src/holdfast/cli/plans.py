"""A plan as text for people: what `--dry-run` prints. Holes, which only the host can fill, stand as <name>."""

from __future__ import annotations

import shlex

from holdfast.model import Plan, Text
from holdfast.project.durations import format_duration


def plan_text(plan: Plan) -> str:
    lines = [
        f"snapshot     {plan.snapshot}",
        f"directory    {plan.command.directory}",
        f"share        {plan.share}/",
        f"time limit   {'none' if plan.limits.time is None else format_duration(plan.limits.time)}",
        f"grace        {format_duration(plan.limits.grace)}",
        f"secrets      {', '.join(plan.secrets) or 'none'}",
    ]
    if plan.environment is None:
        lines.append("environment  the user's own Python")
    else:
        lines.append(f"environment  {plan.environment.id} ({plan.environment.summary})")
        built = "built if missing" if plan.prepare else "must be there (PrepareEnvironment is false)"
        lines.append(f"             {built}, by:")
        lines += [f"             {_words(step.argv)}" for step in plan.environment.steps]
    lines.append("variables")
    lines += [f"             {name}={_word(value)}" for name, value in sorted(plan.command.environment.items())]
    lines.append(f"command      {_words(plan.command.argv)}")
    return "\n".join(lines) + "\n"


def _words(argv: tuple[Text, ...]) -> str:
    return " ".join(_word(each) for each in argv)


def _word(value: Text) -> str:
    """Holes are shown unquoted, literals as a shell would need them."""
    shown = str(value)
    has_hole = any(not isinstance(part, str) for part in value.parts)
    return shown if has_hole else shlex.quote(shown)
