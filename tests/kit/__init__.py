"""What several suites build their surroundings from: real SSH servers, bad links, a simulated NVML."""
