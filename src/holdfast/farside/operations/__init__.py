"""What the agent answers."""
