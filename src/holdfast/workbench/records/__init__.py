"""Runs as they are kept here: brought up to date, found, compared, cleaned."""
