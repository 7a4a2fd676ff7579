"""NVIDIA's hook, simulated: gives a container that was started with `--gpus` a driver library.

The engine calls it before a container's first process, in the container's mount namespace yet outside its root, with
the container's state on standard input. A copy of this file is the program; it uses the standard library alone.

Which GPUs: the files `*.json` of one folder say `{"below": PATH, "state": FOLDER, "library": FILE}`. The container gets
those of the entry whose PATH holds a folder that is mounted in it, the longest PATH first; `below` empty fits every
container. NVIDIA_VISIBLE_DEVICES chooses among them, by number or by UUID, as with the real hook.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HOOK = "nvidia-container-runtime-hook"
GPUS = "gpus"
INSIDE = "run/simulated-nvml"
"""Where a container finds the state of its GPUs, relative to its root."""
VISIBLE = "run/simulated-nvml-visible"
"""The GPUs that it has, one per line, unless it has all: the library hides the others."""
LIBRARY = "libnvidia-ml.so.1"
_LIBRARY_FOLDERS = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib")
_DEVICES = ("nvidiactl", "nvidia-uvm")


def main(folder: str) -> None:
    if sys.argv[1:] != ["prestart"]:
        return
    state = json.load(sys.stdin)
    bundle = Path(state.get("bundle") or state["bundlePath"])
    config = json.loads((bundle / "config.json").read_text())
    chosen = visible(config)
    entry = entry_for(Path(folder), [each["source"] for each in config["mounts"]])
    if not chosen or entry is None:
        return
    root = Path(bundle, config["root"]["path"])
    if chosen != ["all"]:
        (root / VISIBLE).parent.mkdir(parents=True, exist_ok=True)
        (root / VISIBLE).write_text("".join(f"{each}\n" for each in chosen))
    _give(root, Path(entry["state"]), Path(entry["library"]), state["pid"])


def visible(config: dict[str, Any]) -> list[str]:
    """What NVIDIA_VISIBLE_DEVICES names; nothing when it is empty, `void` or `none`."""
    found = [each.partition("=")[2] for each in config["process"]["env"] if each.startswith("NVIDIA_VISIBLE_DEVICES=")]
    value = found[-1] if found else ""
    return [] if value in ("", "void", "none") else value.split(",")


def entry_for(folder: Path, mounted: list[str]) -> dict[str, str] | None:
    entries = []
    for path in folder.glob("*.json"):
        with contextlib.suppress(FileNotFoundError):  # another test has ended
            entries.append(json.loads(path.read_text()))
    for entry in sorted(entries, key=lambda each: -len(each["below"])):
        if not entry["below"] or any(f"{source}/".startswith(f"{entry['below']}/") for source in mounted):
            return dict(entry)
    return None


def _give(root: Path, source: Path, library: Path, pid: int) -> None:
    """Mounts, as the real hook does: the image's files do not change."""
    place = next((each for each in _LIBRARY_FOLDERS if (root / each).is_dir()), "usr/lib")
    (root / INSIDE).mkdir(parents=True, exist_ok=True)
    (root / place).mkdir(parents=True, exist_ok=True)
    (root / place / LIBRARY).touch()
    lines = ["set -e", f"mount --bind '{source}' '{root / INSIDE}'"]
    lines.append(f"mount --bind -o ro '{library}' '{root / place / LIBRARY}'")
    for name in _DEVICES:  # in the container's own /dev, which this process does not see
        lines += [f"touch '{root}/dev/{name}'", f"mount --bind /dev/null '{root}/dev/{name}'"]
    subprocess.run(["nsenter", "-t", str(pid), "-m", "sh", "-c", "\n".join(lines)], check=True)
