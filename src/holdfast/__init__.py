"""In-run API (placeholder while it is being written)."""
__version__ = "0.1.0"
