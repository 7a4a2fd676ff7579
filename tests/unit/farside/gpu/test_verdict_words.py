"""What a verdict says, and that it never suggests what the user has already done."""

import pytest

from holdfast.farside.gpu.gpu_facts import Left
from holdfast.farside.gpu.judge import reasons
from holdfast.farside.gpu.judge.verdict import judge
from holdfast.farside.gpu.samples import Samples
from kit.gpu_values import GIB, end, facts, leasing, row, samples, strange, uuid, working
from kit.gpu_verdicts import CASES, LEASING, MIG, NO_REQUEST, ONE_MIG, QUIET, TEN

SAID = {
    "CPU build of PyTorch": (
        "GPU NOT used: PyTorch 2.13.0+cpu was built without CUDA: it computes on the CPU and leaves the GPU idle."
    ),
    "CUDA_VISIBLE_DEVICES empty": (
        "GPU NOT used: `CUDA_VISIBLE_DEVICES` is empty, which hides Tesla K80 (GPU-00000000)."
    ),
    "container without GPUs": "GPU NOT used: the container has no GPUs; the machine has Tesla K80 (GPU-00000000).",
    "two leased, one used": (
        "GPU partly used: 1 of 2 leased GPUs was used: Tesla K80 (GPU-00000000), 74 % mean, 8.0 GiB peak, "
        "first use after 1 s; Tesla K80 (GPU-00000001), not used."
    ),
    "hardly any of the time": (
        "GPU partly used: the GPU worked only 3 % of the time since its first use: "
        "Tesla K80 (GPU-00000000), 2 % mean, 8.0 GiB peak, first use after 1 s."
    ),
    "stranger on the GPU": (
        "GPU NOT used: what Tesla K80 (GPU-00000000) computed was for others: process 7000, in 10 of 10 looks."
    ),
    "device lost mid-run": (
        "GPU partly used: Tesla K80 (GPU-00000000) was lost after 6 s (GPU is lost); seen until then: "
        "Tesla K80 (GPU-00000000), 74 % mean, 8.0 GiB peak, first use after 1 s."
    ),
    "memory left after the end": (
        "GPU used: Tesla K80 (GPU-00000000), 74 % mean, 8.0 GiB peak, first use after 1 s; "
        "after the end process 4000 (python) held 1.0 GiB of GPU memory."
    ),
    "no driver": "GPU not available: the machine has no NVIDIA driver.",
    "memory held, and no process has a utilisation": (
        "GPU used: Tesla K80 (GPU-00000000), 1.0 GiB peak, first use after 1 s"
    ),
    "the machine slept": (
        "GPU use unknown: there is no record for 60 s of the 75 s that the script ran, "
        "as where the machine sleeps or its clock is set."
    ),
    "two seconds": "GPU use unknown: the script ran too short to be watched: 2 looks, and three are needed.",
    "more than the machine has": "GPU not available: `--gpus 2` asks for more than the machine has: 1 GPU that works.",
    "more memory than the machine has": (
        "GPU not available: no GPU of this machine has 74.5 GiB (80 GB) of memory; the largest has 12.0 GiB."
    ),
    "MIG without names": (
        "GPU use unknown: the driver does not say how much the instances of A100 (GPU-00000000) compute, and named no "
        "process there that is known to be the run's."
    ),
    "the output says why, too short to be proved": (
        "GPU use unknown: the output says that the framework has no code for Tesla K80 (GPU-00000000)."
    ),
    "canceled while it waits for strangers to go": "GPU use unknown: the run ended before its script started.",
    "not asked for, nothing installed": "GPU not asked for.",
}


