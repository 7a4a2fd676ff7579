"""What is kept on this host: contents that arrive, files that go home, what may be removed."""
