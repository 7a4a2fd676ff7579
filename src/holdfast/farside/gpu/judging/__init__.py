"""Whether a run used the GPUs: pure functions of what was known and seen."""
