"""Whether this account made a project's `.holdfast/`: no other is used, because anyone can put one into a repository.

A folder that Holdfast makes gets a random token. Holdfast's folder on this machine keeps a record of that token with
the folder's inode and owner; no clone or archive can write there. A project that is moved on its disk keeps all three.

A clone, an unpacked archive or a copy has another inode, even if the token came along: `holdfast project trust` adds a
record for it. The token need not be secret, and may have records for several folders and in the homes of several users.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from holdfast.errors import ProjectError, StorageError
from holdfast.farside.system.ownership import OTHERS_WRITE, account_name, is_own, make_private
from holdfast.farside.system.real_paths import real_path
from holdfast.frozen import dataclass
from holdfast.project.own_home import require_own_folder
from holdfast.project.tracked_files import Tracked, tracked_of
from holdfast.regular_files import odd_entry_in, read_json, what_is_odd
from holdfast.shown_text import pasted
from holdfast.whole_files import storage_error, write_once, write_whole
from holdfast.written_files import FOLDERS

STATE_FOLDER = ".holdfast"
GITIGNORE = ".gitignore"
_ALL_IGNORED = b"*\n"
ORIGIN = "origin.json"
"""In the project's folder: the token."""
RECORDS = "projects"
"""In Holdfast's folder on this machine: one file for each token and inode."""
_HOME_MARK = ".holdfast-home"
_GIT = ".git"
_FORMAT = 1
_MOST = 1 << 16
_HALF_WRITTEN_SECONDS = 2.0
"""How long another process may take between making the token's file and filling it."""
_SHOWN = 5


@dataclass(frozen=True)
class Influence:
    """Who can change a folder besides this account: another `owner`, by name or number, other accounts that may write
    there, commits that git brings."""

    owner: str
    is_open: bool
    is_tracked: bool


def is_made(state: Path, home: Path) -> bool:
    """False: there is nothing yet that could be used. Raises ProjectError where this account did not make it."""
    try:
        return _is_made(state, home)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise storage_error(error, "read the project's own folder", state) from error


def _is_made(state: Path, home: Path) -> bool:
    found = os.lstat(state)
    _refuse_machines_own(state, home)
    _require_folder(state, found)
    token = _token(state)
    if token is None:
        if _is_new(state):
            _require_own(state, found)
            return False
        token = _finished_token(state)  # another process may have made it meanwhile
    record = None if token is None else _record(home, token, found)
    if record is None:
        raise _unknown(state, home, found)
    _refuse_links(state)
    _refuse_repository(state)
    if record.get("tracked") is not True:
        refuse_tracked(state)
    return True


def make(state: Path, home: Path) -> None:
    """Make the folder, and remember that. Of two processes at once, both use the same one. Raises OSError."""
    if not is_made(state, home):
        _make(state, home)
    hide_from_git(state)


def hide_from_git(state: Path) -> None:
    """Of a folder that is made. Raises OSError."""
    write_once(state / GITIGNORE, _ALL_IGNORED)


def _make(state: Path, home: Path) -> None:
    refuse_tracked(state)
    require_own_folder(home)  # or a project would be left that nothing knows
    with contextlib.suppress(FileExistsError):
        state.mkdir(mode=0o700)
    _shut_others_out(state)
    if is_made(state, home):
        return  # by another process, meanwhile
    token = _new_token()
    place = _remember(state, home, token, is_trusted=False)
    if not write_once(state / ORIGIN, _render({"token": token}), 0o600):
        place.unlink(missing_ok=True)  # another process was quicker
    is_made(state, home)
    write_whole(state / GITIGNORE, _ALL_IGNORED)  # one that was there may be anybody's


def trust(state: Path, home: Path) -> None:
    """Take over a folder in whatever way it came. It keeps its token, if it has one: others who use it have records of
    that. Raises what `require_plain` raises, and StorageError where it cannot be written down."""
    require_plain(state, home)
    require_own_folder(home)
    try:
        token = _read_token(state)
        if token is None:
            token = _new_token()
            write_whole(state / ORIGIN, _render({"token": token}), 0o600)
        _remember(state, home, token, is_trusted=True)
    except OSError as error:
        raise storage_error(error, "take the project's own folder over", state) from error
    is_made(state, home)


def require_plain(state: Path, home: Path) -> None:
    """Raises ProjectError for a folder that cannot be taken over: with links or special files, or not a project's."""
    try:
        _refuse_machines_own(state, home)
        _require_folder(state, os.lstat(state))
        _refuse_repository(state)
        others = list(links_and_special_files(state))
    except OSError as error:
        raise storage_error(error, "read the project's own folder", state) from error
    if others:
        shown = ", ".join(f"`{each}`" for each in others[:_SHOWN]) + (" …" if len(others) > _SHOWN else "")
        raise ProjectError(
            f"`{state}` holds links or special files, which Holdfast never makes there: {shown}",
            f"Remove them, then run this again.\nTo begin without its runs: {_begin_anew(state)}",
        )


