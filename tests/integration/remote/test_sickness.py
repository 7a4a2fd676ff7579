"""Sick boxes: each problem has its own sentence, nothing is left half-written, the record says what happened, and the
next submit works when the box is healthy again."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.interpreters import FOUND
from integration.remote.benches import FarBench, far_bench  # noqa: F401 - a fixture
from kit.disks import fill
from kit.suite.missing_parts import leave_out
from kit.waiting import wait_for

MakeBench = Callable[..., FarBench]
SCRIPT = "import os\nprint('works')\nopen('outputs/x', 'w').write('y')\n"


@pytest.fixture
def bench(far_bench: MakeBench) -> FarBench:  # noqa: F811
    made = far_bench(fresh=True)
    made.write("t.py", SCRIPT)
    return made


@pytest.fixture
def mount(bench: FarBench) -> Iterator[Callable[..., None]]:
    """Mounts at a folder of the account, and remounts with other options; unmounts before the account is removed."""
    mounted: list[Path] = []

    def attempt(folder: Path, options: str, *kind: str) -> subprocess.CompletedProcess[str] | None:
        """None if a process that is about to end has a file open for writing."""
        done = subprocess.run(
            ["mount", *(kind or ("-t", "tmpfs", "tmpfs")), "-o", options, str(folder)], capture_output=True, text=True
        )
        return None if "busy" in done.stderr else done

    def do(folder: Path, options: str, *kind: str) -> None:
        done = wait_for(lambda: attempt(folder, options, *kind), what=f"{folder} is mounted: {options}")
        if done.returncode != 0:
            leave_out("the right to mount")
        if folder not in mounted:
            mounted.append(folder)

    yield do
    for folder in reversed(mounted):
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def small_home(bench: FarBench, mount: Callable[..., None]) -> Callable[[str], None]:
    """Give the account a home on a separate file system; a second call changes its options."""

    def make(options: str) -> None:
        account = bench.box.account
        if os.path.ismount(account.home):
            mount(account.home, f"remount,{options}")
            return
        keys = (account.home / ".ssh" / "authorized_keys").read_text()
        mount(account.home, f"uid={account.uid},mode=755,{options}")
        account.authorize(keys)

    return make


def _python3(bench: FarBench, text: str) -> None:
    """Make `text` the `python3` that a login on the box finds first; an empty text restores the system's own."""
    account = bench.box.account
    account.write(".bashrc", "PATH=$HOME/bin:$PATH\n" if text else "")
    if text:
        account.write("bin/python3", text, 0o755)


def _refused(bench: FarBench, code: int, *words: str) -> Any:
    """Submit, and check the sentence, the record and the unchanged project. Returns the record."""
    before = _project(bench)
    done = bench.submit("t.py")
    assert done.code == code, (done.code, done.err)
    for word in words:
        assert word in done.err, done.err
    assert done.err.count("error: ") == 1
    record = bench.record(bench.near_ids()[-1])
    assert (record["status"], record["reason"]) == ("Failed", "not-started"), record
    assert words[0] in record["reason_text"], record["reason_text"]
    assert _project(bench) == before
    return record


def _project(bench: FarBench) -> dict[str, bytes]:
    return {
        str(path.relative_to(bench.root)): path.read_bytes()
        for path in bench.root.rglob("*")
        if path.is_file() and ".holdfast" not in path.parts
    }


def _works(bench: FarBench) -> None:
    done = bench.submit("t.py")
    assert (done.code, done.out) == (0, "works\n"), done.err
    assert (bench.near(bench.near_ids()[-1]) / "outputs" / "x").read_text() == "y"
    bench.until_left()
    wait_for(lambda: not _litter(bench), what="nothing is half-written")


def _litter(bench: FarBench) -> list[str]:
    """What a failure left half-written on the box."""
    return [
        str(path.relative_to(bench.home))
        for path in bench.home.rglob(".*")
        if path.name.startswith((".new-", ".removing-")) or path.parent.name == ".incoming"
    ]


def test_a_read_only_home_is_named_before_and_after_the_far_side_is_there(
    bench: FarBench, small_home: Callable[[str], None]
) -> None:
    small_home("size=8m")
    small_home("ro")
    _refused(bench, 244, "read-only file system", bench.box.account.name, "--home DIR")
    small_home("rw")
    _works(bench)
    small_home("ro")
    bench.write("other.txt", "something to send")
    _refused(bench, 244, "read-only file system", str(bench.home))
    small_home("rw")
    _works(bench)


