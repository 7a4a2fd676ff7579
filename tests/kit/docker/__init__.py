"""A Docker engine for the tests alone: daemons with their own data, images made here, a registry, simulated GPUs.

    docker.run("run", "--rm", PYTHON.name, "python3", "-V")     # the session's daemon, shared by its workers
    holdfast("submit", …, env=docker.environment)
    private = private_daemon(Settings(live_restore=True))       # one that a test may stop, kill and restart
    one = docker_box()                                          # a box whose account may use the session's daemon

Everything lies below `.cache/docker` of the repository, but for the sockets: their paths have to be short.
"""
