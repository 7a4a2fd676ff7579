"""Environments on this host: which Python, which packages exactly, built once; and what is in them."""
