"""What the script's process sees: wrappers of a command."""
