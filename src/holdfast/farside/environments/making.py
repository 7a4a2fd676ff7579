"""Making an environment that is not there yet: a Python, a lock, and the build."""

import hashlib
import os
from typing import Any, Dict, List, Optional, Tuple

from holdfast.farside.environments import interpreters, shipped, uv
from holdfast.farside.environments.building import Environment, keep_lock, leave_word
from holdfast.farside.environments.complaints import explain, reason_of
from holdfast.farside.environments.conda import python_packages
from holdfast.farside.environments.conda_building import PYTHON as FOR_RATTLER
from holdfast.farside.environments.conda_building import CondaPart, python_version
from holdfast.farside.environments.drivers import machine_of
from holdfast.farside.environments.installed import lines, packages_of_prefix
from holdfast.farside.environments.interpreters import Interpreter
from holdfast.farside.environments.known import Found, Known
from holdfast.farside.environments.locks import Lock, lock_digest, make_lock, minor, package_lines, torch_backend
from holdfast.farside.environments.resolving import Resolver
from holdfast.farside.environments.versions import satisfies
from holdfast.farside.environments.workshop import Workshop
from holdfast.farside.machine import pythons
from holdfast.farside.refusal import Refused
from holdfast.farside.run.children import inherited_environment

CONDA = "conda"
"""In place of a Python of this machine: one out of the channels."""


class _NoPython(Refused):
    def __init__(self, pin: str, found: str, reason: str) -> None:
        self.short = "This machine has no Python %s (it has: %s), and uv could not bring one" % (pin, found)
        remedy = "Install it there, name a channel that has it under `channels:`, or pin another one."
        Refused.__init__(self, "preparation", "%s: %s. %s" % (_small(self.short), reason.rstrip("."), remedy))


