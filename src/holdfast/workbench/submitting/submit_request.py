"""What was typed after `submit` or `prepare`, as a value."""

from __future__ import annotations

from holdfast.frozen import dataclass
from holdfast.project.data_wishes import DataWish
from holdfast.project.earlier_wish import EarlierWish
from holdfast.project.gpu_wishes import GpuWishes


@dataclass(frozen=True)
class EnvironmentWishes:
    """What was typed about the environment: that of another run, resolved anew, built anew, its packages sent. `parts`:
    extras, and groups as `group:NAME`."""

    of_run: str | None = None
    upgrade: bool = False
    rebuild: bool = False
    ship_packages: bool = False
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class CommandWishes:
    """How the command line is started. `is_program`: it came after `--`, so its first word is rather a program than a
    file of that name. `variables`: by name. `copies` None: it is started once. `parameters`: words `NAME=VALUE` for a
    notebook."""

    is_program: bool = False
    variables: tuple[tuple[str, str], ...] = ()
    copies: int | None = None
    tags_output: bool = False
    terminal: bool = False
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True)
class GivenWishes:
    """What the run begins with beside the project's files: those of an earlier run, and data."""

    earlier: EarlierWish | None = None
    data: tuple[DataWish, ...] = ()


@dataclass(frozen=True)
class SubmitRequest:
    """What was typed. `script` is the first word of the command line; None: the run configuration's `ArgumentVector`
    stands before `arguments`."""

    script: str | None = None
    arguments: tuple[str, ...] = ()
    run_configuration: str | None = None
    target: str | None = None
    time_limit: float | None = None
    grace: float | None = None
    secrets: tuple[str, ...] = ()
    conda_file: str | None = None
    spark_file: str | None = None
    sync_outputs: float | None = None
    fetch_outputs: bool = True
    output_globs: tuple[str, ...] = ()
    outputs_limit: int | None = None
    """Bytes outside `outputs/` that come home. None, as no globs: what the run configuration says."""
    include: tuple[str, ...] = ()
    """Globs of ignored files that ship, as they were typed."""
    environment: EnvironmentWishes = EnvironmentWishes()
    gpu: GpuWishes = GpuWishes()
    how: CommandWishes = CommandWishes()
    given: GivenWishes = GivenWishes()
    prepare_only: bool = False
    """Nothing is run: the environment is wanted, and the user sees it being made."""
