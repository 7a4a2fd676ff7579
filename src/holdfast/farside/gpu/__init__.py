"""Whether a run used the GPUs: shared, watched and judged."""
