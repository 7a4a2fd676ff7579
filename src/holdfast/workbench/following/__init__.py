"""What a run writes, on its way home while it grows and when it has ended."""
