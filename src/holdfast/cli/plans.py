"""A plan as text for people: what `--dry-run` prints. Holes, which only the host can fill, stand as <name>."""

from __future__ import annotations

import shlex

from holdfast.plan import EnvironmentPlan, Plan, Text
from holdfast.project.durations import format_duration


def plan_text(plan: Plan) -> str:
    lines = [
        f"snapshot     {plan.snapshot}",
        *([] if plan.command is None else [f"directory    {plan.command.directory}"]),
        f"share        {plan.share}/",
        f"time limit   {'none' if plan.limits.time is None else format_duration(plan.limits.time)}",
        f"grace        {format_duration(plan.limits.grace)}",
        f"secrets      {', '.join(plan.secrets) or 'none'}",
    ]
    if plan.environment is None:
        lines.append("environment  the user's own Python")
    else:
        lines.append(f"environment  {plan.environment.summary}")
        lines.append(f"             {_locked(plan.environment)}, {_built(plan.environment, plan.prepare)}")
    if plan.command is not None:
        variables = sorted(plan.command.environment.items())
        lines += ["variables", *(f"             {name}={_word(value)}" for name, value in variables)]
        lines.append(f"command      {_words(plan.command.argv)}")
    return "\n".join(lines) + "\n"


def _locked(environment: EnvironmentPlan) -> str:
    if environment.is_exact:
        return "exactly the packages of the other run"
    known = ", ".join(f"{lock['platform']} with Python {lock['python']}" for lock in environment.locks)
    return f"resolved for {known}" if known and not environment.upgrade else "resolved when it is built"


def _built(environment: EnvironmentPlan, may_build: bool) -> str:
    if not may_build:
        return "must be there (PrepareEnvironment is false)"
    return "built anew" if environment.rebuild else "built if missing"


def _words(argv: tuple[Text, ...]) -> str:
    return " ".join(_word(each) for each in argv)


def _word(value: Text) -> str:
    """Holes are shown unquoted, literals as a shell would need them."""
    shown = str(value)
    has_hole = any(not isinstance(part, str) for part in value.parts)
    return shown if has_hole else shlex.quote(shown)
