"""What was found in a spec before anything is built: one value for each line that will not do, and what to write."""

from __future__ import annotations

from typing import Literal, get_args

from holdfast.frozen import dataclass
from holdfast.project.problems import Severity

Kind = Literal[
    "gone",  # the name or address is there no more, or installs nothing but an error
    "not-needed",  # belongs to the old product
    "other-name",  # the index has it under another name
    "missing-index",  # a build that the default index has not
    "other-system",  # a wheel for another system
    "other-python",  # built for another Python than the pinned one
    "shadowed",  # two packages that write the same module
    "cpu-build",  # a build without CUDA, where a GPU is wanted
]
KINDS: tuple[str, ...] = get_args(Kind)


@dataclass(frozen=True)
class SpecFinding:
    """`sentence` and `remedy` are for people; `file` is relative to the project.

    `replacement` is what `--fix` writes instead of `original`, which stands in `line`: empty to remove it, None where a
    person has to choose. Where `original` is empty, the replacement is a new line: Python's among the conda packages,
    any other in front of `line`.
    """

    kind: Kind
    package: str
    sentence: str
    remedy: str
    severity: Severity = "error"
    file: str = ""
    line: int = 0
    replacement: str | None = None
    original: str = ""
