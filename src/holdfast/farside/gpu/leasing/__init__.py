"""Which run has which GPU."""
