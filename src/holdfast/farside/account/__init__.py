"""The account on this machine: who may enter, what outlives a login, where there is room."""
