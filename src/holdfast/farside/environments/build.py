"""Making an environment that is not there yet: a Python, a lock, and the build."""

import hashlib
import os
import shutil
import sys
from typing import Any, Callable, Dict, List, Optional, Tuple

from holdfast.farside.environments import shipped_packages, uv
from holdfast.farside.environments.built_environment import Environment, FoundEnvironment, Known, keep_lock, leave_word
from holdfast.farside.environments.conda_build import PYTHON as FOR_RATTLER
from holdfast.farside.environments.conda_build import CondaPart, python_packages, python_version
from holdfast.farside.environments.drivers import machine_of
from holdfast.farside.environments.installed import compiled, lines, packages_of_prefix
from holdfast.farside.environments.installer_errors import explain, reason_of
from holdfast.farside.environments.locks import (
    Lock,
    lock_digest,
    make_lock,
    minor,
    package_lines,
    torch_backend,
    without_notes,
)
from holdfast.farside.environments.pins import differences, narrowed, pins, summary_of
from holdfast.farside.environments.place import CONDA, BuildPlace, Interpreter, choose, satisfies, version_list
from holdfast.farside.environments.resolve import Resolver
from holdfast.farside.environments.torch_builds import public_versions
from holdfast.farside.environments.uv import path_of
from holdfast.farside.environments.workshop import Workshop
from holdfast.farside.machine import pythons
from holdfast.farside.system.children import inherited_environment
from holdfast.farside.system.files import write_whole
from holdfast.farside.system.layout import Home
from holdfast.farside.system.ownership import make_private
from holdfast.farside.system.refusal import Refused


def _bring_uv(home: Home, path: str, shop: Workshop) -> None:
    """Fetch the build of uv that runs in an image, with the one of this machine: `path` is where it is wanted."""
    folder = os.path.dirname(path)
    name, architecture, libc = os.path.basename(folder).rsplit("-", 2)
    here = Workshop(shop.owner, {}, [])
    new = "%s.new-%s" % (folder, os.urandom(8).hex())
    platform = "%s-unknown-linux-%s" % (architecture, "musl" if libc == "musl" else "gnu")
    argv = [path_of(home, name), "pip", "install", "--no-deps", "--only-binary", ":all:", "--target", new]
    argv += ["--python-platform", platform, "--python", sys.executable, name.replace("-", "==", 1)]
    shop.phase("fetching %s for %s" % (name, platform))
    try:
        result = here.run(argv, uv.variables(home, dict(inherited_environment()), uv.CACHE))
        if result.code != 0 or not os.path.exists(os.path.join(new, "bin", "uv")):
            reason = explain(result.output, []).sentence()
            raise Refused("preparation", "uv for %s could not be fetched: %s" % (platform, reason))
        make_private(folder)
        os.chmod(os.path.join(new, "bin", "uv"), 0o700)
        os.rename(os.path.join(new, "bin", "uv"), path)  # in one step: once it is found it can be run
    finally:
        shutil.rmtree(new, ignore_errors=True)


DEFAULT = ">=3.10,<3.13"
"""Where neither the spec nor the place says which Python: the newest of these that uv can have, which a mirror may
not."""


_NO_TOOL = (
    "py-rattler, which installs conda packages, needs a Python %s of its own, whatever the packages are for. %s: %s. "
    "Install a Python %s there, or name the packages under `pip:`."
)


_CHANGED = "The packages differ from those of the project's lock, which another machine made: %s."
_NOT_EXACTLY = "%s cannot recreate the other run's environment: %s."
_WITHOUT = "Submit to the machine of that run, or without --environment-of."


def _versions(lock: Optional[Lock]) -> Dict[str, str]:
    return public_versions(pins(lock["requirements"])) if lock else {}


class _NoPython(Refused):
    def __init__(self, place: BuildPlace, pin: str, found: str, reason: str) -> None:
        missing = "has no Python %s (it has: %s), and uv could not bring one" % (pin, found)
        self.short = "%s%s %s" % (place.words[:1].upper(), place.words[1:], missing)
        self.reason = reason.rstrip(".")
        remedy = "Install it there, name a channel that has it under `channels:`, or pin another one."
        Refused.__init__(self, "preparation", "%s %s: %s. %s" % (place.words, missing, self.reason, remedy))


