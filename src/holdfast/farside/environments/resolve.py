"""From a spec to its lock: once for all runs that want it at the same time, with the versions that other machines
have."""

import os
import re
from typing import Any, Callable, Dict, List, Optional, Tuple

from holdfast.farside.environments import torch_builds, uv
from holdfast.farside.environments.drivers import EnvironmentMachine, torch_is_too_new
from holdfast.farside.environments.installer_errors import explain, plain
from holdfast.farside.environments.locks import (
    Lock,
    is_lock,
    keep_own,
    lock_path,
    package_lines,
    read_locks,
    write_lock,
)
from holdfast.farside.environments.torch_builds import AUTO, CPU, TorchBuild, build_among, is_needless
from holdfast.farside.environments.workshop import Workshop
from holdfast.farside.system import kernel
from holdfast.farside.system.children import inherited_environment
from holdfast.farside.system.files import read_json, write_whole
from holdfast.farside.system.layout import BUILD_BYTE, Home
from holdfast.farside.system.nofollow import read_plain
from holdfast.farside.system.refusal import Refused

_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")
_LARGEST_LOCK = 64 << 20
_NO_EXTRA = re.compile(r"does not have an extra named `([\w.-]+)`")
_FILES = "${HOLDFAST_FILES}"
_ARCHIVE = re.compile(r"\.(?:whl|zip|t?gz|tar\.\w+)(?:\[|\s|$)")


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
            kept = "\n".join(line for line in lines if not line.startswith("-"))  # options stand beside the lock
            build = build_among(package_lines(kept))
            if build is not None and is_needless(build, self._machine):
                self._note(torch_builds.said_of_locked(build))
            return {"requirements": kept, "backend": ""}
        if not self._plan["requirements"]:
            return {"requirements": "", "backend": ""}
        self._preferred = preferred
        found = self._compiled(extra, limits, {})
        build = build_among(package_lines(found))
        if build is None or self._plan["exact"]:
            return {"requirements": found, "backend": ""}
        if is_needless(build, self._machine):
            return self._for_the_cpu(found, build, extra, limits)
        if not torch_is_too_new(package_lines(found), self._machine):
            self._note(torch_builds.said_of(build, self._machine))
            return {"requirements": found, "backend": ""}
        driver = self._machine.driver or ""
        self._note("The usual build of PyTorch needs a newer driver than %s: one that fits is looked for." % driver)
        return self._with_backend(AUTO, extra, limits, {"UV_CUDA_DRIVER_VERSION": driver})

    def _for_the_cpu(self, found: str, build: TorchBuild, extra: List[str], limits: List[str]) -> Dict[str, str]:
        """The same packages with the build for the CPU. `found` is what there is without it, and stays where the user
        chose it, or PyTorch's index does not answer."""
        texts = [text for text, _ in self._plan["requirements"] + self._plan["constraints"]]
        settings = dict(self._shop.room.passes(inherited_environment()), **self._variables)
        if torch_builds.is_chosen(self._plan["options"], texts, settings):
            self._note(torch_builds.said_of_kept(build))
            return {"requirements": found, "backend": ""}
        try:
            return self._with_backend(CPU, extra, limits, torch_builds.QUICKLY)
        except Refused as refused:
            if refused.kind != "preparation":
                raise
            self._note(torch_builds.said_of_unreachable(build, str(refused).split(". ")[0].rstrip(".")))
            return {"requirements": found, "backend": ""}

    def _with_backend(self, backend: str, extra: List[str], limits: List[str], more: Dict[str, str]) -> Dict[str, str]:
        found = self._compiled(extra + ["--torch-backend", backend], limits, more)
        build = build_among(package_lines(found))
        if build is not None:
            self._note(torch_builds.said_of(build, self._machine))
        return {"requirements": found, "backend": backend}

    def _note(self, text: str) -> None:
        if text:
            self._shop.owner.tell("note", text=text)

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
        for name in _NO_EXTRA.findall(plain(result.output)):
            self._note("There is no extra `%s`, so it adds no packages." % name)
        return without_folders(read_plain(target, _LARGEST_LOCK).decode("utf-8"))

    def _about_variables(self) -> str:
        """Addresses may name variables, and an address with an empty one is answered in many ways."""
        texts = self._plan["options"] + [text for text, _ in self._plan["requirements"]]
        named = {name for text in texts for name in _VARIABLE.findall(text)}
        known = set(self._shop.room.passes(inherited_environment()))
        unset = sorted(named - set(self._plan["secrets"]) - known - {"HOLDFAST_FILES"})
        return "".join(
            " The variable `%s` in an address has no value: set it where you submit." % name for name in unset
        )


def without_folders(requirements: str) -> str:
    """Without the project's own folders, whose builds were asked what they depend on: a run has their files."""
    kept: List[str] = []
    is_folder = False
    for line in requirements.splitlines():
        if not line.startswith((" ", "\t")):
            is_folder = line.startswith(_FILES) and not _ARCHIVE.search(line)
        if not is_folder:
            kept.append(line + "\n")
    return "".join(kept)


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
