"""Messages of the frameworks, and what they mean."""

import pytest

from holdfast.farside.gpu.judge import reasons
from holdfast.farside.gpu.judge.output_clues import recognise

SAID = [
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 22.00 MiB. GPU 0 has a", "out-of-gpu-memory"),
    ("RuntimeError: CUDA error: out of memory", "out-of-gpu-memory"),
    ("failed to allocate 17.79G (1 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of", "out-of-gpu-memory"),
    (
        "OOM when allocating tensor with shape[128,768] and type float on /job:localhost/replica:0/task:0/device:GPU:0 "
        "by allocator GPU_0_bfc",
        "out-of-gpu-memory",
    ),
    ("XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4770354232", "out-of-gpu-memory"),
    ("cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 1,024 bytes", "out-of-gpu-memory"),
    ("Out of memory allocating 25,600,000 bytes (allocated so far: 3,635,267,072 bytes).", "out-of-gpu-memory"),
    ("CUDA failure 2: out of memory ; GPU=0 ; hostname=box ; expr=cudaMalloc", "out-of-gpu-memory"),
    ("Memory allocation error on worker 0: std::bad_alloc: cudaErrorMemoryAllocation: out", "out-of-gpu-memory"),
    ("RuntimeError: CUDA error: no kernel image is available for execution on the device", "no-code-for-gpu"),
    (
        "NVIDIA A100 with CUDA capability sm_80 is not compatible with the current PyTorch installation.",
        "no-code-for-gpu",
    ),
    ("The NVIDIA driver on your system is too old (found version 11070).", "driver-too-old"),
    ("cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version", "driver-too-old"),
    ("AssertionError: Torch not compiled with CUDA enabled", "cpu-build"),
    ("An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed.", "cpu-build"),
    ("/src/learner.cc:180: XGBoost version not compiled with GPU support.", "cpu-build"),
    ("Cannot dlopen some GPU libraries. Please make sure the missing libraries", "wrong-build"),
    ("Found no NVIDIA driver on your system. Please check that you", "no-driver"),
    ("cudart_stub.cc:28] Could not find cuda drivers on your machine, GPU will not be used.", "no-driver"),
    ("RuntimeError: No CUDA GPUs are available", "hidden"),
    ("failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected", "hidden"),
    ("Device is changed from GPU to CPU as we couldn't find any available GPU on the system.", "hidden"),
    ("ValueError: Specified GPU device id (0) is invalid.", "hidden"),
    ("No GPU/TPU found, falling back to CPU. (Set TF_CPP_MIN_LOG_LEVEL=0 and rerun)", "hidden"),
    ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "device-lost"),
]


MEANINGLESS = [
    "",
    "epoch 7: loss 0.3, out of memory is not what this is about",
    "OOM when allocating tensor with shape[1] and type float on /device:CPU:0 by allocator cpu",
    "MemoryError: Unable to allocate 12.0 GiB for an array",
    "Successfully opened dynamic library libcuda.so.1",
    "CUDA out of memory\n" + "x" * (64 << 10),  # long before the end
]


@pytest.mark.parametrize(("text", "reason"), [*SAID, *((text, "") for text in MEANINGLESS)], ids=lambda each: each[:40])
def test_a_message_is_recognised_among_other_output_which_means_nothing(text, reason):
    assert recognise(b"epoch 1\n\xff\x00" + text.encode() + b"\nTraceback\n") == ([reason] if reason else [])


def test_several_messages_are_each_said_once_and_all_are_reasons():
    found = recognise("\n".join(text for text, _ in SAID * 2).encode())
    assert found[0] == "device-lost" and len(found) == len(set(found)) == len({reason for _, reason in SAID})
    assert set(found) < set(reasons.REASONS)
