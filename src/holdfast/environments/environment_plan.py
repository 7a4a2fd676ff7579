"""From a spec to the plan of its environment: what is asked for, and which locks are known. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.environments.project_locks import Lock
from holdfast.frozen import dataclass
from holdfast.plan import EnvironmentPlan, Hole, Text, text
from holdfast.project.environment_spec import EnvironmentSpec, Requirement, is_option


@dataclass(frozen=True)
class Wishes:
    """`exact`: the lock of another run, which is used as it is; `upgrade`: resolve anew; `rebuild`: build anew."""

    exact: Lock | None = None
    upgrade: bool = False
    rebuild: bool = False


def plan_environment(
    spec: EnvironmentSpec, digest: str, interpreter: Text, uv: Text, locks: Sequence[Lock], wishes: Wishes
) -> EnvironmentPlan:
    """`digest` is the spec's; `interpreter` the active Python, for a spec that pins none."""
    lines = [each for each in spec.pip if not is_option(each)]
    options = [each.text for each in spec.pip if is_option(each)]
    return EnvironmentPlan(
        spec=digest if wishes.exact is None else str(wishes.exact["spec"]),
        summary=summary_of(spec),
        python=spec.python,
        interpreter=interpreter,
        requirements=_placed(lines),
        constraints=_placed(spec.constraints),
        options=tuple(options),
        arguments=spec.arguments,
        channels=spec.channels,
        conda=_placed(spec.conda),
        locked=spec.locked,
        locks=(wishes.exact,) if wishes.exact is not None else tuple(locks),
        exact=wishes.exact is not None,
        upgrade=wishes.upgrade,
        rebuild=wishes.rebuild,
        files=text(Hole.WORK),
        uv=uv,
        tools=(),
        secrets=(),
    )


def summary_of(spec: EnvironmentSpec, unpinned: str = "as active") -> str:
    """For people, in one line. `unpinned` says which Python, where the spec does not."""
    lines = [each.text for each in (*spec.conda, *spec.pip) if not is_option(each)]
    names = [line.partition("--hash=")[0].rstrip(" \\\n") for line in lines]
    shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return f"Python {spec.python or unpinned}: {shown or 'no packages'}"


def _placed(requirements: Sequence[Requirement]) -> tuple[tuple[str, str], ...]:
    return tuple((each.text, f"{each.file}:{each.line}") for each in requirements)
