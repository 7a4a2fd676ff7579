"""What was built for a spec before, found by looks at the disk alone. Every submission comes this way, and most need no
more: whatever builds is loaded elsewhere."""

from typing import Any, Dict, List, NamedTuple, Optional

from holdfast.farside.environments.built_environment import Environment, names
from holdfast.farside.environments.interpreters import satisfies
from holdfast.farside.environments.locks import (
    Lock,
    is_honest,
    is_lock,
    lock_digest,
    note_path,
    package_lines,
    read_locks,
)
from holdfast.farside.environments.place import BuildPlace
from holdfast.farside.system.layout import Home
from holdfast.farside.system.refusal import Refused

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
        """One that is complete, by what was noted when it was built; nothing is started."""
        for lock in self.locks():
            try:
                with open(self.note(lock)) as source:
                    environment = Environment(self.home, source.read().strip())
            except (OSError, Refused):
                continue
            if environment.use():
                if self.place.can_use(environment.mark()):
                    return FoundEnvironment(environment, lock)
                environment.leave()
        return self._made_before() if self.plan["exact"] else None

    def locks(self) -> List[Lock]:
        """Those that may be used here, the project's own before the host's."""
        asked = [text for text, _ in self.plan["requirements"] + self.plan["constraints"]] + [self.plan["locked"]]
        near = [lock for lock in self.plan["locks"] if is_lock(lock) and is_honest(lock, asked)]
        if self.plan["exact"]:
            self._require_fitting(near)
            return near
        # What was sent is for the first lock: another one would need an index.
        known = near if self.shipped else near + read_locks(self.home, self.plan["spec"])
        return [lock for lock in known if self.fits(lock)]

    def fits(self, lock: Lock) -> bool:
        pin = self.plan["python"]
        is_for_this = lock["platform"] == self.platform and (not pin or satisfies(lock["python"], pin))
        return is_for_this and self._suits_driver(lock)

    def _suits_driver(self, lock: Lock) -> bool:
        """Whether its packages were chosen for a driver like this one: a CPU build is not for a machine with GPUs."""
        has_driver = bool(self.gpus.get("driver"))
        if lock["conda"] and bool(lock.get("cuda")) != has_driver:
            return False
        if not has_driver:
            return True
        from holdfast.farside.environments.drivers import machine_of, numbers, torch_is_too_new

        machine = machine_of(self.gpus, self.platform, "")
        if lock["conda"]:
            return numbers(lock["cuda"]) <= numbers(machine.cuda)
        return bool(lock["backend"]) or not torch_is_too_new(package_lines(lock["requirements"]), machine)

    def pin(self) -> str:
        """The environment of another run has that run's Python, to the last number."""
        return str(self.plan["locks"][0]["python"] if self.plan["exact"] else self.plan["python"] or "")

    def note(self, lock: Lock) -> str:
        """Where the name of the environment that this lock became is noted, for the Python that is asked for."""
        return note_path(self.home, lock, self.place.noted_as(self.pin(), self.plan["interpreter"]))

    def _made_before(self) -> Optional[FoundEnvironment]:
        """Of another run: whichever was made from its lock with its Python, wherever that was found."""
        lock = self.plan["locks"][0]
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
