"""What the launcher in a container leaves of a run, as it writes it."""

LAST_WORDS = {
    "format": 1,
    "code": 3,
    "signal": None,
    "owned": True,
    "outside": 15,
    "swept": [[7, "python", "SIGTERM"]],
    "count": 1,
    "memory_kills": 0,
    "memory_limit": 1 << 30,
}
