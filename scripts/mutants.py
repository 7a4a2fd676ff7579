"""Break Holdfast in one small way after another, and check that the tests notice: `make mutants`.

Each file `tests/mutants/NAME.patch` is one such mistake, with the tests that have to fail for it. They run in a copy of
this repository with its own Python environment, so that processes that a test starts import the broken copy too.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "mutants"
KILLED, SURVIVED, BROKEN = "killed", "SURVIVED", "broken"
TESTS_FAILED = 1
"""What pytest exits with then; more means that it could not run them."""
LONGEST = 300.0
"""Seconds for the tests of one mutant."""
LONGEST_OF_ALL = 1800.0
LINES_SHOWN = 15
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class BrokenMutant(Exception):
    """The mutant cannot be tried; the message says why."""


class Mutant(NamedTuple):
    """`sentence` says what breaks for a user; `tests` are files or `file.py::function`, as pytest takes them."""

    name: str
    sentence: str
    tests: tuple[str, ...]
    patch: str


class Outcome(NamedTuple):
    word: str
    seconds: float
    detail: str = ""


class Done(NamedTuple):
    """How pytest ended. `code` is None if it took too long."""

    code: int | None
    output: str


def parse(name: str, text: str) -> Mutant:
    """The header is a sentence on one or two lines and a line `Tests: …`; the diff follows. Raises BrokenMutant."""
    header, found, diff = text.partition("diff --git ")
    if not found:
        raise BrokenMutant("it has no line `diff --git …`")
    lines = [line.strip() for line in header.splitlines() if line.strip()]
    tests = [test for line in lines if line.startswith("Tests:") for test in line[len("Tests:") :].split()]
    sentence = " ".join(line for line in lines if not line.startswith("Tests:"))
    if not _NAME.fullmatch(name):
        raise BrokenMutant("its name has something else than small letters, digits and dashes")
    if not sentence.endswith("."):
        raise BrokenMutant("it does not begin with a sentence on what breaks")
    if not tests:
        raise BrokenMutant("it has no line `Tests: …`")
    for path in changed_files(diff):
        if not path.startswith("src/"):
            raise BrokenMutant(f"it changes `{path}`, which is not below src/")
    return Mutant(name, sentence, tuple(tests), text)


def changed_files(patch: str) -> list[str]:
    return re.findall(r"^\+\+\+ b/(\S+)", patch, re.MULTILINE)


def missing_test(root: Path, tests: Sequence[str]) -> str:
    """The first of these that does not exist; empty if all do."""
    for test in tests:
        file, _, function = test.partition("::")
        path = root / file
        if not path.exists():
            return test
        if function and not re.search(rf"^\s*def {re.escape(function)}\(", path.read_text(encoding="utf-8"), re.M):
            return test
    return ""


def judge(done: Done) -> tuple[str, str]:
    """The word for how the tests of a mutant ended, and why if that is not obvious."""
    if done.code == TESTS_FAILED:
        return KILLED, ""
    if done.code == 0:
        return SURVIVED, ""
    if done.code is None:
        return BROKEN, f"its tests took more than {LONGEST:g} s"
    return BROKEN, f"pytest exited with {done.code}: {_last_line(done.output)}"


class Copy:
    """The files of this repository as they are now, without what git ignores, and a Python that imports the copy."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / ".venv" / "bin" / "python"
        self._time = int(time.time())
        self._originals: dict[Path, bytes] = {}
        for name in _files():
            if os.path.lexists(ROOT / name):
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
        images = ROOT / ".cache" / "docker"  # they take minutes to make, and no mutant changes them
        images.mkdir(parents=True, exist_ok=True)
        (folder / ".cache").mkdir()
        (folder / ".cache" / "docker").symlink_to(images)
        venv.create(folder / ".venv", symlinks=True)
        # A path in such a file is not searched for further ones, so that the packages of .venv are found,
        # and the sources that it leads to are not. PYTHONPATH would not work: tests remove it from their environment.
        site = next((folder / ".venv" / "lib").glob("python*/site-packages"))
        (site / "copy.pth").write_text(f"{folder / 'src'}\n{sysconfig.get_path('purelib')}\n", encoding="utf-8")
        self._require_own_sources()

    def apply(self, mutant: Mutant) -> None:
        """Raises BrokenMutant if the patch no longer fits the sources."""
        paths = [self.folder / name for name in changed_files(mutant.patch)]
        self._originals = {path: path.read_bytes() for path in paths if path.is_file()}
        done = self._run(["git", "apply", "--whitespace=nowarn", "-"], self.folder, mutant.patch)
        if done.returncode != 0:
            raise BrokenMutant(f"the patch does not apply: {_last_line(done.stderr)}")
        self._stamp()

    def restore(self) -> None:
        for path, content in self._originals.items():
            path.write_bytes(content)
        self._stamp()

    def test(self, tests: Sequence[str], longest: float) -> Done:
        words = [os.fspath(self.python), "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
        with tempfile.TemporaryFile("w+", errors="replace") as output:  # a pipe could stay open in what is left behind
            started = subprocess.Popen(
                words,
                cwd=self.folder,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code: int | None = started.wait(longest)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                self._end_processes()
                started.wait()
            output.seek(0)
            return Done(code, output.read())

    def _run(self, words: Sequence[str], folder: Path, given: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=folder, env=self._environment(), input=given, capture_output=True, text=True, check=False
        )

    def _end_processes(self) -> None:
        """All processes of the copy's Python, in any session: broken code leaves runs behind."""
        mark = os.fsencode(self.folder / ".venv")
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if entry.read_bytes().startswith(mark):
                    os.kill(int(entry.parent.name), signal.SIGKILL)

    def _stamp(self) -> None:
        """A time that the files never had: Python takes bytecode for current by time in seconds and size."""
        self._time += 1
        for path in self._originals:
            os.utime(path, (self._time, self._time))

    def _environment(self) -> dict[str, str]:
        """Without variables that lead to other sources; git must not use a repository around the copy."""
        unwanted = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV")
        kept = {name: value for name, value in os.environ.items() if name not in unwanted}
        return {**kept, "GIT_CEILING_DIRECTORIES": os.fspath(self.folder.parent)}

    def _require_own_sources(self) -> None:
        words = [os.fspath(self.python), "-c", "import holdfast.farside as far; print(far.__file__)"]
        done = self._run(words, self.folder.parent)
        if not done.stdout.startswith(os.fspath(self.folder / "src")):
            sys.exit(f"The copy does not import its own sources: {done.stdout.strip() or done.stderr.strip()}")


def _files() -> list[str]:
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in done.stdout.split("\0") if name]


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def read(names: Sequence[str]) -> tuple[list[Mutant], dict[str, str]]:
    """The mutants of these names, all if there are none, and why some of them cannot be tried."""
    found, broken = [], {}
    for name in names or sorted(path.stem for path in FOLDER.glob("*.patch")):
        try:
            found.append(_read(name))
        except BrokenMutant as problem:
            broken[name] = str(problem)
    return found, broken


def _read(name: str) -> Mutant:
    path = FOLDER / f"{name}.patch"
    if not path.is_file():
        raise BrokenMutant("there is no such mutant")
    mutant = parse(name, path.read_text(encoding="utf-8"))
    missing = missing_test(ROOT, mutant.tests)
    if missing:
        raise BrokenMutant(f"there is no test `{missing}`")
    return mutant


def attempt(copy: Copy, mutant: Mutant) -> Outcome:
    began = time.monotonic()
    try:
        copy.apply(mutant)
        word, detail = judge(copy.test(mutant.tests, LONGEST))
    except BrokenMutant as problem:
        word, detail = BROKEN, str(problem)
    finally:
        copy.restore()
    return Outcome(word, time.monotonic() - began, detail)


def say(name: str, outcome: Outcome, mutant: Mutant | None = None) -> None:
    detail = outcome.detail
    if outcome.word == SURVIVED and mutant is not None:
        detail = f"{mutant.sentence} Not noticed by: {' '.join(mutant.tests)}"
    print(f"{outcome.word:<9}{outcome.seconds:6.1f}s  {name}{': ' if detail else ''}{detail}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="See that the tests notice each mistake of tests/mutants.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these; without: all")
    mutants, broken = read(parser.parse_args().names)
    words = []
    for name, problem in broken.items():
        say(name, Outcome(BROKEN, 0.0, problem))
        words.append(BROKEN)
    with tempfile.TemporaryDirectory(prefix="holdfast-mutants-") as folder:
        copy = Copy(Path(folder).resolve())
        tests = sorted({test for mutant in mutants for test in mutant.tests})
        print(f"First {len(tests)} files and single tests without any mutant …", flush=True)
        done = copy.test(tests, LONGEST_OF_ALL) if tests else Done(0, "")
        if done.code != 0:
            print("\n".join(done.output.splitlines()[-LINES_SHOWN:]))
            print("The tests fail without any mutant, so nothing can be said of the mutants.")
            return 1
        for mutant in mutants:
            outcome = attempt(copy, mutant)
            say(mutant.name, outcome, mutant)
            words.append(outcome.word)
    print(", ".join(f"{words.count(word)} {word.lower()}" for word in (KILLED, SURVIVED, BROKEN)))
    return 0 if words and set(words) == {KILLED} else 1


if __name__ == "__main__":
    sys.exit(main())