def test_a_full_disk_is_named_before_and_after_the_far_side_is_there(
    bench: FarBench, small_home: Callable[[str], None]
) -> None:
    small_home("size=4m")
    filler = fill(bench.box.account.home)
    _refused(bench, 244, "the disk is full", bench.box.account.name)
    wait_for(lambda: not _litter(bench))
    filler.unlink()
    _works(bench)
    filler = fill(bench.box.account.home)
    bench.write("other.txt", "something to send\n" * 1000)
    _refused(bench, 244, "the disk is full", str(bench.home))
    filler.unlink()
    _works(bench)


def test_a_snapshot_that_does_not_fit_is_named_and_leaves_room_again(
    bench: FarBench, small_home: Callable[[str], None]
) -> None:
    small_home("size=3m")
    _works(bench)
    (bench.root / "large.bin").write_bytes(os.urandom(6 << 20))
    _refused(bench, 244, "the disk is full", str(bench.home))
    (bench.root / "large.bin").unlink()
    _works(bench)


def test_a_home_without_inodes_is_named(bench: FarBench, small_home: Callable[[str], None]) -> None:
    small_home("size=8m,nr_inodes=40")
    _refused(bench, 244, "the disk is full (or out of inodes)")
    wait_for(lambda: not _litter(bench))
    small_home("nr_inodes=4000")
    _works(bench)
    left = os.statvfs(bench.box.account.home)
    small_home(f"nr_inodes={left.f_files - left.f_ffree + 3}")
    _refused(bench, 244, "inodes")
    small_home("nr_inodes=4000")
    _works(bench)


QUOTA = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* A quota that is used up: writing to a file below $QUOTA_OF fails while $QUOTA_OF/.used-up exists. */
ssize_t write(int fd, const void *data, size_t size) {
    static ssize_t (*real)(int, const void *, size_t);
    char link[64], path[4096], flag[4096];
    const char *root = getenv("QUOTA_OF");
    if (!real) real = (ssize_t (*)(int, const void *, size_t)) dlsym(RTLD_NEXT, "write");
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (root && length > 0) {
        path[length] = 0;
        snprintf(flag, sizeof flag, "%s/.used-up", root);
        if (!strncmp(path, root, strlen(root)) && !access(flag, F_OK)) { errno = EDQUOT; return -1; }
    }
    return real(fd, data, size);
}
"""


def test_a_quota_that_is_used_up_is_named(bench: FarBench, needs: Callable[..., None]) -> None:
    needs("gcc")
    account = bench.box.account
    source = account.write("quota.c", QUOTA)
    library = account.home / "quota.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    _python3(bench, f'#!/bin/sh\nexport QUOTA_OF="$HOME" LD_PRELOAD={library}\nexec /usr/bin/python3 "$@"\n')
    flag = account.write(".used-up", "")
    _refused(bench, 244, "quota", "quota is used up", account.name)
    wait_for(lambda: not _litter(bench))
    flag.unlink()
    _works(bench)
    account.write(".used-up", "")
    bench.write("other.txt", "something to send\n")
    _refused(bench, 244, "quota", str(bench.home))
    flag.unlink()
    _works(bench)


def test_an_old_python_is_named_with_its_version(bench: FarBench) -> None:
    """No such version is available any more: this program claims to be one, and is refused at once."""
    pretend = "import sys; sys.version_info = (3, 5, 2, 'final', 0); sys.argv[:3] = []; sys.argv[0] = '-c'"
    _python3(
        bench,
        "#!/bin/sh\n"
        'while [ "$1" != -c ]; do shift; done\n'
        f'code="$2"; shift 2\nexec /usr/bin/python3 -c "{pretend.replace("sys.argv[:3] = []; ", "")}; $code" "$@"\n',
    )
    _refused(bench, 245, "is 3.5; Holdfast needs 3.6 or newer", "newer Python")
    assert not bench.home.exists()
    _python3(bench, "")
    _works(bench)


def test_a_box_without_python_is_told_what_it_needs(bench: FarBench) -> None:
    bench.box.account.write(".bashrc", "PATH=$HOME/nothing\n")
    _refused(bench, 245, "has no `python3`", "Install Python 3.6 or newer")
    bench.box.account.write(".bashrc", "")
    _works(bench)


def test_a_python_that_does_not_start_is_shown_with_its_own_words(bench: FarBench) -> None:
    _python3(bench, "#!/bin/sh\necho 'python3: error while loading shared libraries: libpython.so' >&2\nexit 127\n")
    done = bench.submit("t.py")
    assert done.code == 245
    assert "libpython.so" in done.err, done.err


def test_the_oldest_python_that_is_supported_runs_everything(bench: FarBench, mount: Callable[..., None]) -> None:
    """The user's home has it, in the bare locale of a login without a terminal."""
    oldest = next(iter(FOUND.values()), None)
    assert oldest is not None
    prefix = oldest.resolve().parents[1]
    place = bench.box.account.home / "old"
    place.mkdir()
    mount(place, "bind,ro", str(prefix))
    _python3(bench, f'#!/bin/sh\nunset LANG LC_ALL\nLD_LIBRARY_PATH={place}/lib exec {place}/bin/{oldest.name} "$@"\n')
    bench.write("ä ö.txt", "ü")
    bench.write(
        "t.py", "import holdfast\nprint(open('ä ö.txt'.encode(), encoding='utf-8').read())\nholdfast.log('x', 1)\n"
    )
    done = bench.submit("t.py")
    assert (done.code, done.out) == (0, "ü\n"), done.err
    assert bench.record()["metrics"] == {"x": 1}


