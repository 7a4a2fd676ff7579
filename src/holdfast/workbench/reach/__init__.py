"""Getting at machines and runs: targets, what is known of a host, reconnecting, reading replies, events."""
