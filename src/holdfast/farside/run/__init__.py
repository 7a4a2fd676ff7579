"""One run on this host: its processes, files and journal, from start to end."""
