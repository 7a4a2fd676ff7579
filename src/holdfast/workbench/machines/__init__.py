"""Compute targets as machines: attached, looked at, entered, left."""
