"""What is in this machine, down to its GPUs."""