def influence_on(state: Path) -> Influence:
    """Raises StorageError for a folder that is not there."""
    try:
        found = os.lstat(state)
    except OSError as error:
        raise storage_error(error, "read the project's own folder", state) from error
    owner = "" if is_own(found) else account_name(found.st_uid) or str(found.st_uid)
    is_open = hasattr(os, "geteuid") and bool(found.st_mode & OTHERS_WRITE)
    return Influence(owner, is_open, tracked_of(state) is not None)


def forget(state: Path, home: Path) -> None:
    """Before the folder is removed."""
    token = _token(state)
    if token is not None:
        _place(home, token, os.lstat(state)).unlink(missing_ok=True)
    (state / ORIGIN).unlink(missing_ok=True)


def links_and_special_files(state: Path) -> Iterator[str]:
    """Paths below the folder of what is neither a file nor a folder. Links that a script wrote among its outputs and
    that stay there are none."""
    folders = [state]
    while folders:
        folder = folders.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(Path(entry.path))
                elif not entry.is_file(follow_symlinks=False) and not _stays_inside(state, Path(entry.path)):
                    yield Path(entry.path).relative_to(state).as_posix()


def _stays_inside(state: Path, path: Path) -> bool:
    parts = path.relative_to(state).parts
    if len(parts) < 4 or parts[0] != "runs" or parts[2] not in FOLDERS or not os.path.islink(path):
        return False
    top = real_path(state.joinpath(*parts[:3]))
    return real_path(path).startswith(top + os.sep)


def _require_folder(state: Path, found: os.stat_result) -> None:
    if stat.S_ISLNK(found.st_mode):
        message, remedy = what_is_odd(str(state), _untracked_first(state))
        raise ProjectError(message, f"{remedy}\nTo keep the runs elsewhere, move the whole project there.")
    if not stat.S_ISDIR(found.st_mode):
        hint = f"Remove it: {_untracked_first(state)}rm {pasted(str(state))}"
        raise ProjectError(f"`{state}` is not a folder.", hint)


def _require_own(state: Path, found: os.stat_result) -> None:
    """Nobody was asked about an empty folder. If another account made it, that account can change all in it later."""
    if not is_own(found):
        name = account_name(found.st_uid)
        raise ProjectError(
            f"`{state}` belongs to another account{f' (`{name}`)' if name else ''}, which could change runs in it.",
            "Make a folder for the project, move the script there, and run the command in it.\n"
            "To use this one all the same: holdfast project trust",
        )


