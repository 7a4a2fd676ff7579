"""From options about GPUs to the request for the far side."""

from __future__ import annotations

import pytest

from holdfast.codec import encode
from holdfast.containers import Docker, Names
from holdfast.errors import UsageError
from holdfast.farside.gpu.request import GpuRequest, parse
from holdfast.plan import Plan, RunLimits, text
from holdfast.project.compute import ComputeTarget
from holdfast.project.configuration import Configuration
from holdfast.project.gpu_wishes import GpuWishes, in_force
from holdfast.project.runconfig import RunConfiguration
from holdfast.workbench.submitting.run_plan import asked_gpus

FILE = "aml_config/x.runconfig"
NOTHING = GpuWishes()


def configured(written: GpuWishes = NOTHING, nvidia: bool | None = None, kind: str = "docker") -> Configuration:
    target = ComputeTarget("my_dsvm", kind, nvidia_docker=nvidia, file="aml_config/my_dsvm.compute")
    return Configuration(RunConfiguration("x", "my_dsvm", gpu=written, file=FILE), target)


@pytest.mark.parametrize(
    ("typed", "written", "nvidia", "gpus", "by"),
    [
        (2, 1, True, 2, "`--gpus 2`"),
        ("all", None, None, "all", "`--gpus all`"),
        (0, 1, True, 0, "`--gpus 0`"),
        (None, 1, True, 1, "`Gpus: 1` in x.runconfig"),
        (None, None, True, "all", "`nvidiaDocker: true` in my_dsvm.compute"),
        (None, None, False, None, ""),
        (None, None, None, None, ""),
    ],
)
def test_what_was_typed_counts_before_the_file_and_that_before_the_target(typed, written, nvidia, gpus, by):
    plan = asked_gpus(GpuWishes(gpus=typed), configured(GpuWishes(gpus=written), nvidia))
    assert (plan.gpus, plan.by, plan.asked) == (gpus, by, gpus not in (None, 0))


@pytest.mark.parametrize(
    ("typed", "written", "found"),
    [
        (GpuWishes(gpus=2), GpuWishes(gpus=1, require=True), GpuWishes(gpus=2, require=True)),
        (GpuWishes(), GpuWishes(1, None, 5, 3.0, 0.0), GpuWishes(1, None, 5, 3.0, 0.0)),
        (GpuWishes(quiet_after=0.0), GpuWishes(quiet_after=60.0), GpuWishes(quiet_after=0.0)),
        (GpuWishes(gpus=0), GpuWishes(1, True, 5, 3.0, 60.0), GpuWishes(gpus=0, quiet_after=60.0)),
        (GpuWishes(), GpuWishes(), GpuWishes()),
    ],
)
def test_what_is_in_force_is_what_was_typed_over_what_is_written(typed, written, found):
    assert in_force(typed, written) == found


def test_nvidia_docker_asks_for_nothing_where_there_is_no_container():
    assert asked_gpus(GpuWishes(), configured(nvidia=True, kind="remote")) == GpuRequest()


def test_times_and_memory_come_from_the_line_before_the_file():
    written = GpuWishes(1, False, 5, 60.0, 90.0)
    assert asked_gpus(GpuWishes(), configured(written)) == GpuRequest(
        1, False, 5, 60.0, 90.0, True, "`Gpus: 1` in x.runconfig"
    )
    typed = GpuWishes(min_memory=7, stop_if_idle=30.0, quiet_after=0.0)
    plan = asked_gpus(typed, configured(written))
    assert (plan.min_memory, plan.stop_if_idle, plan.quiet_after) == (7, 30.0, None)