class Maker:
    def __init__(self, known: Known, shop: Workshop) -> None:
        self._known, self._home, self._plan, self._shop = known, known.home, known.plan, shop
        self._machine = machine_of(known.gpus, known.platform, "")
        self._uv_variables: Optional[Dict[str, str]] = None
        self._conda = CondaPart(known.home, known.plan, shop, self._tool_python, self._machine.cuda or "")

    def make(self) -> Tuple[Found, bool]:
        """And whether it was built just now: another run may have been quicker."""
        interpreter, lock = self._from_conda() if self._is_conda() else self._from_index_or_channels()
        environment = Environment(self._home, self._name(lock, interpreter))
        built = environment.ensure(
            lambda: self._build(environment.path, lock, interpreter),
            bool(self._plan["rebuild"]),
            self._shop.owner.wait,
            self._shop.owner.tell,
        )
        self._write_note(lock, environment.id)
        return Found(environment, lock), built

    def _is_conda(self) -> bool:
        return bool(self._plan["locks"][0]["conda"] if self._plan["exact"] else self._plan["conda"])

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
        """All packages are Python's, and so is what they are for: a Python of this machine."""
        interpreter = self._interpreter()
        if self._plan["exact"]:
            return interpreter, dict(self._plan["locks"][0])

        def fits(lock: Lock) -> bool:
            return minor(lock["python"]) == minor(interpreter.version) and self._known.fits(lock)

        def make() -> Lock:
            found = self._resolver().resolve(["--python", interpreter.path], [])
            return make_lock(
                self._plan["spec"], self._known.platform, interpreter.version, build=self._build_options(), **found
            )

        return interpreter, self._resolver().lock(minor(interpreter.version), self._candidates(), fits, make)

    def _from_conda(self) -> Tuple[Interpreter, Lock]:
        """Python is one of the packages; those below `pip:` have to go with the versions that conda chose."""
        if self._plan["exact"]:
            lock = dict(self._plan["locks"][0])
        else:
            lock = self._resolver().lock(CONDA, self._candidates(), self._known.fits, self._solved)
        return Interpreter(CONDA, lock["python"]), lock

    def _solved(self) -> Lock:
        packages = self._conda.solve(self._known.platform, [] if self._plan["upgrade"] else self._plan["locks"])
        python = python_version(packages)
        theirs = python_packages(packages)
        extra = ["--python", self._conda.tool_python(), "--python-version", python]
        for each in theirs:
            extra += ["--no-emit-package", each.partition("==")[0]]
        found = self._resolver().resolve(extra, theirs)
        more = {
            "build": self._build_options(),
            "conda": packages,
            "cuda": self._machine.cuda or "",
            "backend": found["backend"],
        }
        return make_lock(self._plan["spec"], self._known.platform, python, found["requirements"], **more)

    def _build_options(self) -> List[str]:
        """Those that decide whether a package is taken ready-made: another environment comes of it."""
        return sorted(each for each in self._plan["options"] if each.startswith(("--no-binary", "--only-binary")))

    def _resolver(self) -> Resolver:
        return Resolver(self._home, self._plan, self._shop, self._variables(), self._machine)

    def _candidates(self) -> List[Lock]:
        return [] if self._plan["upgrade"] else self._known.locks()

    def _tool_python(self) -> str:
        found = interpreters.found_here(self._home, inherited_environment())
        return (interpreters.choose(FOR_RATTLER, found) or self._bring("3.12", found)).path

    def _interpreter(self) -> Interpreter:
        pin, path, inherited = self._known.pin(), self._plan["interpreter"], inherited_environment()
        if not pin:
            return self._asked(path)
        found = interpreters.found_here(self._home, inherited)
        if self._plan["exact"]:  # the other run may have had what is active here
            active = interpreters.versions_of([path], inherited).get(path)
            found = ([Interpreter(path, active)] if active else []) + found
        for lock in self._known.locks():  # rather the Python that the packages were chosen for
            same = interpreters.choose(minor(lock["python"]), found)
            if same is not None and satisfies(same.version, pin):
                return same
        return interpreters.choose(pin, found) or self._bring(pin, found)

    def _asked(self, path: str) -> Interpreter:
        """The user's own: where it does not come to an end, `cancel` ends it."""
        result = self._shop.run([path, "-I", "-c", pythons.QUESTION], {})
        version = pythons.version_said(result.output) if result.code == 0 else None
        if version is None:
            raise Refused("preparation", "the Python `%s` does not start: %s" % (path, reason_of(result.output)))
        return Interpreter(path, version)

    def _bring(self, pin: str, found: List[Interpreter]) -> Interpreter:
        progress = uv.Progress(self._shop.phase, "downloading Python %s" % pin)
        result = self._shop.run(uv.bring_command(self._plan["uv"], pin), self._variables(), progress.hear)
        if result.code == 0:
            versions = interpreters.versions_of(interpreters.brought(self._home), inherited_environment())
            chosen = interpreters.choose(pin, [Interpreter(path, each) for path, each in versions.items() if each])
            if chosen is not None:
                return chosen
        reason = explain(result.output, []).reason if result.code != 0 else "what uv brought does not start"
        raise _NoPython(pin, interpreters.shown(found), reason)

    def _build(self, path: str, lock: Lock, interpreter: Interpreter) -> Dict[str, Any]:
        is_conda = interpreter.path == CONDA
        if is_conda:
            self._conda.install(lock["conda"], path, self._known.platform, bool(self._plan["rebuild"]))
        else:
            self._run(uv.venv_command(self._plan["uv"], path, interpreter.path), "making the environment", 0)
        self._install(path, lock, is_conda)
        leave_word(path)
        keep_lock(path, lock)
        return {
            "packages": lines(packages_of_prefix(path)),
            "python": interpreter.version,
            "interpreter": interpreter.path,
            "platform": self._known.platform,
            "spec": self._plan["spec"],
            "summary": self._plan["summary"],
            "lock": lock_digest(lock),
        }

    def _install(self, path: str, lock: Lock, is_conda: bool) -> None:
        if self._known.shipped:
            with shipped.laid_out(self._home, self._known.shipped, self._shop.folder) as folder:
                text = shipped.from_folder(lock["requirements"], folder)
                self._sync(path, [text], shipped.install_arguments(folder), is_conda)
            return
        extra = uv.for_sync(self._plan["arguments"]) + torch_backend(lock)
        if self._plan["rebuild"]:
            extra.append("--no-cache")  # what is there may be what is wrong
        if any(each.startswith("--extra-index-url") for each in self._plan["options"]):
            extra += ["--index-strategy", "unsafe-best-match"]  # hashes say which file is meant
        self._sync(path, self._plan["options"] + [lock["requirements"]], extra, is_conda)

    def _sync(self, path: str, texts: List[str], extra: List[str], is_conda: bool) -> None:
        wanted = os.path.join(self._shop.folder, "requirements.lock")
        with open(wanted, "w") as target:
            target.write("\n".join(texts) + "\n")
        count = len(package_lines(texts[-1]))
        if count:
            self._run(uv.sync_command(self._plan["uv"], path, wanted, is_conda, extra), "installing", count)

    def _run(self, argv: List[str], what: str, count: int) -> None:
        progress = uv.Progress(self._shop.phase, what, count)
        result = self._shop.run(argv, self._variables(), progress.hear)
        if result.code != 0:
            raise Refused("preparation", explain(result.output, self._plan["requirements"], result.signal).sentence())

    def _variables(self) -> Dict[str, str]:
        if self._uv_variables is None:
            given = dict(inherited_environment())
            self._uv_variables = dict(uv.variables(self._home, given), HOLDFAST_FILES=self._plan["files"])
            self._uv_variables.update(shipped.OFFLINE if self._known.shipped else {})
        return self._uv_variables

    def _name(self, lock: Lock, interpreter: Interpreter) -> str:
        place = CONDA if interpreter.path == CONDA else os.path.realpath(interpreter.path)
        content = [lock_digest(lock), interpreter.version, place, self._known.platform]
        return hashlib.sha256("\n".join(content).encode("utf-8", "surrogateescape")).hexdigest()[:16]

    def _write_note(self, lock: Lock, name: str) -> None:
        path = self._known.note(lock)
        new = "%s.new-%d" % (path, os.getpid())
        with open(new, "w") as target:
            target.write(name)
        os.rename(new, path)


def _small(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
