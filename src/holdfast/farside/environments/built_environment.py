"""One environment on this host: built once, under a lock, at its final path, marked complete last; never resumed, and
read-only to the runs that use it."""

import json
import os
import stat
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from holdfast.farside.environments.locks import (
    Lock,
    is_lock,
    is_own,
    lock_digest,
    note_path,
    package_lines,
    read_locks,
    write_lock,
)
from holdfast.farside.environments.place import BuildPlace, satisfies
from holdfast.farside.environments.workshop import Tell
from holdfast.farside.system import kernel
from holdfast.farside.system.files import names_in, read_json, read_record, remove_tree, write_whole
from holdfast.farside.system.harmless import pasted
from holdfast.farside.system.held_lock import HeldLock
from holdfast.farside.system.layout import BUILD_BYTE, BYTECODE, USE_BYTE, Home
from holdfast.farside.system.lost_locks import LostLocks
from holdfast.farside.system.ownership import give_back, make_private, may_be_believed
from holdfast.farside.system.refusal import Refused

COMPLETE = ".complete"
LOCK = "environment.json"
_CACHED = "__pycache__"
_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH

Build = Callable[[], Dict[str, Any]]
"""Fills the folder, and returns what the mark is to say."""


class Environment:
    """Used by this process until it leaves it or ends: the shared lock keeps `clean` away from it."""

    def __init__(self, home: Home, name: str) -> None:
        self.id = name
        self.path = home.environment(name)
        for folder in (home.environments(), home.cache(), home.pythons()):
            make_private(folder)
        lock = os.open(self.path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._held = HeldLock(self.path + ".lock", USE_BYTE, lock, shared=True)

    def use(self, also_after_exec: bool = False) -> bool:
        """Holds the environment against removal. False if it is not complete. `also_after_exec`: the program that this
        process becomes holds it too. Raises Refused where another account made it."""
        self._require_trusted()
        if not self.is_complete() or not kernel.lock(self._held.descriptor, USE_BYTE, shared=True):
            return False  # the process that holds it alone is removing it, or building it anew
        if not self.is_complete():  # removed between the look and the lock
            self.leave()
            return False
        os.utime(self.path + ".lock")
        os.set_inheritable(self._held.descriptor, also_after_exec)
        return True

    def keep(self) -> None:
        """Of one that is used: the lock is held on a new file too, if a cleaner took the first."""
        self._held.keep()

    def leave(self) -> None:
        kernel.unlock(self._held.descriptor, USE_BYTE)

    def ensure(self, build: Build, anew: bool, wait: Callable[[float], None], tell: Tell) -> bool:
        """Builds it unless it is complete; `anew` builds it in any case. Returns whether it was built just now."""
        self._require_trusted()
        waited = False
        while not self._locks(BUILD_BYTE):
            if not waited:
                tell("phase", name="environment", text="waiting for another run that builds the same environment")
            waited = True
            wait(0.25)
        try:
            is_needed = (anew and not waited) or not self.is_complete()
            if is_needed:
                self._require_alone()
                self._build(build)
            kernel.lock(self._held.descriptor, USE_BYTE, shared=True)  # from alone to together without a gap
            os.utime(self.path + ".lock")
            return is_needed
        except BaseException:
            self.leave()  # a process that waited for it may try
            raise
        finally:
            kernel.unlock(self._held.descriptor, BUILD_BYTE)

    def is_complete(self) -> bool:
        return is_whole(self.path)

    def mark(self) -> Dict[str, Any]:
        return read_mark(self.path)

    def _require_trusted(self) -> None:
        """Who could write to its folder once may have put it there."""
        try:
            status = os.lstat(self.path)
        except FileNotFoundError:
            return
        if not may_be_believed(status):
            raise Refused(
                "preparation",
                "the environment `%s` belongs to another account." % self.path,
                "If it is yours: %s; if not, remove it: sudo rm -rf %s" % (give_back(self.path), pasted(self.path)),
            )

    def _locks(self, byte: int) -> bool:
        """Whether this process has it alone: not while another has it of a file that a cleaner took."""
        return kernel.lock(self._held.descriptor, byte) and LostLocks().holder(self.path + ".lock", byte) is None

    def _require_alone(self) -> None:
        if not self._locks(USE_BYTE):
            raise Refused("preparation", "it cannot be built anew while others use it")

    def _build(self, build: Build) -> None:
        remove_tree(self.path)
        built, began = time.time(), time.monotonic()
        try:
            said = build()
            make_read_only(self.path)
            os.mkdir(bytecode(self.path))
        except BaseException:
            remove_tree(self.path)
            raise
        seconds = round(time.monotonic() - began, 3)
        path = os.path.join(self.path, COMPLETE)
        mark = dict(said, format=1, built=built, seconds=seconds)
        write_whole(path, json.dumps(mark), mode=0o444, is_durable=True)
        os.chmod(self.path, stat.S_IMODE(os.stat(self.path).st_mode) & ~_WRITABLE)  # last: the mark had to get in


def is_whole(path: str) -> bool:
    """Marked, and its Python is still there: on this machine, or in the image that it was made with, whose files
    never change."""
    if not os.path.exists(os.path.join(path, COMPLETE)):
        return False
    python = os.path.join(path, "bin", "python")
    return os.path.exists(python) or (os.path.islink(python) and bool(read_mark(path).get("image")))


def read_mark(path: str) -> Dict[str, Any]:
    """What was written when the environment was complete."""
    return read_record(os.path.join(path, COMPLETE)) or {}


def bytecode(path: str) -> str:
    """Where Python keeps bytecode in containers, in which all else of the environment is read-only."""
    return os.path.join(path, BYTECODE)


def keep_lock(path: str, lock: Lock) -> None:
    write_lock(os.path.join(path, LOCK), lock)


def leave_word(path: str) -> None:
    """An environment without pip would find that of another Python, which then installs where it is not meant to."""
    for name in ("pip", "pip3"):
        program = os.path.join(path, "bin", name)
        if not os.path.lexists(program):
            with open(program, "w") as target:
                target.write(_NO_PIP)
            os.chmod(program, 0o755)  # noqa: S103 - as all programs of an environment


_NO_PIP = """#!/bin/sh
echo "This environment is shared between runs and read-only. Add the package to the file that it is made from," >&2
echo "and submit again. What is installed: holdfast environment show" >&2
exit 1
"""


def make_read_only(folder: str) -> None:
    """All below it. Its files are the package cache's as well: to change one would change it for all. Python may
    still keep bytecode, in folders that are made for it here."""
    with os.scandir(folder) as found:
        entries = list(found)
    names = {entry.name for entry in entries}
    if _CACHED not in names and any(name.endswith(".py") for name in names):
        os.mkdir(os.path.join(folder, _CACHED))
    for entry in entries:
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name == _CACHED or not (is_folder or entry.is_file(follow_symlinks=False)):
            continue
        if is_folder:
            make_read_only(entry.path)
        mode = entry.stat(follow_symlinks=False).st_mode
        if mode & _WRITABLE:
            os.chmod(entry.path, stat.S_IMODE(mode) & ~_WRITABLE)


def names(home: Home) -> List[str]:
    """Of all environments, without hidden ones: those are being removed."""
    folder = home.environments()
    found = names_in(folder, is_strict=True)
    return [name for name in found if not name.startswith(".") and os.path.isdir(os.path.join(folder, name))]


Plan = Dict[str, Any]


class FoundEnvironment(NamedTuple):
    """An environment that this process holds from now on, and the lock that it was made from."""

    environment: Environment
    lock: Lock


class Known:
    """`plan` is the plan's environment with its holes filled, `gpus` what is known of those that the script will see,
    `place` where it will run; None: on this machine itself."""

    def __init__(self, home: Home, plan: Plan, gpus: Dict[str, Any], place: Optional[BuildPlace] = None) -> None:
        self.home, self.plan, self.gpus = home, plan, gpus
        self.place = place or BuildPlace(home)
        self.platform = self.place.platform
        self.shipped: Optional[str] = plan.get("packages")
        """The manifest of packages that were sent: then nothing is asked over the net."""

    def find(self) -> Optional[FoundEnvironment]:
        """Returns a complete environment for one of the locks, or None. Starts nothing: reads what builds noted."""
        for lock in self.locks():
            try:
                with open(self.note(lock)) as source:
                    environment = Environment(self.home, source.read().strip())
            except (OSError, Refused):
                continue
            if environment.use():
                made_from = self._made_from(environment, lock)
                if made_from is not None and self.place.can_use(environment.mark()):
                    return FoundEnvironment(environment, made_from)
                environment.leave()
        return self._made_before() if self.plan["exact"] else None

    def _made_from(self, environment: Environment, lock: Lock) -> Optional[Lock]:
        """What was installed, where `lock` was only preferred."""
        if environment.mark().get("lock") == lock_digest(lock) and is_own(self.home.locks(), lock):
            return lock
        found = read_json(os.path.join(environment.path, LOCK))
        return dict(found, spec=self.plan["spec"]) if found is not None and is_lock(found) else None

    def locks(self) -> List[Lock]:
        """Those that are for this machine, the last one first: the project's, or the host's own if the project has
        none. What another machine made is preferred, not installed (`may_install`)."""
        near = self.given()
        if self.plan["exact"]:
            self._require_fitting(near)
            return near
        near = [lock for lock in near if self.fits(lock)]
        if near or self.shipped:
            return near
        return [lock for lock in read_locks(self.home, self.plan["spec"]) if self.fits(lock)]

    def given(self) -> List[Lock]:
        """What the project has for the spec, for whichever machines."""
        return [lock for lock in self.plan["locks"] if is_lock(lock) and lock["spec"] == self.plan["spec"]]

    def may_install(self, lock: Lock) -> bool:
        """Whether the lock is installed as it is: this host made it, or the client, which sends its packages along."""
        return bool(self.shipped) or is_own(self.home.locks(), lock)

    def fits(self, lock: Lock) -> bool:
        pin = self.plan["python"]
        is_for_this = lock["platform"] == self.platform and (not pin or satisfies(lock["python"], pin))
        return is_for_this and self._suits_driver(lock)

    def _suits_driver(self, lock: Lock) -> bool:
        """Whether its packages were chosen for a driver like this one: a CPU build is not for a machine with GPUs."""
        has_driver = bool(self.gpus.get("driver"))
        if lock["conda"] and bool(lock.get("cuda")) != has_driver:
            return False
        if lock["backend"] == "cpu" and has_driver:
            return False
        if not has_driver and (lock["conda"] or "nvidia-" not in lock["requirements"] or self.may_install(lock)):
            return True
        from holdfast.farside.environments.drivers import machine_of, numbers, torch_is_too_new

        machine = machine_of(self.gpus, self.platform, "")
        if not has_driver:
            from holdfast.farside.environments.torch_builds import build_among, is_needless

            return not is_needless(build_among(package_lines(lock["requirements"])), machine)
        if lock["conda"]:
            return numbers(lock.get("cuda")) <= numbers(machine.cuda)
        return bool(lock["backend"]) or not torch_is_too_new(package_lines(lock["requirements"]), machine)

    def pin(self) -> str:
        """The environment of another run has that run's Python, to the last number."""
        return str(self.plan["locks"][0]["python"] if self.plan["exact"] else self.plan["python"] or "")

    def note(self, lock: Lock) -> str:
        """Where the name of the environment that this lock became is noted, for the Python that is asked for."""
        wanted = self.place.noted_as(self.pin(), self.plan["interpreter"])
        return note_path(self.home, lock, wanted, bool(self.plan["exact"]))

    def _made_before(self) -> Optional[FoundEnvironment]:
        """Of another run: whichever was made from its lock with its Python, wherever that was found."""
        lock = self.plan["locks"][0]
        if not is_own(self.home.locks(), lock):
            return None
        for name in names(self.home):
            environment = Environment(self.home, name)
            mark = environment.mark()
            is_same = (mark.get("lock"), mark.get("python")) == (lock_digest(lock), lock["python"])
            if is_same and self.place.can_use(mark) and environment.use():
                return FoundEnvironment(environment, lock)
        return None

    def _require_fitting(self, near: List[Lock]) -> None:
        if not near:
            raise Refused("preparation", "the run whose environment is wanted has no record of it")
        if near[0]["platform"] != self.platform:
            message = "the environment that is wanted was made for %s, and %s is %s"
            raise Refused("preparation", message % (near[0]["platform"], self.place.words, self.platform))
