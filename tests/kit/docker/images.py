"""The images that tests run in, made here from the machine's own package source.

They are made once for each recipe and kept as the data root of a daemon that has ended. A new daemon begins with links
to it, so that no daemon loads an image.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from kit.docker.daemon import CACHE, Daemon, Settings
from kit.docker.debian import packages, system
from kit.docker.holding import held, locked

PYTHON = "holdfast/python"
"""The system that this machine has, smallest variant, with its python3."""
PLAIN = "holdfast/plain"
"""The same without any Python."""
ENTRYPOINT = "holdfast/entrypoint"
"""PYTHON with an entry point that spoils whatever is run."""
USER = "holdfast/user"
"""PYTHON whose user is nobody."""
CUDA = "holdfast/cuda"
"""PYTHON as an image for GPUs is marked."""
MUSL = "holdfast/musl"
"""Busybox and musl, no glibc."""
FOREIGN = "holdfast/foreign"
"""For an architecture that this machine has not."""
NO_SHELL = "holdfast/no-shell"
"""One static program."""
EVERY = (PYTHON, PLAIN, ENTRYPOINT, USER, CUDA, MUSL, FOREIGN, NO_SHELL)

_ON_PYTHON = {
    ENTRYPOINT: ['ENTRYPOINT ["/bin/sh", "-c", "echo spoilt by the entry point; exit 77"]'],
    USER: ["USER nobody"],
    CUDA: ["ENV NVIDIA_VISIBLE_DEVICES=all", "ENV CUDA_VERSION=12.2.0", "ENV NVIDIA_REQUIRE_CUDA=cuda>=12.2"],
}
_A_DAY = 24 * 60 * 60
_INSTALL = (
    "apt-get -qq update &&"
    " apt-get -qq install -y --no-install-recommends -o Dpkg::Options::=--force-unsafe-io python3 >/dev/null &&"
    " rm -rf /var/lib/apt/lists/* /var/cache/apt/* /usr/share/doc /usr/share/locale /usr/share/man /var/log/*"
)


def template() -> Path:
    """A data root with every image; made when there is none of this recipe yet, which takes a minute or two."""
    CACHE.mkdir(parents=True, exist_ok=True)
    final = CACHE / f"images-{_recipe()}"
    with locked(CACHE / "images.lock"):
        if not final.exists():
            _tidy()
            _make(final)
    return final


def _tidy() -> None:
    """Remove what was not finished, and the images of older recipes. A session that runs now may still begin
    daemons with one of those."""
    for path in [*CACHE.glob("images-*"), *CACHE.glob("building-*")]:
        if path.name.startswith("building-") or time.time() - path.stat().st_mtime > _A_DAY:
            shutil.rmtree(path)


def _recipe() -> str:
    sources = b"".join(Path(__file__).with_name(name).read_bytes() for name in ("images.py", "debian.py"))
    release = Path("/etc/os-release").read_bytes()
    return hashlib.sha256(sources + release + platform.machine().encode()).hexdigest()[:12]


def _make(final: Path) -> None:
    work = Path(tempfile.mkdtemp(prefix="building-", dir=CACHE))
    try:
        with held(Settings(hook=False)) as builder:
            builder.start()
            builder.run("import", str(system(work)), PLAIN)
            _install_python(builder)
            for name, changes in _ON_PYTHON.items():
                _change(builder, PYTHON, name, changes)
            _import_small(builder, work)
            builder.stop()
            (work / "kept").mkdir()
            for part in ("image", "overlay2"):
                (builder.root / part).rename(work / "kept" / part)
        (work / "kept").rename(final)
    finally:
        shutil.rmtree(work)


def _import(daemon: Daemon, folder: Path, name: str, *words: str) -> None:
    packed = subprocess.Popen(["tar", "-C", folder, "--numeric-owner", "-c", "."], stdout=subprocess.PIPE)
    with packed:
        daemon.run("import", *words, "-", name, stdin=packed.stdout)
    assert packed.returncode == 0, folder


def _install_python(daemon: Daemon) -> None:
    proxies = [word for name in ("http_proxy", "https_proxy") if name in os.environ for word in ("-e", name)]
    daemon.run("run", "--name", "python", "--network", "host", *proxies, PLAIN, "sh", "-c", _INSTALL, timeout=600)
    _commit(daemon, "python", PYTHON, ['CMD ["python3"]'])


def _change(daemon: Daemon, base: str, name: str, changes: list[str]) -> None:
    container = daemon.run("create", base, "true").stdout.strip()
    _commit(daemon, container, name, changes)


def _commit(daemon: Daemon, container: str, name: str, changes: list[str]) -> None:
    daemon.run("commit", *(word for each in changes for word in ("--change", each)), container, name)
    daemon.run("rm", "-f", container)


def _import_small(daemon: Daemon, work: Path) -> None:
    unpacked = packages(work / "packages", "musl", "busybox-static")
    musl, small = work / "musl", work / "small"
    for folder in ("bin", "etc", "tmp", "root"):
        (musl / folder).mkdir(parents=True)
    (musl / "tmp").chmod(0o1777)
    (musl / "etc" / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")
    (musl / "etc" / "group").write_text("root:x:0:\nnogroup:x:65534:\n")
    busybox = next(path for path in (unpacked / "bin/busybox", unpacked / "usr/bin/busybox") if path.exists())
    shutil.copy(busybox, musl / "bin" / "busybox")
    subprocess.run(["chroot", musl, "/bin/busybox", "--install", "-s", "/bin"], check=True)
    for folder in ("lib", "usr/lib"):
        if (unpacked / folder).exists():
            shutil.copytree(unpacked / folder, musl / folder, symlinks=True, dirs_exist_ok=True)
    small.mkdir()
    shutil.copy(busybox, small / "busybox")
    _import(daemon, musl, MUSL, "--change", 'CMD ["/bin/sh"]')
    _import(daemon, small, NO_SHELL, "--change", 'CMD ["/busybox", "true"]')
    _load(daemon, small, FOREIGN, "amd64" if platform.machine() == "aarch64" else "arm64")


def _load(daemon: Daemon, folder: Path, name: str, architecture: str) -> None:
    """As `docker import`, which knows this machine's architecture only."""
    saved = folder.with_name(f"{folder.name}-saved")
    saved.mkdir()
    subprocess.run(["tar", "-C", folder, "--numeric-owner", "-cf", saved / "layer.tar", "."], check=True)
    layer = hashlib.sha256((saved / "layer.tar").read_bytes()).hexdigest()
    image = {
        "architecture": architecture,
        "os": "linux",
        "config": {"Cmd": ["/busybox", "true"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer}"]},
        "history": [{"created": "2024-01-01T00:00:00Z"}],
    }
    (saved / "config.json").write_text(json.dumps(image))
    content = [{"Config": "config.json", "RepoTags": [f"{name}:latest"], "Layers": ["layer.tar"]}]
    (saved / "manifest.json").write_text(json.dumps(content))
    archive = saved.with_suffix(".tar")
    subprocess.run(["tar", "-C", saved, "-cf", archive, "manifest.json", "config.json", "layer.tar"], check=True)
    daemon.run("load", "-i", str(archive))
