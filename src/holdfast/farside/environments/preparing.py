"""The environment of a run: which Python, exactly which packages, found or built. What was asked for before costs a few
looks at the disk."""

import hashlib
import os
import time
from typing import Any, Dict, List, NamedTuple, Optional

from holdfast.farside.environments import interpreters, uv
from holdfast.farside.environments.building import Environment, keep_lock
from holdfast.farside.environments.complaints import explain, reason_of
from holdfast.farside.environments.installed import lines, packages_of_prefix
from holdfast.farside.environments.interpreters import Interpreter
from holdfast.farside.environments.locks import (
    Lock,
    is_lock,
    lock_digest,
    minor,
    package_count,
    read_locks,
    write_lock,
)
from holdfast.farside.environments.platforms import platform_name
from holdfast.farside.environments.resolving import Resolver
from holdfast.farside.environments.workshop import Workshop
from holdfast.farside.layout import ENVIRONMENT, Home
from holdfast.farside.machine import pythons
from holdfast.farside.refusal import Refused
from holdfast.farside.run.children import inherited_environment

Plan = Dict[str, Any]


class Prepared(NamedTuple):
    environment: Environment
    lock: Lock
    packages: List[str]
    python: str
    built: bool
    seconds: float


class Preparation:
    """`plan` is the plan's environment with its holes filled."""

    def __init__(self, home: Home, plan: Plan, shop: Workshop, may_build: bool) -> None:
        self._home, self._plan, self._shop, self._may_build = home, plan, shop, may_build
        self._platform = platform_name()
        self._uv_variables: Optional[Dict[str, str]] = None

    def prepare(self) -> Prepared:
        began = time.monotonic()
        os.makedirs(self._home.locks(), exist_ok=True)
        found = None if self._plan["rebuild"] or self._plan["upgrade"] else self._known()
        environment, lock, built = (found[0], found[1], False) if found else self._make()
        mark = environment.mark()
        packages = [str(each) for each in mark.get("packages", [])]
        seconds = round(time.monotonic() - began, 3)
        write_lock(os.path.join(self._shop.folder, ENVIRONMENT), lock)
        return Prepared(environment, lock, packages, str(mark.get("python", "")), built, seconds)

    def _known(self) -> Optional[Any]:
        """One that is complete, by what was noted when it was built; nothing is started."""
        for lock in self._locks():
            try:
                with open(self._note(lock)) as source:
                    environment = Environment(self._home, source.read().strip())
            except (OSError, Refused):
                continue
            if environment.use():
                return environment, lock
        return None

    def _locks(self) -> List[Lock]:
        """Those that may be used here, the project's own before the host's."""
        near = [lock for lock in self._plan["locks"] if is_lock(lock)]
        if self._plan["exact"]:
            self._require_fitting(near)
            return near
        return [lock for lock in near + read_locks(self._home, self._plan["spec"]) if self._fits(lock)]

    def _fits(self, lock: Lock) -> bool:
        pin = self._plan["python"]
        return lock["platform"] == self._platform and (not pin or interpreters.satisfies(lock["python"], pin))

    def _require_fitting(self, near: List[Lock]) -> None:
        if not near:
            raise Refused("preparation", "the run whose environment is wanted has no record of it")
        if near[0]["platform"] != self._platform:
            message = "the environment that is wanted was made for %s, and this machine is %s"
            raise Refused("preparation", message % (near[0]["platform"], self._platform))

    def _make(self) -> Any:
        if not self._may_build:
            raise Refused("preparation", "it is not built yet, and `PrepareEnvironment` is false")
        if self._plan["conda"]:
            raise Refused("preparation", "packages of conda cannot be installed here yet")
        interpreter = self._interpreter()
        lock = self._lock_for(interpreter)
        environment = Environment(self._home, self._name(lock, interpreter))
        built = environment.ensure(
            lambda: self._build(environment.path, lock, interpreter),
            bool(self._plan["rebuild"]),
            self._shop.owner.wait,
            self._shop.owner.tell,
        )
        self._write_note(lock, environment.id)
        return environment, lock, built

    def _interpreter(self) -> Interpreter:
        pin, path, inherited = self._pin(), self._plan["interpreter"], inherited_environment()
        if not pin:
            return self._asked(path)
        found = interpreters.found_here(self._home, inherited)
        for lock in self._locks():  # rather the Python that the packages were chosen for
            same = interpreters.choose(minor(lock["python"]), found)
            if same is not None and interpreters.satisfies(same.version, pin):
                return same
        return interpreters.choose(pin, found) or self._bring(pin, found)

    def _asked(self, path: str) -> Interpreter:
        """The user's own: where it does not come to an end, `cancel` ends it."""
        result = self._shop.run([path, "-I", "-c", pythons.QUESTION], {})
        version = pythons.version_said(result.output) if result.code == 0 else None
        if version is None:
            raise Refused("preparation", "the Python `%s` does not start: %s" % (path, reason_of(result.output)))
        return Interpreter(path, version)

    def _pin(self) -> str:
        """The environment of another run has that run's Python, to the last number."""
        return str(self._plan["locks"][0]["python"] if self._plan["exact"] else self._plan["python"] or "")

    def _bring(self, pin: str, found: List[Interpreter]) -> Interpreter:
        progress = uv.Progress(self._shop.phase, "downloading Python %s" % pin)
        result = self._shop.run(uv.bring_command(self._plan["uv"], pin), self._variables(), progress.hear)
        if result.code == 0:
            versions = interpreters.versions_of(interpreters.brought(self._home), inherited_environment())
            chosen = interpreters.choose(pin, [Interpreter(path, each) for path, each in versions.items() if each])
            if chosen is not None:
                return chosen
        reason = explain(result.output, []).reason if result.code != 0 else "what uv brought does not start"
        message = "this machine has no Python %s (it has: %s), and uv could not bring one: %s"
        raise Refused("preparation", message % (pin, interpreters.shown(found), reason))

    def _lock_for(self, interpreter: Interpreter) -> Lock:
        if self._plan["exact"]:
            return dict(self._plan["locks"][0])
        resolver = Resolver(self._home, self._plan, self._shop, self._variables())
        return resolver.lock(interpreter, self._platform, [] if self._plan["upgrade"] else self._locks())

    def _build(self, path: str, lock: Lock, interpreter: Interpreter) -> Dict[str, Any]:
        self._run(uv.venv_command(self._plan["uv"], path, interpreter.path), "making the environment", 0)
        wanted = os.path.join(self._shop.folder, "requirements.lock")
        with open(wanted, "w") as target:
            target.write("\n".join(self._plan["options"] + [lock["requirements"]]) + "\n")
        count = package_count(lock)
        if count:
            extra = self._plan["arguments"]
            self._run(uv.sync_command(self._plan["uv"], path, wanted, False, extra), "installing", count)
        keep_lock(path, lock)
        return {
            "packages": lines(packages_of_prefix(path)),
            "python": interpreter.version,
            "interpreter": interpreter.path,
            "platform": self._platform,
            "spec": self._plan["spec"],
            "summary": self._plan["summary"],
            "lock": lock_digest(lock),
        }

    def _run(self, argv: List[str], what: str, count: int) -> None:
        progress = uv.Progress(self._shop.phase, what, count)
        result = self._shop.run(argv, self._variables(), progress.hear)
        if result.code != 0:
            raise Refused("preparation", explain(result.output, self._plan["requirements"]).sentence())

    def _variables(self) -> Dict[str, str]:
        if self._uv_variables is None:
            given = dict(inherited_environment())
            self._uv_variables = dict(uv.variables(self._home, given), HOLDFAST_FILES=self._plan["files"])
        return self._uv_variables

    def _name(self, lock: Lock, interpreter: Interpreter) -> str:
        content = [lock_digest(lock), interpreter.version, os.path.realpath(interpreter.path), self._platform]
        return hashlib.sha256("\n".join(content).encode("utf-8", "surrogateescape")).hexdigest()[:16]

    def _note(self, lock: Lock) -> str:
        """Where the name of the environment that this lock became is noted, for the Python that is asked for."""
        path = self._plan["interpreter"]
        wanted = self._pin() or os.path.realpath(path)
        content = "%s\n%s" % (lock_digest(lock), wanted)
        name = hashlib.sha256(content.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        return os.path.join(self._home.locks(), name + ".id")

    def _write_note(self, lock: Lock, name: str) -> None:
        path = self._note(lock)
        new = "%s.new-%d" % (path, os.getpid())
        with open(new, "w") as target:
            target.write(name)
        os.rename(new, path)
