"""Who starts a supervisor and owns it."""
