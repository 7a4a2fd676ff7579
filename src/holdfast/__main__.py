"""`python -m holdfast` is the `holdfast` command; the script that an installer makes calls `run`."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from typing import NoReturn

_ROOM = 100_000
"""Objects that may come before the garbage collector looks: loading the command makes most of them and none is
garbage."""


def run() -> NoReturn:
    """The command, without taking the interpreter apart at the end: all is closed and written by then, and to free
    object after object would be a tenth of a short command's time."""
    gc.set_threshold(_ROOM)
    from holdfast.cli.early_connection import begin

    ahead = begin(sys.argv[1:])
    from holdfast.cli.main import main

    code = main(ahead=ahead)
    atexit._run_exitfuncs()  # a terminal that was made silent for a password
    os._exit(code)


if __name__ == "__main__":
    from holdfast.cli.main import main

    sys.exit(main())
