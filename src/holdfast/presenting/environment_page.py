"""Environments on a page: those of a machine, one of them, and what was found when one was checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from holdfast.frozen import asdict
from holdfast.history.queries import iso_utc
from holdfast.presenting.lines import Column, Line, Row, clock_time, counted, short_id
from holdfast.project.quantities import format_size

if TYPE_CHECKING:
    from holdfast.environments.spec_findings import SpecFinding
    from holdfast.hosts.replies import Framework, Installed, ListedEnvironment, Shown
    from holdfast.workbench.environments.suitability import EnvironmentCheck, Remark

PACKAGES_SHOWN, USERS_SHOWN = 40, 5


def listed_as_dict(listed: ListedEnvironment) -> dict[str, Any]:
    return {
        "id": listed.id,
        "state": listed.state,
        "python": listed.python,
        "packages": listed.packages,
        "size": listed.size,
        "own_size": listed.own,
        "last_used": listed.used,
        "last_used_utc": iso_utc(listed.used),
        "built_utc": iso_utc(listed.built) if listed.built else None,
        "build_seconds": listed.seconds,
        "summary": listed.summary,
    }


def shown_as_dict(shown: Shown) -> dict[str, Any]:
    return {
        **listed_as_dict(shown.listed),
        "path": shown.path,
        "installed": list(shown.packages),
        "lock": shown.lock,
        "runs": [each._asdict() for each in shown.users],
    }


def columns(now: float) -> list[Column]:
    return [
        Column("id", "Id", format=short_id),
        Column("python", "Python"),
        Column("packages", "Packages", align="right"),
        Column("size", "Size", align="right", format=format_size),
        Column("own_size", "Own", align="right", format=format_size),
        Column("last_used", "Last use", format=lambda value: clock_time(value, now)),
        Column("state", "State"),
    ]


def rows(shown: Shown, now: float) -> Iterator[Row]:
    listed = shown.listed
    yield "Environment", listed.id
    yield "State", listed.state
    yield "Asked for", listed.summary
    yield "Python", listed.python
    yield "Size", f"{format_size(listed.size)}; removing it frees {format_size(listed.own)}"
    yield "Path", shown.path
    if listed.built:
        yield "Built", f"{clock_time(listed.built, now)}, in {listed.seconds:.1f} s"
    yield "Last use", clock_time(listed.used, now)
    if shown.lock is not None:
        platform, python, chosen = (shown.lock.get(key) for key in ("platform", "python", "backend"))
        backend = f", PyTorch for {chosen}" if chosen else ""
        yield "Resolved for", f"{platform or 'an unknown platform'} with Python {python or 'unknown'}{backend}"
    for user in shown.users[:USERS_SHOWN]:
        yield "Used by", user.run_id + (", which is running" if user.is_alive else "")
    if len(shown.users) > USERS_SHOWN:
        yield "Used by", f"… {len(shown.users) - USERS_SHOWN} more: -o json"
    for package in shown.packages[:PACKAGES_SHOWN]:
        yield "Packages", package
    if len(shown.packages) > PACKAGES_SHOWN:
        yield "Packages", f"… {len(shown.packages) - PACKAGES_SHOWN} more: -o json"


def checked_as_dict(checked: EnvironmentCheck) -> dict[str, Any]:
    return {
        "file": checked.file or None,
        "findings": [asdict(each) | {"file": each.file or None, "line": each.line or None} for each in checked.remarks],
        "fixed": [{"file": each.file, "line": each.line, "replacement": each.replacement} for each in checked.fixed],
        "looked_at": None if checked.there is None else _looked_at(checked.target, checked.there),
        "not_looked_at": None if checked.unreachable is None else checked.unreachable.message,
    }


def remark_line(remark: Remark) -> Line:
    line = f":{remark.line}" if remark.line else ""
    place = f"{remark.file}{line}: " if remark.file else ""
    return Line(f"{place}{remark.severity}: {remark.sentence}", remedy=remark.remedy)


def fixed_text(change: SpecFinding) -> str:
    place = f"{change.file}:{change.line}"
    if not change.original:
        return f"{place}: added `{change.replacement}`"
    if not change.replacement:
        return f"{place}: removed `{change.original}`"
    return f"{place}: `{change.original}` → `{change.replacement}`"


def checked_text(checked: EnvironmentCheck) -> str:
    """How much was found, and what was looked at."""
    errors = sum(1 for each in checked.remarks if each.severity == "error")
    warnings = len(checked.remarks) - errors
    counts = [counted(errors, "error")] * bool(errors) + [counted(warnings, "warning")] * bool(warnings)
    found = ", ".join(counts) if counts else "Nothing else found" if checked.fixed else "Nothing found"
    return f"{found}. Looked at: {'; '.join(_places(checked)) or 'nothing'}."


def _looked_at(target: str, there: Installed) -> dict[str, Any]:
    found = {"target": target, **asdict(there), "gpus": list(there.gpus)}
    del found["findings"]
    return found | {"frameworks": [each._asdict() for each in there.frameworks]}


def _places(checked: EnvironmentCheck) -> Iterator[str]:
    if checked.file:
        unused = "" if checked.is_used else ", which the target makes no use of"
        yield f"{counted(checked.lines, 'line')} of {checked.file}{unused}"
    if checked.there is not None:
        yield _installed(checked.target, checked.there)
        yield from _devices(checked.there)


def _installed(target: str, there: Installed) -> str:
    if not there.is_there:
        return f"nothing on {target}, where the environment is not built (holdfast experiment prepare)"
    whose = f"environment {short_id(there.environment)}" if there.environment else "your own Python"
    frameworks = ", ".join(_framework(each) for each in there.frameworks)
    of_which = f" ({frameworks})" if frameworks else ""
    packages = counted(there.packages, "package")
    return f"{packages} of {whose} on {target}, Python {there.python}{of_which}"


def _framework(framework: Framework) -> str:
    device = "the CPU" if framework.is_cpu else f"CUDA {framework.cuda}" if framework.cuda else ""
    return f"{framework.name} {framework.version}" + (f" for {device}" if device else "")


def _devices(there: Installed) -> Iterator[str]:
    if there.gpus:
        names = ", ".join(dict.fromkeys(there.gpus))
        yield f"{counted(len(there.gpus), 'GPU')} ({names}), driver {there.driver or 'unknown'}"
    elif there.problem:
        yield f"no GPU: {there.problem}"
    elif not there.wants_gpu:
        yield "there is no GPU, so whether a build could use one was not asked (--gpu asks)"
