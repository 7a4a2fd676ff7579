"""Which commit the project's folder is at, read from git's own files: a process would cost more than the answer."""

from __future__ import annotations

from pathlib import Path


def revision(root: Path) -> str | None:
    """The commit's id; None outside a work tree or before the first commit."""
    for folder in (root, *root.parents):
        git = folder / ".git"
        if git.exists():
            return _head(git)
    return None


def _head(git: Path) -> str | None:
    try:
        if git.is_file():  # a worktree or submodule: the file names the real folder
            named = Path(git.read_text(encoding="utf-8").partition("gitdir:")[2].strip())
            git = named if named.is_absolute() else git.parent / named
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref:"):
            return head or None
        name = head.partition(":")[2].strip()
        shared = git / "commondir"
        common = git / shared.read_text(encoding="utf-8").strip() if shared.exists() else git
        loose = common / name
        if loose.is_file():
            return loose.read_text(encoding="utf-8").strip()
        for line in (common / "packed-refs").read_text(encoding="utf-8").splitlines():
            if line.endswith(" " + name):
                return line.split()[0]
    except (OSError, UnicodeDecodeError):
        return None
    return None
