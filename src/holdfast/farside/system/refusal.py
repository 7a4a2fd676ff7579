"""The far side's one error: what it answers when a request cannot be done."""


class Refused(Exception):
    """A request that cannot be done: `kind` for programs, a sentence and a remedy for people."""

    def __init__(self, kind: str, message: str, hint: str = "") -> None:
        Exception.__init__(self, message)
        self.kind, self.message, self.hint = kind, message, hint
