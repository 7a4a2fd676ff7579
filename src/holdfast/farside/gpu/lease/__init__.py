"""Who has which GPU: leases, and the queue for them."""
