"""Looking at GPUs while a script runs."""
