"""Scripts in containers, by the `docker` of this machine. Loaded only for runs that have one."""
