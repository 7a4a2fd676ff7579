"""A plan in lines for people: what `--dry-run` prints. Holes, which only the host can fill, stand as <name>."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from holdfast.codec import encode
from holdfast.farside.engines.engine import job_script
from holdfast.farside.gpu.request import GpuRequest
from holdfast.plan import DIRECT, ContainerPlan, EnvironmentPlan, Plan, Text
from holdfast.project.gpu_wishes import planned_lines
from holdfast.project.quantities import format_duration


def plan_lines(plan: Plan) -> list[str]:
    lines = [
        f"snapshot     {plan.snapshot}",
        *([] if plan.command is None else [f"directory    {plan.command.directory}"]),
        f"share        {plan.share}/",
        f"time limit   {'none' if plan.limits.time is None else format_duration(plan.limits.time)}",
        f"grace        {format_duration(plan.limits.grace)}",
        f"secrets      {', '.join(plan.secrets) or 'none'}",
    ]
    if plan.earlier is not None:
        lines.append(f"from         {plan.earlier.path or 'all'} of {plan.earlier.run}")
    lines += _two_columns("data", (f"{each.target} is {_word(each.source)}" for each in plan.data))
    if plan.command is not None:
        lines += _two_columns("GPUs", _gpus(plan.gpu))
    if plan.container is not None:
        lines += _two_columns("container", _container(plan.container, plan.share))
    if plan.environment is None:
        own = "the user's own Python" if plan.container is None else f"the image's own Python ({plan.container.python})"
        lines.append(f"environment  {own}")
    else:
        lines.append(f"environment  {plan.environment.summary}")
        lines.append(f"             {_locked(plan.environment)}, {_built(plan.environment, plan.prepare)}")
    if plan.engine.name != DIRECT:
        lines += _two_columns("engine", (plan.engine.name, *job_script(encode(plan)).splitlines()))
    if plan.command is not None:
        variables = sorted(plan.command.environment.items())
        lines += ["variables", *(f"             {name}={_word(value)}" for name, value in variables)]
        lines.append(f"command      {_words(plan.command.argv)}")
    return lines


def _container(container: ContainerPlan, share: Text) -> Iterator[str]:
    named = container.known_as
    yield f"{named}, exactly {container.image}" if container.is_exact else named
    yield f"called {container.name}"
    yield _GPUS[container.gpus]
    yield f"shared memory: {container.shm or 'half of what the machine has'}"
    yield f"{_word(share)}/ is found at {container.share}"
    for volume in container.volumes:
        right = "" if volume.is_writable else ", read-only"
        yield f"{_word(volume.source)} is found at {volume.target}{right}"
    yield f"options: {_words(container.options)}"


_GPUS = {
    True: "with the GPUs",
    False: "without GPUs",
    None: "without GPUs: nvidiaDocker is not written",
}


def _gpus(plan: GpuRequest) -> Iterator[str]:
    by = f" ({plan.by.replace('`', '')})" if plan.by else ""
    match plan.gpus:
        case None:
            yield "as the script finds them" + (f", one is required{by}" if plan.require else "")
        case 0:
            yield f"none: they are hidden from the script{by}"
        case "all":
            yield f"all, for this run alone{by}"
        case _:
            yield f"{plan.gpus}, for this run alone{by}"
    if plan.require and plan.gpus is not None:
        yield "required: without one the script is not started"
    yield from planned_lines(plan)


def _two_columns(title: str, rows: Iterable[str]) -> Iterator[str]:
    for row in rows:
        yield f"{title:13}{row}"
        title = ""


def _locked(environment: EnvironmentPlan) -> str:
    if environment.exact:
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
