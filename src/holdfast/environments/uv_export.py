"""What a `uv.lock` says, in the installer's own words: `uv export`, asked once for each content of the lock.

Every package in it has its hash, so it does not matter which of the project's indexes it comes from. uv reads copies of
the lock and of the `pyproject.toml` beside it: a workspace above the project may be a stranger's.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from holdfast.environments.uv_folder import uv_folder
from holdfast.errors import ConfigurationError, NotAvailable
from holdfast.frozen import replace
from holdfast.project.environment_spec import EnvironmentSpec
from holdfast.project.problems import Mistake, Problem, errors_in
from holdfast.project.pyproject import LARGEST_LOCK, project_of, read_indexes
from holdfast.project.requirement_lines import logical_lines, parse_package
from holdfast.project.requirements import RequirementSource
from holdfast.regular_files import LARGEST_RECORD, read_regular
from holdfast.whole_files import write_whole

SECONDS = 60
_FORMAT = 2
_LOCK, _PROJECT = "uv.lock", "pyproject.toml"


def export_lock(spec: EnvironmentSpec, root: Path, uv: str, cache: Path, home: Path) -> EnvironmentSpec:
    """The spec with what its lock says in `pip` and `locked`. For any other spec: the spec itself.

    `uv` is the program; `cache` a folder for what it said, by content: an unchanged lock is not exported again. `home`
    is Holdfast's folder on this machine. Raises ConfigurationError where the lock cannot be used.
    """
    if not spec.lock_file:
        return spec
    files = {
        _LOCK: read_regular(root / spec.lock_file, LARGEST_LOCK),
        _PROJECT: read_regular(root / project_of(spec.lock_file), LARGEST_LOCK),
    }
    text = _cached(files, spec.lock_parts, cache, lambda: _exported(spec, root, files, uv, home))
    lines, _, _ = read_indexes(root, project_of(spec.lock_file))
    indexes = len(lines.pip)
    where = _lines_by_name(root / spec.lock_file)
    for _, line in logical_lines(text):
        package = parse_package(line)
        name = "" if isinstance(package, Mistake) else package.name
        lines.take(line, RequirementSource(spec.lock_file, where.get(name, 0)))
    lines.check_hashes()
    if errors_in(lines.problems):
        raise ConfigurationError(errors_in(lines.problems))
    # A lock without packages says that none is wanted; one with a package of Git's has no hash for it.
    is_whole = lines.are_locked or len(lines.pip) == indexes
    return replace(
        spec,
        pip=tuple(lines.pip),
        files=tuple(lines.files),
        locked=("".join(f"{each.text}\n" for each in lines.pip) or "# no packages\n") if is_whole else "",
        lock_file="",
        projects=tuple(lines.projects),
        credentials=lines.concealer.taken(),
    )


def _cached(files: Mapping[str, bytes], parts: Sequence[str], cache: Path, export: Callable[[], str]) -> str:
    import hashlib

    digest = hashlib.sha256(b"%d\0" % _FORMAT)
    for content in files.values():
        digest.update(content + b"\0")
    digest.update("\0".join(parts).encode())
    kept = cache / f"{digest.hexdigest()}.txt"
    try:
        return read_regular(kept, LARGEST_RECORD, follows_link=False).decode("utf-8")
    except (OSError, ValueError):
        pass
    text = export()
    with contextlib.suppress(OSError):  # it is asked again the next time
        cache.mkdir(exist_ok=True)  # in a folder that is there: a project's own is made in one place only
        write_whole(kept, text.encode())
    return text


def _exported(spec: EnvironmentSpec, root: Path, files: Mapping[str, bytes], uv: str, home: Path) -> str:
    # It reads the lock and nothing else: without the project's settings, which may name a folder to write to.
    words = [
        "--no-config",
        "--no-cache",
        "--frozen",
        "--no-emit-project",
        "--no-header",
        "--no-annotate",
        "--offline",
        "--quiet",
    ]
    try:
        with uv_folder(home) as folder:
            for name, content in files.items():  # nothing else: members of a workspace need not be there
                (folder / name).write_bytes(content)
            has_dev = ("--group", "dev") in zip(spec.lock_parts, spec.lock_parts[1:], strict=False)
            parts = spec.lock_parts if has_dev else ("--no-dev", *spec.lock_parts)
            command = [uv, "export", "--project", os.fspath(folder), "--format", "requirements-txt", *words, *parts]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        remedy = "Install uv beside Holdfast (pip install uv), or name `pyproject.toml` instead of the lock."
        raise NotAvailable(f"`uv export`, which reads {spec.lock_file}, could not be run: {error}.", remedy) from error
    if done.returncode:
        errors = done.stderr.replace(os.fspath(folder), os.fspath((root / spec.lock_file).parent))
        said = " ".join(re.sub(r"^(?:error|cause|hint):\s*", "", line.strip()) for line in errors.splitlines())
        message = f"uv cannot read it: {said[:300].rstrip('.') or 'it gave no reason'}"
        raise ConfigurationError([Problem(spec.lock_file, 0, "", message, "Make it anew: uv lock")])
    return done.stdout


def _lines_by_name(lock: Path) -> dict[str, int]:
    text = read_regular(lock, LARGEST_LOCK).decode("utf-8", "replace")
    found = (re.fullmatch(r'name = "([^"]+)"', line) for line in text.splitlines())
    return {each[1]: number for number, each in reversed(list(enumerate(found, 1))) if each}