class Maker:
    def __init__(self, known: Known, shop: Workshop) -> None:
        self._known, self._home, self._plan, self._shop = known, known.home, known.plan, shop
        self._place = known.place
        self._machine = machine_of(known.gpus, known.platform, "")
        self._uv_variables: Optional[Dict[str, str]] = None
        self._conda = CondaPart(known, shop, self._tool_python, self._machine.cuda or "")

    def make(self) -> Tuple[FoundEnvironment, bool]:
        """And whether it was built just now: another run may have been quicker."""
        self._shop.room.reach(self._named())
        if not os.path.exists(self._plan["uv"]):
            _bring_uv(self._home, self._plan["uv"], self._shop)
        try:
            is_conda = self._known.locks()[0]["conda"] if self._plan["exact"] else self._plan["conda"]
            interpreter, lock = self._from_conda() if is_conda else self._from_index_or_channels()
            environment, built = self._made(lock, interpreter)
        finally:
            self._conda.leave()
        for noted in [lock] + self._in_force():
            write_whole(self._known.note(noted), environment.id)
        return FoundEnvironment(environment, lock), built

    def _in_force(self) -> List[Lock]:
        """The project's lock that a later run is looked up by, whatever became of it here."""
        return [lock for lock in self._candidates()[:1] if lock in self._plan["locks"]]

    def _made(self, lock: Lock, interpreter: Interpreter) -> Tuple[Environment, bool]:
        """The environment that all places share, or this place's own if the shared one was compiled elsewhere."""
        shared = Environment(self._home, self._name(lock, interpreter, ""))
        built = self._ensured(shared, lock, interpreter)
        if self._place.can_use(shared.mark()):
            return shared, built
        shared.leave()
        own = Environment(self._home, self._name(lock, interpreter, self._place.tag or "machine"))
        return own, self._ensured(own, lock, interpreter)

    def _ensured(self, environment: Environment, lock: Lock, interpreter: Interpreter) -> bool:
        if environment.is_complete() and not self._place.can_use(environment.mark()):
            return False
        return environment.ensure(
            lambda: self._build(environment.path, lock, interpreter),
            bool(self._plan["rebuild"]),
            self._shop.owner.wait,
            self._shop.owner.tell,
        )

    def _named(self) -> List[str]:
        """All texts that may name files of this machine."""
        lines = [text for text, _ in self._plan["requirements"] + self._plan["constraints"]]
        settings = dict(self._shop.room.passes(inherited_environment()), **self._variables())
        return lines + list(self._plan["options"]) + list(settings.values()) + self._conda.addresses()

    def _from_index_or_channels(self) -> Tuple[Interpreter, Lock]:
        """A Python that neither the machine nor uv has may be in a channel, where the spec names some."""
        try:
            return self._from_index()
        except _NoPython as missing:
            if not self._plan["channels"] or self._plan["exact"]:
                raise
            self._shop.owner.tell("note", text="%s; it is taken from the conda channels." % missing.short)
        return self._from_conda()

    def _from_index(self) -> Tuple[Interpreter, Lock]:
        """All packages come from Python indexes; the Python is one that the place has or that uv brings."""
        interpreter = self._interpreter()

        def fits(lock: Lock) -> bool:
            return minor(lock["python"]) == minor(interpreter.version) and self._known.fits(lock)

        def make(preferred: Optional[Lock]) -> Lock:
            found = self._resolver().resolve(["--python", interpreter.path], [], _versions(preferred))
            return make_lock(
                self._plan["spec"], self._known.platform, interpreter.version, build=self._build_options(), **found
            )

        return interpreter, self._locked(minor(interpreter.version), fits, make)

    def _from_conda(self) -> Tuple[Interpreter, Lock]:
        """Python is one of the packages; those below `pip:` have to go with the versions that conda chose."""
        lock = self._locked(CONDA, self._known.fits, self._solved)
        return Interpreter(CONDA, lock["python"]), lock

    def _solved(self, preferred: Optional[Lock]) -> Lock:
        packages = self._conda.solve(self._known.platform, preferred)
        python = python_version(packages)
        theirs = python_packages(packages)
        extra = ["--python", self._conda.tool_python(), "--python-version", python]
        for each in theirs:
            extra += ["--no-emit-package", each.partition("==")[0]]
        found = self._resolver().resolve(extra, theirs, _versions(preferred))
        more = {
            "build": self._build_options(),
            "conda": packages,
            "cuda": self._machine.cuda or "",
            "backend": found["backend"],
        }
        return make_lock(self._plan["spec"], self._known.platform, python, found["requirements"], **more)

    def _locked(self, key: str, fits: Callable[[Lock], bool], make: Callable[[Optional[Lock]], Lock]) -> Lock:
        """The lock to install. What another machine made is never that: `make` resolves the spec here, with the
        versions of the lock that it is given where they fit."""
        if self._plan["exact"]:
            return self._exactly(self._known.locks()[0], make)
        first = next(filter(fits, self._candidates()), None)
        if first is None or self._known.may_install(first):
            others = [] if self._plan["upgrade"] else self._known.given()
            preferred = others[0] if others else None
            return self._resolver().lock(key, [first] if first else [], fits, lambda: make(preferred))
        made = self._resolver().lock(key, [], fits, lambda: make(first), first)
        changes = differences(made, first)
        if changes:
            self._shop.owner.tell("note", text=_CHANGED % summary_of(changes))
        return made

    def _exactly(self, wanted: Lock, make: Callable[[Optional[Lock]], Lock]) -> Lock:
        if self._known.may_install(wanted):
            return wanted
        made = make(wanted)
        changes = differences(made, wanted)
        if changes:
            raise Refused("preparation", _NOT_EXACTLY % (self._place.words, summary_of(changes)), _WITHOUT)
        return narrowed(made, wanted)

    def _build_options(self) -> List[str]:
        """Those that decide whether a package is taken ready-made: another environment comes of it."""
        return sorted(each for each in self._plan["options"] if each.startswith(("--no-binary", "--only-binary")))

    def _resolver(self) -> Resolver:
        return Resolver(self._home, self._plan, self._shop, self._variables(), self._machine)

    def _candidates(self) -> List[Lock]:
        return [] if self._plan["upgrade"] else self._known.locks()

    def _tool_python(self) -> str:
        found = self._place.pythons()
        chosen = self._place.choose(FOR_RATTLER, found)
        try:
            return (chosen or self._bring(DEFAULT, found)).path
        except _NoPython as missing:  # which the spec does not pin: no word about pins
            raise Refused("preparation", _NO_TOOL % (FOR_RATTLER, missing.short, missing.reason, FOR_RATTLER)) from None

    def _interpreter(self) -> Interpreter:
        pin, path = self._known.pin(), self._plan["interpreter"]
        if not pin:
            return self._unpinned(path)
        found = self._place.pythons()
        if self._plan["exact"]:  # the other run may have had what is active here
            found = self._place.active(path) + found
        for lock in self._known.locks():  # rather the Python that the packages were chosen for
            same = self._place.choose(minor(lock["python"]), found)
            if same is not None and satisfies(same.version, pin):
                return same
        return self._place.choose(pin, found) or self._bring(pin, found)

    def _unpinned(self, path: str) -> Interpreter:
        found = self._place.own(path)
        if found is None and self._place.has_none(path):
            return self._bring(DEFAULT, [])
        return found or self._asked(path)

    def _asked(self, path: str) -> Interpreter:
        """The user's own Python. It may hang: `cancel` ends it."""
        result = self._shop.run([path, "-I", "-c", pythons.QUESTION], {})
        version = pythons.version_said(result.output) if result.code == 0 else None
        if version is None:
            raise Refused("preparation", "the Python `%s` does not start: %s" % (path, reason_of(result.output)))
        return Interpreter(path, version)

    def _bring(self, pin: str, found: List[Interpreter]) -> Interpreter:
        progress = uv.UvProgress(self._shop.phase, "downloading Python %s" % pin)
        result = self._shop.run(uv.bring_command(self._plan["uv"], pin), self._variables(), progress.hear)
        if result.code == 0:
            chosen = choose(pin, self._place.brought())
            if chosen is not None:
                return chosen
        reason = explain(result.output, []).reason if result.code != 0 else "what uv brought does not start"
        raise _NoPython(self._place, pin, version_list(found), reason)

    def _build(self, path: str, lock: Lock, interpreter: Interpreter) -> Dict[str, Any]:
        if interpreter.path == CONDA:
            self._conda.install(lock["conda"], path, self._known.platform, bool(self._plan["rebuild"]))
            self._install(path, lock, None)
        else:
            self._install(path, lock, uv.venv_command(self._plan["uv"], path, interpreter.path))
        leave_word(path)
        keep_lock(path, lock)
        found = packages_of_prefix(path)
        said = {
            "packages": lines(found),
            "python": interpreter.version,
            "interpreter": interpreter.path,
            "platform": self._known.platform,
            "spec": self._plan["spec"],
            "summary": self._plan["summary"],
            "lock": lock_digest(lock),
            "place": self._place.tag,
            "compiled": compiled(found),
        }
        return dict(said, **self._place.about(interpreter.path))

    def _install(self, path: str, lock: Lock, venv: Optional[List[str]]) -> None:
        """`venv` makes the environment; None where conda has done so."""
        text = without_notes(lock["requirements"])
        if self._known.shipped:
            with shipped_packages.laid_out(self._home, self._known.shipped, self._shop.build_folder) as folder:
                text = shipped_packages.from_folder(text, folder)
                self._sync(path, [text], shipped_packages.install_arguments(folder), venv)
            return
        extra = uv.for_sync(self._plan["arguments"]) + torch_backend(lock)
        if self._plan["rebuild"]:
            extra.append("--no-cache")  # what is there may be what is wrong
        if any(each.startswith("--extra-index-url") for each in self._plan["options"]):
            extra += ["--index-strategy", "unsafe-best-match"]  # hashes say which file is meant
        self._sync(path, self._plan["options"] + [text], extra, venv)

    def _sync(self, path: str, texts: List[str], extra: List[str], venv: Optional[List[str]]) -> None:
        wanted = os.path.join(self._shop.build_folder, "requirements.lock")
        write_whole(wanted, "\n".join(texts) + "\n")
        count = len(package_lines(texts[-1]))
        if count:
            sync = uv.sync_command(self._plan["uv"], path, wanted, venv is None, extra)
            self._run(([venv] if venv else []) + [sync], "installing", count)
        elif venv:
            self._run([venv], "making the environment", 0)

    def _run(self, commands: List[List[str]], what: str, count: int) -> None:
        progress = uv.UvProgress(self._shop.phase, what, count)
        result = self._shop.run_all(commands, self._variables(), progress.hear)
        if result.code != 0:
            raise Refused("preparation", explain(result.output, self._plan["requirements"], result.signal).sentence())

    def _variables(self) -> Dict[str, str]:
        if self._uv_variables is None:
            given = dict(inherited_environment())
            theirs = uv.variables(self._home, given, self._place.cache)
            self._uv_variables = dict(theirs, HOLDFAST_FILES=self._plan["files"])
            self._uv_variables.update(shipped_packages.OFFLINE if self._known.shipped else {})
        return self._uv_variables

    def _name(self, lock: Lock, interpreter: Interpreter, tag: str) -> str:
        place = CONDA if interpreter.path == CONDA else self._place.identity(interpreter.path)
        content = [lock_digest(lock), interpreter.version, place, self._known.platform] + ([tag] if tag else [])
        return hashlib.sha256("\n".join(content).encode("utf-8", "surrogateescape")).hexdigest()[:16]
