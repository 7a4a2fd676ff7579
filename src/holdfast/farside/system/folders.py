"""Folders of any depth, by their paths. Python's own `os.walk` and `shutil.rmtree` call themselves for each level, in
older versions, and end where a script made a thousand. The client uses this too, on every system."""

import os
from typing import Iterator, List, Tuple


def walked(top: str) -> Iterator[Tuple[str, List[str], List[str]]]:
    """As `os.walk(top)`: a folder comes before what is in it, links are not followed, what cannot be listed is left
    out."""
    waiting = [top]
    while waiting:
        place = waiting.pop()
        folders: List[str] = []
        names: List[str] = []
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    (folders if _is_folder(entry) else names).append(entry.name)
        except OSError:
            continue
        yield place, folders, names
        below = [os.path.join(place, name) for name in reversed(folders)]
        waiting += [each for each in below if not os.path.islink(each)]


def remove_folder(path: str) -> None:
    """Delete it with all that is in it; links are removed, never followed. Gone already is success."""
    if os.open not in os.supports_dir_fd:  # Windows
        import shutil

        shutil.rmtree(path)
        return
    from holdfast.farside.system.nofollow import remove_at

    above, name = os.path.split(os.path.abspath(path))
    try:
        parent = os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        remove_at(parent, name)
    finally:
        os.close(parent)


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
