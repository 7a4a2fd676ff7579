"""What the GPUs do while a run is on them."""
