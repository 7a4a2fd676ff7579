"""Reaching machines and runs: targets, hosts, what is known of a host, the link to it, events."""
