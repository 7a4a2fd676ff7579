"""Packages for a machine that reaches no index (`--ship-packages`): chosen here for its platform and its Python,
downloaded once, sent as objects of which only those travel that it lacks."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.codec import encode
from holdfast.containers import Names
from holdfast.environments.environment_plan import Lock, is_lock, is_own, keep_lock, keep_own
from holdfast.environments.foreign_resolution import (
    ForeignMachine,
    Installer,
    brings_needless_cuda,
    index_variables,
    resolve_for,
    wheel_files,
)
from holdfast.errors import FarSideError, HostError, NotAvailable, PreparationError
from holdfast.frozen import replace
from holdfast.hosts.client import Client
from holdfast.hosts.connection import Connection
from holdfast.plan import EnvironmentPlan
from holdfast.project.own_home import make_own
from holdfast.project.quantities import format_size
from holdfast.shown_text import pasted
from holdfast.snapshots.manifest import encode_rows
from holdfast.snapshots.store import ObjectStore, cannot_write
from holdfast.whole_files import write_whole
from holdfast.workbench.reach import events
from holdfast.workbench.reach.context import Context
from holdfast.workbench.submitting.run_plan import Intent, container_plan, intended_environment
from holdfast.workbench.submitting.send import Sender
from holdfast.workbench.submitting.tools import find_uv

_HALF_WRITTEN = 3600.0
"""Seconds after which a download that nothing continues is removed."""


def ship(
    intent: Intent, connection: Connection, secrets: Mapping[str, str], context: Context
) -> Generator[events.Event, None, Intent]:
    """The intent with an environment whose packages are all here, ready to be sent. Where the host has built it,
    nothing is downloaded and nothing will be sent. Raises PreparationError where a package cannot be had."""
    host, plan = intent.product.host, intended_environment(intent, context)
    if host.is_here or plan is None:
        yield events.Noted("--ship-packages is for other machines; this one gets its packages itself.")
        return intent
    if plan.conda or (plan.exact and plan.locks[0]["conda"]):
        raise _no_conda()
    shipping = _Shipping(intent, connection, secrets, context)
    yield events.Doing(f"asking {intent.configuration.target.name} which packages fit it")
    there = shipping.ask(plan)
    lock = there.lock
    if lock is not None and lock["conda"]:
        raise _no_conda()
    is_enough = there.is_built and not plan.rebuild
    if lock is None or not (is_enough or shipping.is_own(lock)):
        yield events.Doing(f"choosing packages for {there.machine}")
        lock = shipping.resolve(plan, lock, there.machine)
        yield from _about_pytorch(str(lock["requirements"]), there.machine)
        there = shipping.ask(replace(plan, locks=(lock,), upgrade=False))
    settled = replace(plan, locks=(lock,), upgrade=False)
    will_build = intent.configuration.run.prepare_environment or intent.request.prepare_only
    if will_build and (plan.rebuild or not there.is_built):
        settled = replace(settled, packages=(yield from shipping.bring(settled, lock, there.machine)))
    return replace(intent, shipped=settled)


def _about_pytorch(requirements: str, machine: ForeignMachine) -> Iterator[events.Event]:
    if brings_needless_cuda(requirements, machine):
        yield events.Noted("Sending PyTorch with its packages for CUDA, though that machine has no GPU.")
    elif re.search(r"^torch==\S+\+cpu", requirements, re.MULTILINE):
        yield events.Noted("Sending PyTorch's build for the CPU: that machine has no GPU.")


def send_packages(connection: Connection, manifest: str, context: Context) -> Iterator[events.Event]:
    """Those of the manifest that the host lacks. What a broken link left there is continued."""
    sender = Sender(connection, _store(context), manifest, None)
    sender.announce(at_once=0)
    was_told = False
    for event in sender.complete():
        if not was_told:
            yield events.Noted(f"Sending packages that are not there yet: {format_size(event.total)}.")
        was_told = True
        yield event
    sender.confirm()


class _There(NamedTuple):
    """What a host said: what it is, which lock it would take, and whether that is built."""

    machine: ForeignMachine
    lock: Lock | None
    is_built: bool


class _Shipping:
    def __init__(self, intent: Intent, connection: Connection, secrets: Mapping[str, str], context: Context) -> None:
        self._intent, self._connection, self._context = intent, connection, context
        self._secrets, self._store = secrets, _store(context)
        self._variables = {
            **context.for_children(),
            **index_variables(context.for_children(), context.user_home),
        }

    def ask(self, plan: EnvironmentPlan) -> _There:
        target = self._intent.configuration.target
        question = {
            "spec": plan.spec,
            "python": plan.python,
            "location": target.python_location,
            "locks": list(plan.locks),
            "exact": plan.exact,
            "anew": plan.upgrade,
            **self._container(),
        }
        try:
            answer = Client(self._connection).environment_target(question)
        except FarSideError as error:
            if error.kind not in ("preparation", "cannot-start"):
                raise
            raise PreparationError(f"{target.name}: {error.message}", error.hint) from error
        if answer.python is None:
            wanted = plan.locks[0]["python"] if plan.exact else plan.python
            raise PreparationError(
                f"{target.name} has no Python {wanted}, and packages do not bring one. It has: {answer.found}.",
                "Pin one of these in the environment's file, or install that Python over there.",
            )
        if not re.fullmatch(r"3\.\d+\.\d[a-z0-9]*", answer.python[1], re.ASCII):
            raise HostError(
                f"{target.name} reported an invalid Python version: `{answer.python[1]}`.",
                f"Check it: holdfast computetarget check {pasted(target.name)}",
            )
        lock = answer.lock if answer.lock is not None and is_lock(answer.lock) else None
        machine = ForeignMachine(answer.platform, answer.python[1], answer.driver or "", answer.without_gpu)
        return _There(machine, lock, answer.built)

    def _container(self) -> dict[str, Any]:
        project = self._intent.project
        plan = container_plan(self._intent, Names("", project.id, project.name))
        return {} if plan is None else {"container": encode(plan)}

    def is_own(self, lock: Lock) -> bool:
        """Whether this machine chose the packages: what a host says is not downloaded here in its own words."""
        return is_own(self._context.home, lock)

    def resolve(self, plan: EnvironmentPlan, known: Lock | None, machine: ForeignMachine) -> Lock:
        """`known`: the lock that the host would take. It may name any: the project's own count."""
        if known is not None and (known in plan.locks or not plan.locks):
            plan = replace(plan, locks=(known,))
        lock = resolve_for(machine, plan, self._installer(plan))
        if not plan.exact:
            with contextlib.suppress(OSError):  # it is chosen again the next time
                keep_own(self._context.home, lock)
                keep_lock(self._intent.project.state_directory, lock, plan.spec, replace=True)
        return lock

    def bring(self, plan: EnvironmentPlan, lock: Lock, machine: ForeignMachine) -> Generator[events.Event, None, str]:
        """Every file of the lock into the store; the digest of the manifest that names them."""
        kept = self._context.home / "cache" / "package-lists" / f"{_key(lock, machine)}.json"
        rows = _read_rows(kept)
        if rows is None or not all(self._has(digest, size) for _, digest, size in rows):
            yield events.Doing(f"looking for packages for {machine}")
            rows = yield from self._download(plan, lock, machine)
            _write_rows(kept, rows)
        return self._store.put_bytes(encode_rows((name, "f", digest, size) for name, digest, size in rows))

    def _installer(self, plan: EnvironmentPlan) -> Installer:
        known = {name: self._secrets[name] for name in plan.secrets if name in self._secrets}
        return Installer(find_uv(), self._variables, known, self._intent.project.root, self._context.home)

    def _download(
        self, plan: EnvironmentPlan, lock: Lock, machine: ForeignMachine
    ) -> Generator[events.Event, None, list[_Row]]:
        from holdfast.environments.wheel_download import Access, download

        uv = self._installer(plan)
        files = wheel_files(lock, machine, plan, uv)
        wanted = list({each.sha256: each for each in files if not self._store.has(each.sha256)}.values())
        _remove_half_written(self._store.root, self._context.now())
        make_own(self._context.home / "cache")  # the store makes what is in it, as the umask is
        lines = [_filled(each, uv.secrets) for each in (*plan.options, " ".join(plan.arguments))]
        lines += [_filled(text, uv.secrets) for text, _ in plan.requirements]
        access = Access(self._variables, lines, self._context.user_home)
        for progress in download(wanted, access, self._store.put_stream):
            size = f"{format_size(progress.done)} of {format_size(progress.total)}"
            yield events.Doing(f"downloading packages: {progress.files} of {progress.of_files} files, {size}")
        if wanted:
            count = f"{len(wanted)} package{'' if len(wanted) == 1 else 's'}"
            yield events.Noted(f"Downloaded {count} for {machine}.")
        return [(each.name, each.sha256, self._store.path_of(each.sha256).stat().st_size) for each in files]

    def _has(self, digest: str, size: int) -> bool:
        with contextlib.suppress(OSError):
            return self._store.path_of(digest).stat().st_size == size
        return False


