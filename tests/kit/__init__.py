"""Parts that several suites share: real SSH servers, bad links, a simulated NVML."""
