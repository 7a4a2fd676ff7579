"""What differs between two runs, as far as their records tell. Their code is compared by `snapshots`."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Mapping
from typing import Any

from holdfast.frozen import dataclass
from holdfast.given_files import GivenData
from holdfast.history.queries import duration_text
from holdfast.model import Run, Submission, UseState


@dataclass(frozen=True)
class RunView:
    """A run, and the configuration that it was submitted with (`configuration.json`)."""

    run: Run
    configuration: Mapping[str, Any]


@dataclass(frozen=True)
class Difference:
    """One thing that differs; None where one of the two runs does not have it."""

    name: str
    first: str | None
    second: str | None


@dataclass(frozen=True)
class MetricPair:
    """The last values side by side. `change` is second minus first, where both are finite numbers."""

    name: str
    first: Any
    second: Any
    change: float | None


@dataclass(frozen=True)
class Comparison:
    """Only what differs, except for `metrics`, which has every metric of both.

    `packages_not_recorded` are the runs whose packages are not known; then `packages` says nothing.
    """

    first: str
    second: str
    facts: tuple[Difference, ...]
    arguments: tuple[Difference, ...]
    configuration: tuple[Difference, ...]
    packages: tuple[Difference, ...]
    metrics: tuple[MetricPair, ...]
    packages_not_recorded: tuple[str, ...] = ()


def compare_runs(first: RunView, second: RunView) -> Comparison:
    a, b = first.run, second.run
    # A built environment may have no packages; of the user's own Python an empty list says that none were looked for.
    unknown = tuple(run.run_id for run in (a, b) if not run.packages and run.environment is None)
    return Comparison(
        first=a.run_id,
        second=b.run_id,
        facts=_differences(_facts(a), _facts(b)),
        arguments=_arguments(a.submission.arguments, b.submission.arguments),
        configuration=_differences(_settings(first.configuration), _settings(second.configuration)),
        packages=() if unknown else _differences(_versions(a.packages), _versions(b.packages)),
        metrics=tuple(
            MetricPair(
                name,
                a.metrics.get(name),
                b.metrics.get(name),
                _change(a.metrics.get(name), b.metrics.get(name)),
            )
            for name in sorted(a.metrics.keys() | b.metrics.keys())
        ),
        packages_not_recorded=unknown,
    )


def flattened(value: Any, name: str = "") -> dict[str, str]:
    """Nested maps as dotted names. Text is shown as it is, other values as JSON."""
    if isinstance(value, Mapping) and (value or not name):
        found: dict[str, str] = {}
        for key in sorted(value, key=str):
            found |= flattened(value[key], f"{name}.{key}" if name else str(key))
        return found
    return {name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)}


def _settings(configuration: Mapping[str, Any]) -> dict[str, str]:
    """Those that are set: null and an empty list are not."""
    return {name: value for name, value in flattened(configuration).items() if value not in ("null", "[]")}


def _facts(run: Run) -> dict[str, str]:
    submission = run.submission
    facts = {
        "script": submission.script_name,
        "command": _command(submission),
        "folder": submission.folder or None,
        "from": None if submission.earlier is None else str(submission.earlier),
        "commit": submission.properties.get("commit"),
        "run configuration": submission.run_configuration,
        "target": submission.target,
        "status": run.status.value,
        "ended": run.how_it_ended() or None,
        "duration": duration_text(run.duration),
        "environment": run.environment,
        "Python": run.python or None,
        "image": run.image,
        "image id": run.image_id,
        "GPU": _gpu_use(run),
        **{f"data {each.target}": _data(each) for each in submission.data},
    }
    return {name: value for name, value in facts.items() if value is not None}


def _command(submission: Submission) -> str | None:
    """Without the arguments, which are compared one by one. None for a script that is started as it is."""
    words = submission.command
    return shlex.join(words[: len(words) - len(submission.arguments)]) if words else None


def _data(data: GivenData) -> str:
    of = ", at least" if not data.is_whole else ""
    return f"{data.source} ({data.digest[:12]}{of}, {data.files} files, {data.size} bytes)"


def _gpu_use(run: Run) -> str | None:
    """Whether GPUs were used, which, and the reason if it is not `ok`; not how much, which always differs. None for a
    run that asked for none."""
    verdict = run.gpu
    if verdict is None or verdict.state is UseState.NOT_ASKED:
        return None
    used = Counter(each.name or "unknown" for each in verdict.devices if each.first_use is not None)
    on = [name if count == 1 else f"{count} {name}" for name, count in sorted(used.items())]
    why = [verdict.reason] if verdict.reason not in ("", "ok") else []
    return verdict.state.words + (f" ({', '.join([*why, *on])})" if why or on else "")


def _differences(first: Mapping[str, str], second: Mapping[str, str]) -> tuple[Difference, ...]:
    """By name: those of `first` in their order, then those that only `second` has."""
    names = [*first, *(name for name in second if name not in first)]
    pairs = [Difference(name, first.get(name), second.get(name)) for name in names]
    return tuple(each for each in pairs if each.first != each.second)


def _arguments(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[Difference, ...]:
    """By option where both lines can be read as options and values, else as whole lines."""
    if first == second:
        return ()
    a, b = _options(first), _options(second)
    by_option = _differences(a, b) if a is not None and b is not None else ()
    # Options in another order, or `--x=1` against `--x 1`: the same values, but not the same line.
    return by_option or (Difference("arguments", _line(first), _line(second)),)


def _options(arguments: tuple[str, ...]) -> dict[str, str] | None:
    """`--rate 0.1 data` as option → value; words without an option by position. None if an option repeats."""
    found: dict[str, str] = {}
    waiting = ""
    position = 0
    for word in arguments:
        name, equals, value = word.partition("=")
        if re.fullmatch(r"--?[A-Za-z][\w.-]*", name):
            if name in found:
                return None
            found[name] = value if equals else "given"
            waiting = "" if equals else name
        elif waiting:
            found[waiting], waiting = word, ""
        else:
            position += 1
            found[f"argument {position}"] = word
    return found


def _line(arguments: tuple[str, ...]) -> str:
    return shlex.join(arguments)


def _versions(packages: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for each in sorted(packages, key=str.lower):
        name, _, version = each.partition("==")
        found[name.strip()] = version.strip() or "any"
    return found


def _change(first: Any, second: Any) -> float | None:
    if not _is_number(first) or not _is_number(second):
        return None
    try:
        change = float(second) - float(first)
    except OverflowError:
        return None
    return change if math.isfinite(change) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