_Row = tuple[str, str, int]
"""Name, sha256 and size of a file."""


def _store(context: Context) -> ObjectStore:
    """Of this machine, for all projects: what is downloaded once is not downloaded again."""
    return ObjectStore(context.home / "cache" / "packages")


def _key(lock: Lock, machine: ForeignMachine) -> str:
    lines = [line for line in str(lock["requirements"]).splitlines() if not line.lstrip().startswith("#")]
    minor = ".".join(machine.python.split(".")[:2])
    return hashlib.sha256("\n".join([machine.platform, minor, *lines]).encode()).hexdigest()


def _read_rows(path: Path) -> list[_Row] | None:
    try:
        return [(str(name), str(digest), int(size)) for name, digest, size in json.loads(path.read_bytes())]
    except (OSError, ValueError, TypeError):
        return None


def _write_rows(path: Path, rows: Sequence[_Row]) -> None:
    try:
        make_own(path.parent)
        write_whole(path, json.dumps(rows).encode())
    except OSError as error:
        raise cannot_write(path.parent, error) from error


def _remove_half_written(root: Path, now: float) -> None:
    """What a process that was killed was downloading."""
    with contextlib.suppress(OSError):
        for path in root.glob(".incoming-*"):
            if now - path.stat().st_mtime > _HALF_WRITTEN:
                path.unlink()


def _filled(line: str, secrets: Mapping[str, str]) -> str:
    for name, value in secrets.items():
        line = line.replace("${" + name + "}", value)
    return line


def _no_conda() -> NotAvailable:
    return NotAvailable(
        "Packages of conda cannot be sent: --ship-packages is for those below `pip:`.",
        "Name them below `pip:` where the Python package index has them, or leave out --ship-packages where the "
        "machine reaches the channels.",
    )
