"""The programs that a build needs, on this machine and for another one: found here, or fetched for its platform."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from holdfast.errors import HostError, NotAvailable
from holdfast.hosts.client import Client
from holdfast.hosts.connection import Connection
from holdfast.installed_programs import find_program
from holdfast.project.own_home import make_own
from holdfast.workbench.reach import events
from holdfast.workbench.reach.context import Context

_WHEELS = {
    ("x86_64", "glibc"): "x86_64-unknown-linux-gnu",
    ("x86_64", "musl"): "x86_64-unknown-linux-musl",
    ("aarch64", "glibc"): "aarch64-unknown-linux-gnu",
    ("aarch64", "musl"): "aarch64-unknown-linux-musl",
}
"""What uv calls the platforms that it can be fetched for."""

SECONDS = 30.0
"""A program on a sleeping network disk takes a while."""


def find_uv() -> str:
    """The program on this machine: beside the Python that runs this, or wherever it was installed."""
    beside = os.path.join(os.path.dirname(sys.executable), "uv")
    if os.access(beside, os.X_OK):  # asking the package itself takes ten times as long
        return beside
    try:
        from uv import find_uv_bin

        return find_uv_bin()
    except (ImportError, FileNotFoundError):
        found = find_program("uv", os.environ)
        if found is None:
            raise NotAvailable(
                "The program `uv`, which builds environments, was not found.",
                "Install it beside Holdfast (pip install uv), or use your own Python: userManagedEnvironment: true",
            ) from None
        return found


def uv_name(uv: str) -> str:
    """`uv-0.13.7`: what it is called in a host's `tools/`."""
    installed = _installed_name(uv)
    if installed is not None:  # asking the program itself takes a hundred times as long
        return installed
    remedy = "Install uv anew beside Holdfast: pip install --force-reinstall uv"
    try:
        said = subprocess.run([uv, "--version"], capture_output=True, text=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        raise NotAvailable(f"`{uv}` did not say its version within {SECONDS:g} seconds.", remedy) from error
    except OSError as error:
        raise NotAvailable(f"`{uv}` cannot be started: {error.strerror}.", remedy) from error
    words = said.stdout.split()
    if said.returncode or len(words) < 2 or words[0] != "uv":
        raise NotAvailable(f"`{uv}` does not say its version.", remedy)
    return f"uv-{words[1]}"


def _installed_name(uv: str) -> str | None:
    """By the package that it is of; None where that is not known."""
    if os.path.dirname(uv) != os.path.dirname(sys.executable):
        return None
    names: list[str] = []
    for folder in sys.path:
        if os.path.basename(folder) in ("site-packages", "dist-packages") and os.path.isdir(folder):
            names += [name for name in os.listdir(folder) if name.startswith("uv-") and name.endswith(".dist-info")]
    return names[0].removesuffix(".dist-info") if len(names) == 1 else None


def send_uv(connection: Connection, context: Context, is_here: bool = False) -> Iterator[events.Event]:
    """To a host that does not have it. It stays there for all later runs. On this machine that is no news."""
    from holdfast.snapshots.manifest import encode_rows
    from holdfast.snapshots.store import ObjectStore
    from holdfast.workbench.submitting.send import Sender

    uv = find_uv()
    name = uv_name(uv)
    if not is_here:
        yield events.Noted(f"Sending {name.replace('-', ' ')}, which builds environments there; once for this machine.")
    platform = Client(connection).platform()
    program = _program_for(uv, name, platform.architecture, platform.libc, context)
    store = ObjectStore(context.home / "objects")
    with program.open("rb") as source:
        digest, size = store.put_stream(source)
    manifest = store.put_bytes(encode_rows([("uv", "x", digest, size)]))
    sender = Sender(connection, store, manifest, None)
    sender.announce()
    yield from sender.complete()
    sender.confirm()
    Client(connection).tool(name, digest)


def _program_for(uv: str, name: str, architecture: str, libc: str, context: Context) -> Path:
    if sys.platform == "linux" and (architecture, libc) == _here():
        return Path(uv)
    wheel = _WHEELS.get((architecture, libc))
    if wheel is None:
        raise NotAvailable(
            f"There is no uv for {architecture} with {libc}, so no environment can be built on that machine.",
            "Use the machine's own Python: write `userManagedEnvironment: true` into its .compute file.",
        )
    folder = context.home / "tools" / f"{name}-{architecture}-{libc}"
    program = folder / "bin" / "uv"
    if not os.path.exists(program):
        _fetch(uv, name, wheel, folder)
    return program


def _fetch(uv: str, name: str, platform: str, folder: Path) -> None:
    """From the package index, as its maker publishes it; whole or not at all."""
    new = folder.with_name(f".{folder.name}.{os.urandom(8).hex()}.new")
    try:
        make_own(folder.parent)
        _install(uv, name, platform, new)
        _put(new, folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _install(uv: str, name: str, platform: str, new: Path) -> None:
    shutil.rmtree(new, ignore_errors=True)
    wanted = name.replace("-", "==", 1)
    argv = [uv, "pip", "install", "--quiet", "--no-deps", "--target", str(new), "--python-platform", platform, wanted]
    argv += ["--python", sys.executable, "--only-binary", ":all:"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode or not os.path.exists(new / "bin" / "uv"):
        reason = done.stderr.strip().splitlines()
        raise HostError(
            f"uv for {platform} could not be fetched: {reason[-1] if reason else 'no reason was given'}",
            "Does this machine reach the package index? Without uv: userManagedEnvironment: true in the .compute file.",
        )


def _put(new: Path, folder: Path) -> None:
    """In its place, unless another process was faster."""
    if not os.path.exists(folder / "bin" / "uv"):
        shutil.rmtree(folder, ignore_errors=True)  # a part of it, left by a process that was killed
    try:
        new.rename(folder)
    except OSError:
        if not os.path.exists(folder / "bin" / "uv"):
            raise


def _here() -> tuple[str, str]:
    import platform

    return platform.machine(), "glibc" if platform.libc_ver()[0] == "glibc" else "musl"