@pytest.mark.parametrize("name", SAID)
def test_the_whole_sentence(name):
    assert judge(*CASES[name][:3]).sentence == SAID[name]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "container without GPUs",
            "Write `nvidiaDocker: true` in `my_dsvm.compute`, or submit with `--gpus all`.",
        ),
        ("no GPU", ", or do not ask for one: the run asks with `--gpus 1`."),
        ("CUDA_VISIBLE_DEVICES empty", "the shell from which a run on this machine is submitted"),
    ],
)
def test_a_remedy_names_the_file_and_the_line(name, words):
    assert words in judge(*CASES[name][:3]).remedy


REMEDIES = {
    "two leased, one used": (
        leasing(2, request=LEASING._replace(gpus=2, by="`--gpus 2`")),
        *(TEN, samples(*[[working(), row(1)]] * 10)),
        "The run asks with `--gpus 2`: write `--gpus 1`, or let the script use all that it has.",
    ),
    "a driver that fails, not asked for": (
        facts(request=NO_REQUEST, frameworks=("torch",))._replace(devices=(), driver_state="failed"),
        *(TEN, Samples()),
        "Fix the NVIDIA driver until `nvidia-smi` lists the machine's GPUs, choose another compute target, or do not "
        "ask for a GPU.",
    ),
    "more memory than there is": (
        *CASES["more memory than the machine has"][:3],
        "Lower `--min-gpu-memory` (`MinGpuMemory` in the run configuration), or submit to a machine with larger GPUs.",
    ),
    "more than there are": (
        *CASES["more than the machine has"][:3],
        "Ask for 1 at most, or submit to a machine with more.",
    ),
    "a process that lives": (
        *CASES["memory left after the end"][:3],
        "End what is left on the machine with `kill -9 4000`, or restart the machine where the driver holds it.",
    ),
    "a stranger on a leased device": (
        *CASES["stranger, and the lease is no proof"][:3],
        "See who uses it with `holdfast computetarget gpus NAME`: who does not use Holdfast does not heed a lease.",
    ),
    "two seconds": (
        *CASES["two seconds"][:3],
        "Nothing is to be changed: there is a look every second, and a script with three of them is judged.",
    ),
    "idle": (
        *CASES["idle"][:3],
        "Move the work to the GPU in the script, not only the model or a first tensor.",
    ),
}


@pytest.mark.parametrize("name", REMEDIES)
def test_a_remedy_says_what_is_to_be_changed(name):
    known, ended, seen, remedy = REMEDIES[name]
    assert judge(known, ended, seen).remedy == remedy


LEASED_AND_UNCLEAR = {
    "instance of MIG": (
        ONE_MIG._replace(leased=(MIG,), request=LEASING),
        samples(*[[row(0, None, own_utilisation=None)]] * 10),
    ),
    "device on which a screen is drawn": (leasing(1, request=LEASING), samples(*[[row(0, 3)]] * 10)),
    "device with a stranger": (leasing(1, request=LEASING), samples(*[[strange()]] * 10)),
    "device that is hidden": (leasing(1, request=LEASING, visible=""), samples(*QUIET)),
    "device that the script did not find": (leasing(1, request=LEASING), samples(*QUIET)),
}


@pytest.mark.parametrize("name", LEASED_AND_UNCLEAR)
def test_who_has_asked_for_a_gpu_is_not_told_to_ask_for_one(name):
    known, seen = LEASED_AND_UNCLEAR[name]
    found = judge(known, end(10.4, 1, said=("hidden",) if "find" in name else ()), seen)
    assert found.state in ("unknown", "not-used") and found.remedy
    assert "--gpus 1" not in found.remedy


def test_no_process_is_to_be_ended_that_is_gone():
    gone = (Left(4000, "", uuid(0), GIB),)
    found = judge(leasing(1), end(10.4, left=gone), samples(*[[working()]] * 10))
    assert found.reason == reasons.LEFT and "process 4000 (gone)" in found.sentence
    assert "kill" not in found.remedy and "reset the GPU" in found.remedy


def test_a_single_look_is_no_plural():
    assert "watched: 1 look, and three" in judge(leasing(1), end(1), samples([row()])).sentence