def _shut_others_out(state: Path) -> None:
    """Of a folder that was there, such as one that an archive brought. Disks without permissions are left as they
    are."""
    if not hasattr(os, "geteuid"):
        return
    descriptor = os.open(state, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found = os.fstat(descriptor)
        if is_own(found) and found.st_mode & OTHERS_WRITE:
            with contextlib.suppress(OSError):
                os.fchmod(descriptor, stat.S_IMODE(found.st_mode) & ~OTHERS_WRITE)
    finally:
        os.close(descriptor)


def _unknown(state: Path, home: Path, found: os.stat_result) -> ProjectError:
    begin = f"To begin without its runs: {_begin_anew(state)}"
    if _was_known(state, home, found):
        return ProjectError(
            f"`{state}` was made here, but a commit or another program has replaced its {ORIGIN}.",
            f"To use all that is in it now, your runs and theirs: holdfast project trust\n{begin}",
        )
    return ProjectError(
        f"Holdfast does not know `{state}`: it was cloned, copied or restored, or HOLDFAST_HOME is another one.",
        f"{begin}\nTo take them over: holdfast project trust",
    )


def _was_known(state: Path, home: Path, found: os.stat_result) -> bool:
    """Whether there is a record of this very folder with another token."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        for place in (home / RECORDS).glob(f"*-{found.st_ino}.json"):
            if read_json(place, _MOST).get("path") == os.fspath(state):
                return True
    return False


def _refuse_machines_own(state: Path, home: Path) -> None:
    is_home = real_path(state) == real_path(home)
    if is_home or os.path.lexists(state / _HOME_MARK):
        raise ProjectError(
            f"`{state}` is Holdfast's own folder on this machine, so `{state.parent}` cannot be a project.",
            "Make a folder for the project, move the script there, and run the command in it.",
        )


def _refuse_links(state: Path) -> None:
    """One may have come after the folder was made: git replaces files that it ignores. A pipe would be waited for."""
    odd = odd_entry_in(state)
    if odd is not None:
        raise ProjectError(*what_is_odd(odd))


def _refuse_repository(state: Path) -> None:
    """A submodule, or a clone: what git fetches for it lands among the runs."""
    if os.path.lexists(state / _GIT):
        raise ProjectError(
            f"`{state}` is a git repository: its files came with commits, and Holdfast does not use them.",
            f"To begin without its runs: {_begin_anew(state)}",
        )


def refuse_tracked(state: Path) -> None:
    """A branch may bring files into a folder that this account made: git writes over what it ignores."""
    tracked = tracked_of(state)
    if tracked is None:
        return
    if tracked.is_whole:
        raise ProjectError(
            f"Git tracks `{state}` as a submodule or a link, and could put files of others there.",
            f"To keep only your own runs in it: {_git_rm(tracked)}",
        )
    raise ProjectError(
        f"Git tracks files in `{state}`, so commits of others can bring runs. Holdfast does not use it.",
        f"If they are from others, delete what git tracks: {_git_rm(tracked, deletes=True)}\n"
        f"If you committed your own runs, keep them and let git forget them: {_git_rm(tracked)}",
    )


def _begin_anew(state: Path) -> str:
    """The command that puts the folder aside. If git tracks it, git would bring it back, so git has to know."""
    aside = f"{state}-old"
    while os.path.lexists(aside):
        aside += "-old"
    return f"{_untracked_first(state)}mv {pasted(str(state))} {pasted(aside)}"


def _untracked_first(state: Path) -> str:
    tracked = tracked_of(state)
    return f"{_git_rm(tracked)} && " if tracked else ""


def _git_rm(tracked: Tracked, deletes: bool = False) -> str:
    """Git forgets the folder's files; they stay, unless it `deletes` them."""
    words = ["git", "-C", str(tracked.top), "rm", "-rqf" if deletes else "-rq", *(() if deletes else ("--cached",))]
    return " ".join(map(pasted, [*words, *(["--sparse"] if tracked.is_sparse else []), "--", tracked.name]))


def _is_new(state: Path) -> bool:
    """Whether nothing is in the folder but what `make` begins with."""
    with os.scandir(state) as entries:
        return all(_begins(entry) for entry in entries)


def _begins(entry: os.DirEntry[str]) -> bool:
    is_ours = entry.name == GITIGNORE or entry.name.startswith(f".{ORIGIN}.")
    return is_ours and entry.is_file(follow_symlinks=False)


def _new_token() -> str:
    return os.urandom(16).hex()


def _remember(state: Path, home: Path, token: str, is_trusted: bool) -> Path:
    """Write a record for the folder with that token, and return its place. Only the user's word lets the folder be
    another account's, or git put files there."""
    found = os.lstat(state)
    if not is_trusted:
        _require_own(state, found)
    is_tracked = is_trusted and tracked_of(state) is not None
    place = _place(home, token, found)
    about = {"path": os.fspath(state), "inode": found.st_ino, "owner": found.st_uid, "tracked": is_tracked}
    try:
        make_private(os.fspath(place.parent))
        write_whole(place, _render(about), 0o600)
    except OSError as error:
        raise _about_home(error, "note that this project is yours", place) from error
    return place


def _record(home: Path, token: str, found: os.stat_result) -> Mapping[str, object] | None:
    """What is noted of this very folder. The device is not compared: machines that share a network disk number it
    differently."""
    place = _place(home, token, found)
    if os.path.lexists(place):  # nobody else may write it
        require_own_folder(home)
    try:
        values: dict[str, object] = read_json(place, _MOST)
        return values if (values["inode"], values["owner"]) == (found.st_ino, found.st_uid) else None
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None
    except OSError as error:
        raise _about_home(error, "look up whether this project is yours", place) from error


def _about_home(error: OSError, doing: str, place: Path) -> StorageError:
    found = storage_error(error, doing, place)
    return StorageError(found.message, f"{found.hint}\nTo keep Holdfast's own files elsewhere, set HOLDFAST_HOME.")


def _token(state: Path) -> str | None:
    try:
        return _read_token(state)
    except OSError:
        return None


def _read_token(state: Path) -> str | None:
    """None: there is none, or no valid one. Raises OSError where that cannot be told."""
    try:
        token = read_json(state / ORIGIN, _MOST, follows_link=False)["token"]
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None
    return token if isinstance(token, str) and re.fullmatch(r"[0-9a-f]{32}", token) else None


def _finished_token(state: Path) -> str | None:
    """On a disk without hard links the file is there before its content is."""
    give_up = time.monotonic() + _HALF_WRITTEN_SECONDS
    while _is_empty(state / ORIGIN) and time.monotonic() < give_up:
        time.sleep(0.01)
    return _token(state)


def _is_empty(path: Path) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size == 0


def _place(home: Path, token: str, found: os.stat_result) -> Path:
    """A copy has the token too, and a record of its own."""
    return home / RECORDS / f"{token}-{found.st_ino}.json"


def _render(values: dict[str, object]) -> bytes:
    return json.dumps({"format": _FORMAT, **values}, indent=2).encode() + b"\n"
