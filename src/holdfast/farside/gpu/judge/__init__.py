"""The verdict: whether a run used its GPUs, and why not. Pure."""
