"""The story, readable top to bottom: submit, follow, refresh, cancel, clean. Yields typed events; prints nothing."""
