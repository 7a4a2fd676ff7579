"""From a spec to its lock: once for all runs that want it at the same time, with the versions that other machines
have."""

import os
import re
from typing import Any, Callable, Dict, List, Optional, Tuple

from holdfast.farside.environments import uv
from holdfast.farside.environments.drivers import EnvironmentMachine, torch_is_too_new
from holdfast.farside.environments.installer_errors import explain
from holdfast.farside.environments.locks import (
    Lock,
    is_lock,
    keep_own,
    lock_path,
    package_lines,
    read_locks,
    write_lock,
)
from holdfast.farside.environments.workshop import Workshop
from holdfast.farside.system import kernel
from holdfast.farside.system.children import inherited_environment
from holdfast.farside.system.files import read_json, write_whole
from holdfast.farside.system.layout import BUILD_BYTE, Home
from holdfast.farside.system.nofollow import read_plain
from holdfast.farside.system.refusal import Refused

_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")
_BACKEND = "auto"
_LARGEST_LOCK = 64 << 20


class Resolver:
    """`machine` tells which driver there is: a build of PyTorch that it cannot run is not taken."""

    def __init__(
        self, home: Home, plan: Dict[str, Any], shop: Workshop, variables: Dict[str, str], machine: EnvironmentMachine
    ) -> None:
        self._home, self._plan, self._shop, self._variables, self._machine = home, plan, shop, variables, machine
        self._preferred: Dict[str, str] = {}

    def lock(
        self,
        key: str,
        known: List[Lock],
        fits: Callable[[Lock], bool],
        make: Callable[[], Lock],
        origin: Optional[Lock] = None,
    ) -> Lock:
        """Returns the first of `known` that fits, else what another run made meanwhile, else what `make` makes. `key`
        is what the spec is resolved for: a version of Python, or `conda`. `origin`: the lock of another machine that
        `make` derives it from."""
        for each in known:
            if fits(each):
                return each
        spec = self._plan["spec"]
        path = lock_path(self._home, spec, key, origin)
        before = _version(path)
        held = os.open(path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._wait_for(held)
            if not self._plan["upgrade"] or _version(path) != before:  # another run may have ended meanwhile
                for each in read_locks(self._home, spec) if origin is None else _read(path):
                    if fits(each):
                        return each
            made = make()
            write_lock(path, made)
            keep_own(self._home.locks(), made)
            return made
        finally:
            os.close(held)

    def resolve(self, extra: List[str], limits: List[str], preferred: Dict[str, str]) -> Dict[str, str]:
        """`requirements` with hashes and the `backend` that was chosen for PyTorch. `extra` are arguments, among them
        the Python; `limits` are constraints beside those of the spec; `preferred` are versions by name, kept where
        they fit, so that boxes agree."""
        if self._plan["locked"]:
            lines = self._plan["locked"].splitlines()
            kept = [line for line in lines if not line.startswith("-")]  # options stand beside the lock
            return {"requirements": "\n".join(kept), "backend": ""}
        if not self._plan["requirements"]:
            return {"requirements": "", "backend": ""}
        self._preferred = preferred
        found = self._compiled(extra, limits, {})
        if not torch_is_too_new(package_lines(found), self._machine):
            return {"requirements": found, "backend": ""}
        driver = self._machine.driver or ""
        self._shop.owner.tell(
            "note",
            text="The usual build of PyTorch needs a newer driver than %s: one that fits is looked for." % driver,
        )
        chosen = extra + ["--torch-backend", _BACKEND]
        return {
            "requirements": self._compiled(chosen, limits, {"UV_CUDA_DRIVER_VERSION": driver}),
            "backend": _BACKEND,
        }

    def _wait_for(self, held: int) -> None:
        waited = False
        while not kernel.lock(held, BUILD_BYTE):
            if not waited:
                self._shop.phase("waiting for another run that resolves the same packages")
            waited = True
            self._shop.owner.wait(0.1)

    def _compiled(self, extra: List[str], limits: List[str], variables: Dict[str, str]) -> str:
        wanted = self._plan["requirements"]
        source, target = (
            os.path.join(self._shop.build_folder, name) for name in ("requirements.in", "requirements.out")
        )
        _write(source, self._plan["options"] + [text for text, _ in wanted])
        arguments = list(self._plan["arguments"]) + extra
        limits = limits + [text for text, _ in self._plan["constraints"]]
        if limits:
            named = os.path.join(self._shop.build_folder, "constraints.in")
            _write(named, limits)
            arguments += ["--constraint", named]
        _write(target, ["%s==%s" % each for each in sorted(self._preferred.items())])
        argv = uv.compile_command(self._plan["uv"], source, target, arguments)
        progress = uv.UvProgress(self._shop.phase, "resolving the packages")
        result = self._shop.run(argv, dict(self._variables, **variables), progress.hear)
        if result.code != 0:
            raise Refused("preparation", explain(result.output, wanted).sentence() + self._about_variables())
        return read_plain(target, _LARGEST_LOCK).decode("utf-8")

    def _about_variables(self) -> str:
        """Addresses may name variables, and an address with an empty one is answered in many ways."""
        texts = self._plan["options"] + [text for text, _ in self._plan["requirements"]]
        named = {name for text in texts for name in _VARIABLE.findall(text)}
        known = set(self._shop.room.passes(inherited_environment()))
        unset = sorted(named - set(self._plan["secrets"]) - known - {"HOLDFAST_FILES"})
        return "".join(
            " The variable `%s` in an address has no value: set it where you submit." % name for name in unset
        )


def _read(path: str) -> List[Lock]:
    found = read_json(path)
    return [found] if found is not None and is_lock(found) else []


def _version(path: str) -> Optional[Tuple[int, int]]:
    """Changes when the file is replaced; None if there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _write(path: str, lines: List[str]) -> None:
    write_whole(path, "".join(line + "\n" for line in lines))
