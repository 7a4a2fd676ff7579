"""Which files ship where git cannot be asked: a walk with the semantics of nested `.gitignore` files.

The last pattern that matches decides, deeper files before higher ones, the project's own rules (`.amlignore`
and what is built in) before all. Nothing below an excluded folder is looked at, so none of it can come back.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator

from holdfast.frozen import dataclass, field
from holdfast.regular_files import read_regular
from holdfast.snapshots.patterns import Pattern, RuleSet, literal, parse_rules

MARK_OF_A_VIRTUAL_ENVIRONMENT = b"pyvenv.cfg"
LONGEST_RULES = 16_000_000
"""Bytes of a file of rules; a longer one is none."""


@dataclass(frozen=True)
class Layer:
    """The rules of one ignore file. `base` is its folder, absolute, with the slash at its end."""

    base: bytes
    rules: RuleSet

    def decide(self, path: bytes, name: bytes, is_directory: bool) -> Pattern | None:
        return self.rules.decide(path[len(self.base) :], name, is_directory)


Layers = tuple[Layer, ...]
"""Weakest first; the last is the project's own."""


@dataclass(frozen=True)
class Walked:
    """What a walk found; paths relative to the project."""

    files: list[bytes] = field(default_factory=list)
    specials: list[bytes] = field(default_factory=list)
    unopened: list[bytes] = field(default_factory=list)
    environments: list[bytes] = field(default_factory=list)


def walk(start: bytes, layers: Layers, own: Layer, repository: Callable[[bytes], bool]) -> Walked:
    """Everything below the folder `start` that no rule leaves out; `own.base` is the project.

    `repository(path)` hears of each folder below `start` with a `.git`, and says whether it dealt with it.
    """
    found = Walked()
    top, skip = start + b"/", len(own.base)
    pending: list[tuple[bytes, Layers]] = [(top, layers)]
    while pending:
        folder, above = pending.pop()
        try:
            with os.scandir(folder) as scan:
                entries = list(scan)
        except OSError:
            found.unopened.append(folder[skip:-1])
            continue
        names = {entry.name for entry in entries}
        if folder != top and b".git" in names:
            if repository(folder[skip:-1]):
                continue
            above = layers_of_top(folder)
        if b".gitignore" in names:
            above = (*above, *gitignore_layer(folder, os.fsdecode(folder[skip:])))
        if folder != top and is_environment(folder, names, above, own):
            found.environments.append(folder[skip:-1])
            continue
        pending.extend(_sort_out(entries, above, own, found))
    return found


def deciding(path: bytes, is_directory: bool, above: Layers, own: Layer) -> Pattern | None:
    """The pattern that decides about one path by itself, without its parents; `path` is absolute."""
    name = os.path.basename(path)
    decision = own.decide(path, name, is_directory)
    if decision is None:
        for layer in reversed(above):
            decision = layer.decide(path, name, is_directory)
            if decision is not None:
                break
    return decision


def kept(paths: Iterable[bytes], rules: RuleSet, directories: bool = False) -> Iterator[bytes]:
    """The paths that neither themselves nor by a folder above them are left out."""
    folders: dict[bytes, bool] = {b"": True}

    def folder_kept(folder: bytes) -> bool:
        known = folders.get(folder)
        if known is None:
            above, _, name = folder.rpartition(b"/")
            decision = rules.decide(folder, name, True)
            known = folder_kept(above) and (decision is None or decision.negated)
            folders[folder] = known
        return known

    for path in paths:
        folder, _, name = path.rpartition(b"/")
        if folder_kept(folder):
            decision = rules.decide(path, name, directories)
            if decision is None or decision.negated:
                yield path


def gitignore_layer(folder: bytes, shown_folder: str) -> Iterator[Layer]:
    """The layer of `folder`'s `.gitignore`, if it is a readable file. As in git, a link is not followed."""
    yield from _layer(folder, folder + b".gitignore", shown_folder + ".gitignore")


def layers_of_top(folder: bytes) -> Layers:
    """What applies in a whole repository, apart from its `.gitignore` files: `.git/info/exclude`."""
    return tuple(_layer(folder, folder + b".git/info/exclude", ".git/info/exclude"))


def is_environment(folder: bytes, names: set[bytes], above: Layers, own: Layer) -> bool:
    """Whether this is a virtual environment without a `!` line for it in `.amlignore`."""
    mark = MARK_OF_A_VIRTUAL_ENVIRONMENT
    if mark not in names:
        return False
    asked_for = own.decide(folder[:-1], os.path.basename(folder[:-1]), True)
    if asked_for is not None and asked_for.negated:
        return False
    about_the_mark = deciding(folder + mark, False, above, own)
    return about_the_mark is None or about_the_mark.negated


def _sort_out(
    entries: list[os.DirEntry[bytes]], above: Layers, own: Layer, found: Walked
) -> Iterator[tuple[bytes, Layers]]:
    """Files go into `found`; the folders to walk next are yielded."""
    start = len(own.base)
    for entry in entries:
        path = entry.path
        is_directory = entry.is_dir(follow_symlinks=False)
        decision = deciding(path, is_directory, above, own)
        if decision is not None and not decision.negated:
            continue
        if is_directory:
            yield path + b"/", above
        elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
            found.files.append(path[start:])
        else:
            found.specials.append(path[start:])


def _layer(base: bytes, file: bytes, source: str) -> Iterator[Layer]:
    try:
        patterns = parse_rules(read_regular(os.fsdecode(file), LONGEST_RULES, follows_link=False), source)
    except OSError:
        return
    if patterns:
        yield Layer(base, RuleSet(patterns))


_RUN_ID = re.compile(rb"(.+_[0-9]{13,})(\.zip)?", re.DOTALL)


def copies_of_runs(root: bytes) -> bytes:
    """Ignore rules for what commands leave in the project of its own runs: the folder of `project restore`, the zip of
    `diagnostics`. A name counts if this project has a run that is called so: `data_1521077190506` may be anything
    else."""
    runs = os.path.join(root, b".holdfast", b"runs")
    if not os.path.isdir(runs):
        return b""
    try:
        names = sorted(os.listdir(root))
    except OSError:
        return b""  # the listing of the files will say so
    found = []
    for name in names:
        match = _RUN_ID.fullmatch(name)
        if match and b"\n" not in name and os.path.isdir(os.path.join(runs, match[1])):
            found.append(b"/" + literal(name) + (b"" if match[2] else b"/") + b"\n")
    return b"".join(found)