def test_a_temporary_folder_without_programs_does_not_matter_to_a_run(
    bench: FarBench, mount: Callable[..., None]
) -> None:
    place = bench.box.account.home / "tmp"
    place.mkdir()
    mount(place, "noexec,mode=1777,size=1m")
    bench.box.account.write(".bashrc", "export TMPDIR=$HOME/tmp\n")
    bench.write("t.py", "import tempfile\nprint(tempfile.gettempdir())\n")
    done = bench.submit("t.py")
    assert (done.code, done.out) == (0, f"{place}\n"), done.err
    assert list(place.iterdir()) == []


def test_a_home_without_programs_is_told_apart_when_a_python_lies_in_it(
    bench: FarBench, small_home: Callable[[str], None]
) -> None:
    small_home("noexec,size=8m")
    _works(bench)
    bench.write("bin/python3", '#!/bin/sh\nexec /usr/bin/python3 "$@"\n').chmod(0o755)
    bench.attach(bench.box, compute="pythonLocation: bin/python3\n")
    done = bench.submit("t.py")
    assert done.code == 246, done.err
    assert bench.record()["reason"] == "cannot-start"
    assert "noexec" in done.err, done.err


@pytest.mark.parametrize("off, way", [("+3d", "ahead of"), ("-400d", "behind")])
def test_a_clock_that_is_off_is_named_and_times_are_the_boxs(
    bench: FarBench, needs: Callable[..., None], off: str, way: str
) -> None:
    needs("faketime")
    library = next(Path("/").glob("usr/lib/*/faketime/libfaketime.so.1"))
    _python3(
        bench,
        f"#!/bin/sh\nexport LD_PRELOAD={library} FAKETIME={off} FAKETIME_DONT_FAKE_MONOTONIC=1\n"
        'exec /usr/bin/python3 "$@"\n',
    )
    done = bench.submit("t.py")
    assert (done.code, done.out) == (0, "works\n"), done.err
    days = int(off[1:-1])
    assert f"The clock of {bench.box.account.name}@{bench.box.address} is {days}d {way} this machine's." in done.err
    (run_id,) = bench.near_ids()
    record = bench.record(run_id)
    assert (record["status"], record["notes"]) == ("Completed", [])
    assert not record["duration"].startswith("-")
    events = [json.loads(line) for line in (bench.near(run_id) / "journal.jsonl").read_text().splitlines()]
    offset = record["clock_offset"]
    assert abs(offset - days * 86400 * (1 if off[0] == "+" else -1)) < 60
    assert abs(events[-1]["t"] - (os.stat(bench.near(run_id) / "submission.json").st_mtime + offset)) < 60
    _python3(bench, "")
    assert "clock" not in bench.submit("t.py").err


def test_another_architecture_is_named_when_the_box_is_looked_at(bench: FarBench, needs: Callable[..., None]) -> None:
    needs("setarch")
    _python3(bench, '#!/bin/sh\nexec setarch i686 /usr/bin/python3 "$@"\n')
    done = bench.run("computetarget", "check", "gpu1", "-o", "table")
    assert done.code == 0, done.err
    assert " i686, " in done.out + done.err
    _works(bench)