@pytest.mark.parametrize(
    ("typed", "written", "message"),
    [
        (GpuWishes(0, require=True), NOTHING, "`--require-gpu` is about GPUs, and `--gpus 0` gives the run none."),
        (NOTHING, GpuWishes(0, require=True), "`RequireGpu: true` in x.runconfig is about GPUs, and `Gpus: 0` in x."),
        (GpuWishes(require=True), GpuWishes(0), "`--require-gpu` is about GPUs, and `Gpus: 0` in x.runconfig"),
        (GpuWishes(0, min_memory=5), NOTHING, "`--min-gpu-memory` is about GPUs"),
        (GpuWishes(0, stop_if_idle=5.0), NOTHING, "`--stop-if-idle` is about GPUs, and `--gpus 0`"),
        (NOTHING, GpuWishes(0, stop_if_idle=5.0), "`StopIfIdle` in x.runconfig is about GPUs"),
        (NOTHING, GpuWishes(0, min_memory=5), "`MinGpuMemory` in x.runconfig is about GPUs"),
        (NOTHING, GpuWishes(min_memory=5), "`MinGpuMemory` in x.runconfig chooses among GPUs"),
        (GpuWishes(min_memory=5), NOTHING, "`--min-gpu-memory` chooses among GPUs that are handed out"),
    ],
)
def test_wishes_that_contradict_each_other_are_refused_with_both_places(typed, written, message):
    with pytest.raises(UsageError) as caught:
        asked_gpus(typed, configured(written))
    assert caught.value.message.startswith(message)
    assert "--gpus 1" in caught.value.hint


def test_no_gpus_for_this_once_is_said_against_a_file_that_wants_some():
    written = GpuWishes(2, True, 5, 60.0, 90.0)
    plan = asked_gpus(GpuWishes(0), configured(written, nvidia=True))
    assert plan == GpuRequest(0, False, None, None, 90.0, False, "`--gpus 0`")


@pytest.mark.parametrize(
    ("typed", "written", "plan"),
    [
        (GpuWishes(require=True), NOTHING, GpuRequest(require=True, by="`--require-gpu`")),
        (NOTHING, GpuWishes(require=True), GpuRequest(require=True, by="`RequireGpu: true` in x.runconfig")),
        (GpuWishes(require=True), GpuWishes(require=True), GpuRequest(require=True, by="`--require-gpu`")),
        (GpuWishes(stop_if_idle=60.0), NOTHING, GpuRequest(stop_if_idle=60.0, by="`--stop-if-idle`")),
        (NOTHING, GpuWishes(stop_if_idle=60.0), GpuRequest(stop_if_idle=60.0, by="`StopIfIdle` in x.runconfig")),
        (
            GpuWishes(stop_if_idle=60.0),
            GpuWishes(stop_if_idle=90.0),
            GpuRequest(stop_if_idle=60.0, by="`--stop-if-idle`"),
        ),
    ],
)
def test_who_requires_a_gpu_or_ends_an_idle_run_asks_for_one_though_nothing_is_leased(typed, written, plan):
    assert asked_gpus(typed, configured(written)) == plan._replace(asked=True)


@pytest.mark.parametrize(
    ("gpus", "nvidia", "given"),
    [
        *((2, None, True), ("all", False, True), (1, True, True), (0, True, False), (0, None, False)),
        *((None, True, True), (None, False, False), (None, None, None)),
    ],
)
def test_a_container_has_gpus_where_the_run_asks_for_some_whatever_the_target_says(gpus, nvidia, given):
    target = ComputeTarget("box", "docker", nvidia_docker=nvidia)
    assert Docker(target).plan(Names("r", "p", "n"), gpus=gpus).gpus is given


def test_the_far_side_reads_what_the_near_side_writes():
    plan = asked_gpus(GpuWishes(2, True, 5, 60.0), configured())
    whole = Plan("r", "p", "g", "s", (), text("/"), None, RunLimits(), gpu=plan)
    assert parse(encode(whole)["gpu"]) == GpuRequest(2, True, 5, 60.0, 600.0, True, "`--gpus 2`")
    assert parse(None) == GpuRequest() == parse(encode(GpuRequest()))
