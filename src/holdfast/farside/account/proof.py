"""Proving that a process outlives the connection that started it: one is begun here, and looked for after a new
login."""

import os
import signal
import time
from typing import Any, Dict

from holdfast.farside import kernel
from holdfast.farside.layout import Home, checked
from holdfast.farside.refusal import Refused
from holdfast.farside.run import detaching

PROOF_NAME = "hf-proof"
SECONDS = 60
"""After so long it ends by itself, if nobody comes back to look."""


def begin(home: Home, token: str) -> Dict[str, Any]:
    """Start a process exactly as a guardian is started; it holds a lock until it is looked for."""
    path = _path(home, token)
    home.make()
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    answer = detaching.start(home, PROOF_NAME, become_proof, {"token": token})
    if answer != "ok":
        raise Refused(
            "cannot-start", "A process that outlives the connection cannot be started: %s" % (answer or "it died")
        )
    return {"begun": True}


def look(home: Home, token: str, patience: float) -> Dict[str, Any]:
    """Whether it still lives after `patience` seconds, as a logout may take a moment; ends it and leaves nothing. A
    repeat finds nothing alive."""
    path = _path(home, token)
    give_up = time.monotonic() + min(patience, SECONDS / 2)
    holder = kernel.lock_holder(path, 0)
    while holder is not None and time.monotonic() < give_up:
        time.sleep(0.05)
        holder = kernel.lock_holder(path, 0)
    if holder:
        _end(path, holder)
    try:
        os.unlink(path)
        os.rmdir(os.path.dirname(path))
    except OSError:
        pass  # another attach has its own in there
    return {"alive": holder is not None}


def become_proof(home: Home, request: detaching.Request, tell: int) -> None:
    """In a process of its own (`detaching.Work`). Never returns."""
    # A guardian ignores SIGTERM and would outlive a logout by the minutes that pass until SIGKILL: this must not.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        path = _path(home, request["token"])
        detaching.let_go(os.open(os.devnull, os.O_WRONLY), keep=tell)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        kernel.set_name(PROOF_NAME)
        kernel.lock(descriptor, 0)
    except BaseException as error:  # noqa: BLE001 - whoever asked is told whatever it is
        detaching.tell(tell, str(getattr(error, "strerror", None) or error))
        os._exit(1)
    detaching.tell(tell, "ok")
    os.close(tell)
    time.sleep(SECONDS)
    try:
        os.unlink(path)
    finally:
        os._exit(0)


def _path(home: Home, token: str) -> str:
    return os.path.join(home.path, "proofs", checked(token))


def _end(path: str, holder: int) -> None:
    try:
        os.kill(holder, signal.SIGKILL)
    except OSError:
        return
    give_up = time.monotonic() + 5
    while kernel.lock_holder(path, 0) is not None and time.monotonic() < give_up:
        time.sleep(0.005)
