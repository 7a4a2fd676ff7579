"""A run and its host, and what the run writes: copied home while it grows, outputs when it has ended."""
