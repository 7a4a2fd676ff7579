"""Data that was sent to this machine, once for all runs: `data/<digest>/` of the home. `tree/` has the files;
`about.json` says what they are, and was changed when they were last used."""

import json
import os
import time
from typing import Any, Dict, List, Optional

from holdfast.farside.system.files import names_in, read_json, write_whole
from holdfast.farside.system.layout import Home, is_digest

ABOUT, TREE = "about.json", "tree"


def kept(home: Home) -> List[str]:
    """The digests of what is here whole."""
    return [name for name in names_in(home.data()) if is_digest(name) and os.path.exists(about_path(home, name))]


def about_path(home: Home, digest: str) -> str:
    return os.path.join(home.data_folder(digest), ABOUT)


def read_about(home: Home, digest: str) -> Optional[Dict[str, Any]]:
    """None where it is not here, or not whole."""
    return read_json(about_path(home, digest))


def write_about(folder: str, about: Dict[str, Any]) -> None:
    write_whole(os.path.join(folder, ABOUT), json.dumps(about))


def note_use(home: Home, digest: str) -> None:
    try:
        os.utime(about_path(home, digest))
    except OSError:
        pass  # on a disk that takes nothing it can still be read


def last_use(home: Home, digest: str) -> float:
    try:
        return os.stat(about_path(home, digest)).st_mtime
    except OSError:
        return time.time()
