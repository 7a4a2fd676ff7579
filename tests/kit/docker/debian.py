"""File trees out of the packages of the Debian that this machine runs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_INSTALL = """
mount -t tmpfs -o mode=755 system "$1"
debootstrap --variant=minbase "$3" "$1" $4
cd "$1"
rm -rf usr/share/doc/* usr/share/locale/* usr/share/man/* var/cache/apt/* var/lib/apt/lists/* var/log/*
tar --numeric-owner -cf "$2" .
"""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def system(folder: Path) -> Path:
    """An archive of a whole system, the smallest variant. It is installed in memory, which nobody else sees: dpkg waits
    for the disk after every file."""
    (folder / "system").mkdir()
    archive = folder / "system.tar"
    argv = ["unshare", "--mount", "sh", "-ec", _INSTALL, "sh", str(folder / "system"), str(archive), _codename()]
    done = subprocess.run([*argv, *_mirror()], capture_output=True, text=True, env={**os.environ, "PATH": _PATH})
    assert done.returncode == 0, f"{done.stdout[-2000:]}{done.stderr}"
    return archive


def packages(folder: Path, *names: str) -> Path:
    """The files of these packages, unpacked on top of one another."""
    folder.mkdir(parents=True)
    download = ["apt-get", "-qq", "download", *names]
    if subprocess.run(download, cwd=folder, capture_output=True).returncode:
        subprocess.run(["apt-get", "-qq", "update"], check=True, capture_output=True)
        done = subprocess.run(download, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    for archive in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", archive, folder / "files"], check=True)
    return folder / "files"


def _codename() -> str:
    lines = Path("/etc/os-release").read_text().splitlines()
    return next(line.partition("=")[2].strip('"') for line in lines if line.startswith("VERSION_CODENAME="))


def _mirror() -> list[str]:
    """Where this machine's own packages come from."""
    asked = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", f"Codename: {_codename()}"]
    found = subprocess.run(asked, capture_output=True, text=True).stdout.split()
    return found[:1]
