"""Who starts the supervisor of a run and owns it."""
