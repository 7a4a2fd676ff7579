"""What the frameworks say when a GPU does not do what they want, recognised in the output of a script. Pure.

Their own words, of PyTorch, TensorFlow, JAX, CuPy, CNTK and XGBoost, and of CUDA below them. What they say may be
caught and dealt with: it counts only together with how the script ended.
"""

import re
from typing import List, Pattern, Tuple

from holdfast.farside.gpu.judge.reasons import (
    CPU_BUILD,
    DRIVER_TOO_OLD,
    HIDDEN,
    LOST,
    NO_CODE,
    NO_DRIVER,
    OUT_OF_MEMORY,
)
from holdfast.farside.gpu.judge.reasons import WRONG_BUILD as WRONG

MOST_READ = 64 << 10


def recognise(tail: bytes) -> List[str]:
    """The reasons that the end of an output names, each once, the most telling first."""
    found = tail[-MOST_READ:]
    return [reason for reason, pattern in _PATTERNS if pattern.search(found)]


def _any(*texts: bytes) -> Pattern[bytes]:
    return re.compile(b"|".join(texts))


_PATTERNS: Tuple[Tuple[str, Pattern[bytes]], ...] = (
    (
        LOST,
        _any(
            rb"GPU is lost",
            rb"GPU has fallen off the bus",
            rb"uncorrectable ECC error encountered",
            rb"CUDA_ERROR_ECC_UNCORRECTABLE",
            rb"cudaErrorECCUncorrectable",
        ),
    ),
    (
        OUT_OF_MEMORY,
        _any(
            rb"(?:CUDA|HIP) out of memory",
            rb"(?:CUDA|HIP) error: out of memory",
            rb"cuda runtime error \(2\) : out of memory",
            rb"CUDA_ERROR_OUT_OF_MEMORY",
            rb"cudaErrorMemoryAllocation",
            rb"CU(?:BLAS|DNN|SOLVER)_STATUS_ALLOC_FAILED",
            rb"OOM when allocating tensor(?![^\n]*(?:CPU:|allocator cpu))",
            rb"RESOURCE_EXHAUSTED: Out of memory",
            rb"cupy\S*OutOfMemoryError",
            rb"[Oo]ut of memory (?:allocating|to allocate) [\d,]+ bytes \((?:allocated so far|total)",
            rb"CUDA failure 2: out of memory",
        ),
    ),
    (
        NO_CODE,
        _any(
            rb"no kernel image is available for execution on the device",
            rb"CUDA_ERROR_NO_BINARY_FOR_GPU",
            rb"cudaErrorNoKernelImageForDevice",
            rb"is not compatible with the current PyTorch installation",
            rb"PyTorch no longer supports this GPU because it is too old",
            rb"cudaErrorInvalidDeviceFunction",
        ),
    ),
    (
        DRIVER_TOO_OLD,
        _any(
            rb"CUDA driver version is insufficient for CUDA runtime version",
            rb"NVIDIA driver on your system is too old",
            rb"cudaErrorInsufficientDriver",
            rb"PTX was compiled with an unsupported toolchain",
            rb"CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
            rb"cudaErrorUnsupportedPtxVersion",
        ),
    ),
    (
        CPU_BUILD,
        _any(
            rb"Torch not compiled with CUDA enabled",
            rb"a CUDA-enabled jaxlib is not installed",
            rb"XGBoost version not compiled with GPU support",
        ),
    ),
    (
        WRONG,
        _any(
            rb"Cannot dlopen some GPU libraries",
            rb"Skipping registering GPU devices",
            rb"Jax plugin configuration error",
        ),
    ),
    (
        NO_DRIVER,
        _any(
            rb"Found no NVIDIA driver on your system",
            rb"Could not find cuda drivers on your machine",
            rb"libcuda\.so\.1: cannot open shared object file",
            rb"kernel driver does not appear to be running on this host",
        ),
    ),
    (
        HIDDEN,
        _any(
            rb"No CUDA GPUs are available",
            rb"no CUDA-capable device is detected",
            rb"CUDA_ERROR_NO_DEVICE",
            rb"cudaErrorNoDevice",
            rb"No GPU/TPU found, falling back to CPU",
            rb"No visible GPU is found",
            rb"couldn't find any available GPU on the system",
            rb"Specified GPU device id \(\d+\) is invalid",
        ),
    ),
)
