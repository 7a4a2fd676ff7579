"""From a spec to its lock: once for all runs that want it at the same time, with the versions that other machines
have."""

import os
from typing import Any, Dict, List

from holdfast.farside import kernel
from holdfast.farside.environments import uv
from holdfast.farside.environments.complaints import explain
from holdfast.farside.environments.interpreters import Interpreter
from holdfast.farside.environments.locks import Lock, is_lock, lock_path, make_lock, minor, read_locks, write_lock
from holdfast.farside.environments.workshop import Workshop
from holdfast.farside.layout import BUILD_BYTE, Home
from holdfast.farside.refusal import Refused


class Resolver:
    def __init__(self, home: Home, plan: Dict[str, Any], shop: Workshop, variables: Dict[str, str]) -> None:
        self._home, self._plan, self._shop, self._variables = home, plan, shop, variables

    def lock(self, interpreter: Interpreter, platform: str, known: List[Lock]) -> Lock:
        """The first of `known` that is for this Python; else a new one."""
        for each in known:
            if minor(each["python"]) == minor(interpreter.version):
                return each
        spec = self._plan["spec"]
        path = lock_path(self._home, spec, minor(interpreter.version))
        held = os.open(path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            waited = self._wait_for(held)
            if waited:
                for each in read_locks(self._home, spec):
                    if minor(each["python"]) == minor(interpreter.version) and each["platform"] == platform:
                        return each
            text = self._plan["locked"] or self._resolve(interpreter)
            made = make_lock(spec, platform, interpreter.version, text)
            write_lock(path, made)
            return made
        finally:
            os.close(held)

    def _wait_for(self, held: int) -> bool:
        waited = False
        while not kernel.lock(held, BUILD_BYTE):
            if not waited:
                self._shop.phase("waiting for another run that resolves the same packages")
            waited = True
            self._shop.owner.wait(0.1)
        return waited

    def _resolve(self, interpreter: Interpreter) -> str:
        wanted = self._plan["requirements"]
        if not wanted:
            return ""
        source, target = (os.path.join(self._shop.folder, name) for name in ("requirements.in", "requirements.out"))
        with open(source, "w") as file:
            file.write("\n".join(self._plan["options"] + [text for text, _ in wanted]) + "\n")
        extra = list(self._plan["arguments"])
        if self._plan["constraints"]:
            limits = os.path.join(self._shop.folder, "constraints.in")
            with open(limits, "w") as file:
                file.write("\n".join(text for text, _ in self._plan["constraints"]) + "\n")
            extra += ["--constraint", limits]
        self._write_preferences(target)
        argv = uv.compile_command(self._plan["uv"], source, target, interpreter.path, extra)
        progress = uv.Progress(self._shop.phase, "resolving the packages")
        result = self._shop.run(argv, self._variables, progress.hear)
        if result.code != 0:
            raise Refused("preparation", explain(result.output, wanted).sentence())
        with open(target) as file:
            return file.read()

    def _write_preferences(self, target: str) -> None:
        """Versions that the same spec has on other platforms: uv keeps what fits, so that boxes agree."""
        others = [] if self._plan["upgrade"] else [each for each in self._plan["locks"] if is_lock(each)]
        with open(target, "w") as file:
            file.write(others[0]["requirements"] if others else "")
