"""Environments as they are on a host: listed, shown, removed, entered, and checked against the machine."""
