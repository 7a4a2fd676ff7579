"""A repository whose configuration names programs, remotes and files: none is run, asked or waited for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from holdfast.snapshots.git_files import Git, revision
from holdfast.snapshots.git_process import Bounds, GitBusyError, GitError, GitStuckError, GitTooLargeError
from holdfast.snapshots.ignore import explain, list_files
from holdfast.snapshots.take import Selection, take_snapshot
from holdfast.snapshots.warnings import unlisted_by_git
from kit import processes
from kit.waiting import wait_for

_IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
_COMMIT = "1" * 40


class Trap(NamedTuple):
    """A repository, and a program that leaves a word in a file when it runs."""

    top: Path
    program: Path
    left: Path

    def git(self, *words: str) -> None:
        subprocess.run(["git", *_IDENTITY, *words], cwd=self.top, check=True, capture_output=True)

    def configure(self, *settings: str) -> None:
        for each in settings:
            name, _, value = each.replace("{trap}", str(self.program)).partition("=")
            self.git("config", name, value)

    def says(self) -> str:
        return self.left.read_text() if self.left.exists() else ""


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    """A partial clone with a sparse checkout: git needs a file of rules that is neither in the folder nor in the
    clone, and would fetch it."""
    left, program = tmp_path / "left", tmp_path / "bin" / "git-remote-trap"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {left}\nexit 1\n')
    program.chmod(0o755)
    origin = tmp_path / "origin"
    (origin / "sub").mkdir(parents=True)
    (origin / "train.py").write_text("print(1)\n")
    (origin / "sub" / ".gitignore").write_text("*.o\n")
    made = Trap(origin, program, left)
    made.git("init", "-q")
    made.git("add", ".")
    made.git("commit", "-qm1")
    made.git("config", "uploadpack.allowFilter", "true")
    made = made._replace(top=tmp_path / "clone")
    made.top.mkdir()
    made.git("clone", "-q", "--no-checkout", "--filter=blob:none", origin.as_uri(), ".")
    made.git("read-tree", "HEAD")
    made.git("sparse-checkout", "init", "--cone")
    (made.top / "sub").mkdir(exist_ok=True)
    (made.top / "sub" / "new").write_text("new")
    (made.top / "train.py").write_text("print(2)\n")
    return made


_URL, _ANY = "remote.origin.url", "protocol.allow=always"
_SWITCHES = {
    "a remote helper": [f"{_URL}=ext::{{trap}} %S", "protocol.ext.allow=always"],
    "a helper by name": [f"{_URL}=trap://host/x", _ANY],
    "a vcs": [f"{_URL}=x", "remote.origin.vcs=trap", _ANY],
    "ssh": [f"{_URL}=ssh://host/x", "core.sshCommand={trap}"],
    "ssh by its short form": [f"{_URL}=host:x", "core.sshCommand={trap}", "ssh.variant=simple"],
    "the far end of a local remote": ["remote.origin.uploadpack={trap}"],
    "another promisor": [
        *("remote.origin.promisor=false", "extensions.partialClone=b", "remote.b.promisor=true"),
        *("remote.b.url=ext::{trap}", "protocol.ext.allow=always"),
    ],
    "a replaced address": [f"{_URL}=x://y", "url.ext::{trap} .insteadOf=x://", "protocol.ext.allow=always"],
    "a proxy": [f"{_URL}=git://host/x", "core.gitProxy={trap}"],
    "a login": [f"{_URL}=http://127.0.0.1:1/x", "credential.helper={trap}", "core.askPass={trap}"],
    "a monitor": ["core.fsmonitor={trap}"],
    "a monitor that is on": ["core.fsmonitor=true", "core.useBuiltinFSMonitor=true"],
    "a pager": ["core.pager={trap}", "pager.ls-files={trap}", "pager.check-ignore={trap}"],
    "filters": ["filter.t.clean={trap}", "filter.t.smudge={trap}", "filter.t.process={trap}", "filter.t.required=true"],
    "diffs": ["diff.external={trap}", "diff.t.textconv={trap}", "diff.t.command={trap}", "merge.t.driver={trap}"],
    "aliases": ["alias.ls-files=!{trap}", "alias.check-ignore=!{trap}", "alias.fetch=!{trap}"],
    "editors and signatures": ["core.editor={trap}", "sequence.editor={trap}", "gpg.program={trap}"],
    "alternate references": ["core.alternateRefsCommand={trap}"],
    "maintenance": ["gc.auto=1", "gc.autoDetach=false", "maintenance.auto=true", "fetch.writeCommitGraph=true"],
}


def _hooks(trap: Trap, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("post-index-change", "reference-transaction", "post-checkout", "pre-auto-gc", "fsmonitor-watchman"):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(trap.program)


def _ask_everything(top: Path, environment: dict[str, str] | None = None) -> None:
    list_files(top, environment)
    take_snapshot(top, top / ".holdfast", None, Selection(environment))
    for path in ("train.py", "sub/new", "sub/x.o"):
        explain(top, path, environment)
    revision(top)


@pytest.mark.parametrize("switch", _SWITCHES)
def test_no_program_runs_that_a_repository_names(trap: Trap, switch: str) -> None:
    (trap.top / ".gitattributes").write_text("* filter=t diff=t merge=t\n")
    trap.configure(*_SWITCHES[switch])
    _ask_everything(trap.top, {**os.environ, "PATH": f"{trap.program.parent}:{os.environ['PATH']}"})
    assert trap.says() == ""


@pytest.mark.parametrize("place", [".git/hooks", "hooks"])
def test_no_hook_runs(trap: Trap, place: str) -> None:
    _hooks(trap, trap.top / place)
    trap.configure(f"core.hooksPath={place}", "core.untrackedCache=true", "core.splitIndex=true", "index.sparse=true")
    _ask_everything(trap.top)
    # Git 2.39 runs no hook for any of these questions. It does for this one, which is asked of it in the same way.
    trap.configure("core.splitIndex=false")
    Git()._run(os.fsencode(trap.top), [b"update-index", b"--assume-unchanged", b"train.py"])
    assert trap.says() == ""


_ASKED: dict[str, Callable[[Git, bytes], object]] = {
    "ls-files": lambda git, top: git.ask_for_files(top, [b"x"]).wait(),
    "--literal-pathspecs": lambda git, top: git.is_tracked(top, b"train.py"),
    "check-ignore": lambda git, top: git.ignoring_rule(top, b"train.py"),
}


@pytest.mark.parametrize("question", _ASKED)
def test_each_question_has_every_switch(tmp_path: Path, question: str) -> None:
    """Some are redundant, so that no repository shows that one is missing: git before 2.45 ignores GIT_NO_LAZY_FETCH,
    GIT_ALLOW_PROTOCOL has the same effect later, also as `protocol.allow`, git before 2.40 knows no `fetch.bundleURI`,
    and none of the questions has a hook, a pager or an optional lock."""
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/words\nenv > {tmp_path}/variables\n')
    git.chmod(0o755)
    _ASKED[question](Git({"PATH": f"{git.parent}:{os.environ['PATH']}", "GIT_DIR": "/x"}), os.fsencode(tmp_path))
    switches = ["core.fsmonitor=false", "core.hooksPath=/dev/null", "safe.bareRepository=explicit"]
    switches += ["fetch.bundleURI=", "credential.helper=", "core.askPass=", "protocol.allow=never"]
    words = ["--no-pager", *(word for switch in switches for word in ("-c", switch)), question]
    assert (tmp_path / "words").read_text().splitlines()[: len(words)] == words
    assert {each for each in (tmp_path / "variables").read_text().splitlines() if each.startswith("GIT_")} == {
        "GIT_ALLOW_PROTOCOL=",
        "GIT_NO_LAZY_FETCH=1",
        "GIT_OPTIONAL_LOCKS=0",
        "GIT_TERMINAL_PROMPT=0",
        f"GIT_WORK_TREE={tmp_path}",
        f"GIT_CEILING_DIRECTORIES={tmp_path.parent}",
    }


@pytest.mark.parametrize("setting", ["credential.helper", "credential.https://host.example.helper", "core.askPass"])
def test_no_program_is_asked_for_a_password(trap: Trap, setting: str) -> None:
    """None of the questions needs one; this is asked of git in the same way."""
    trap.configure(f"{setting}={{trap}}")
    with pytest.raises(GitError):
        Git()._run(os.fsencode(trap.top), [b"credential", b"fill"], b"url=https://host.example/x\n\n")
    assert trap.says() == ""


@pytest.mark.parametrize("way", ["include", "worktree"])
def test_a_configuration_beside_the_repositorys_own_is_no_way_in(trap: Trap, way: str) -> None:
    trap.configure("extensions.worktreeConfig=true")
    trap.git("config", "--unset", _URL)
    other = trap.top / ".git" / ("config.worktree" if way == "worktree" else "more")
    more = f'[protocol]\n\tallow = always\n[remote "origin"]\n\turl = "ext::{trap.program} %S"\n'
    other.write_text((other.read_text() if other.exists() else "") + more)
    if way == "include":
        trap.configure(f"include.path={other}")
    _ask_everything(trap.top)
    assert trap.says() == ""


def test_a_repository_inside_the_project_is_no_way_in(trap: Trap, tmp_path: Path) -> None:
    trap.configure(f"{_URL}=ext::{trap.program} %S", "protocol.ext.allow=always", f"core.fsmonitor={trap.program}")
    project = tmp_path / "project"
    project.mkdir()
    trap.top.rename(project / "inner")
    _ask_everything(project)
    trap._replace(top=project).git("init", "-q")
    _ask_everything(project)
    assert explain(project, "inner/sub/x.o") is None
    assert trap.says() == ""


def test_a_folder_that_looks_like_a_repository_is_none(trap: Trap, tmp_path: Path) -> None:
    (tmp_path / "around").mkdir()
    around = trap._replace(top=tmp_path / "around")
    around.git("init", "-q")
    project = around.top / "project"
    project.mkdir()
    around._replace(top=project).git("init", "-q", "--bare", ".")
    with (project / "config").open("a") as config:
        config.write(f"[core]\n\tfsmonitor = {trap.program}\n\tworktree = {tmp_path / 'elsewhere'}\n\tbare = false\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "config").write_text("of others")
    (project / "info" / "exclude").write_text("train.py\n")
    (project / "train.py").write_text("own")
    assert {"HEAD", "train.py"} <= set(list_files(project).paths), "its rules count"
    assert trap.says() == ""


def test_the_files_are_listed_although_nothing_is_fetched(trap: Trap) -> None:
    trap.configure(f"{_URL}=ext::{trap.program} %S", "protocol.ext.allow=always")
    listed = list_files(trap.top)
    assert sorted(listed.paths) == ["sub/new", "train.py"]
    assert [each.path for each in listed.warnings] == ["."]


def test_a_work_tree_elsewhere_is_not_listed(trap: Trap, tmp_path: Path) -> None:
    other = tmp_path / "private"
    other.mkdir()
    (other / "train.py").write_text("of others")
    (other / "key").write_text("of others")
    (trap.top / "key").write_text("own")
    trap.git("sparse-checkout", "disable")
    trap.configure("core.sparseCheckout=false", f"core.worktree={other}")
    (trap.top / "more").write_text("own")
    assert {"key", "more", "train.py"} <= set(list_files(trap.top).paths)


@pytest.mark.parametrize("file", [".gitignore", ".git/info/exclude", ".git/config", ".git/index", "excludes"])
def test_git_is_not_waited_for_where_a_pipe_is_a_file(trap: Trap, file: str) -> None:
    pipe = trap.top / file
    if file == "excludes":
        trap.configure(f"core.excludesFile={pipe}")
    pipe.parent.mkdir(exist_ok=True)
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    with pytest.raises(GitError) as caught:
        Git(bounds=Bounds(patience=0.2)).ask_for_files(os.fsencode(trap.top), [b"x"]).wait()
    assert isinstance(caught.value, GitStuckError)


def test_a_project_with_such_a_pipe_is_listed_without_git(trap: Trap, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.snapshots.ignore.Git", lambda environment: Git(environment, Bounds(patience=0.2)))
    os.mkfifo(trap.top / ".gitignore")
    (trap.top / "inner").mkdir()
    trap._replace(top=trap.top / "inner").git("init", "-q")
    os.mkfifo(trap.top / "inner" / ".gitignore")
    listed = list_files(trap.top)
    assert {"sub/new", "train.py"} <= set(listed.paths)
    assert {".", ".gitignore", "inner/.gitignore"} == {each.path for each in listed.warnings}
    assert "find " in next(each.remedy for each in listed.warnings if each.path == ".")


@pytest.mark.parametrize(
    "head",
    [
        "ref: ../../secret",
        "ref: refs/../../../secret",
        "ref: refs//secret",
        "ref: /etc/hostname",
        "ref: refs/.x",
        "secret",
    ],
)
def test_the_commit_is_read_from_nowhere_else(tmp_path: Path, head: str) -> None:
    (tmp_path / "secret").write_text(_COMMIT)
    (tmp_path / "project" / ".git" / "refs").mkdir(parents=True)
    (tmp_path / "project" / ".git" / "HEAD").write_text(head)
    assert revision(tmp_path / "project") is None


@pytest.mark.parametrize("file", ["HEAD", "refs/heads/main", "packed-refs", "commondir"])
@pytest.mark.parametrize("kind", ["pipe", "endless", "other"])
def test_no_file_of_git_holds_the_commit_up(tmp_path: Path, file: str, kind: str) -> None:
    git = tmp_path / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    place = git / file
    place.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "endless":
        place.symlink_to("/dev/zero")
    else:
        place.write_text("password = swordfish\n")
    assert revision(tmp_path) is None


def test_a_worktrees_file_that_is_endless_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / ".git").open("wb") as file:
        file.truncate(1 << 40)
    assert revision(tmp_path) is None


def test_a_file_of_the_project_is_not_taken_for_git(trap: Trap, monkeypatch: pytest.MonkeyPatch) -> None:
    (trap.top / "git").symlink_to(trap.program)
    monkeypatch.chdir(trap.top)
    for path in ("", ".", "./", "bin"):
        (trap.top / "bin").mkdir(exist_ok=True)
        (trap.top / "bin" / "git").unlink(missing_ok=True)
        (trap.top / "bin" / "git").symlink_to(trap.program)
        _ask_everything(trap.top, {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"})
    assert trap.says() == ""


def endless_work(trap: Trap) -> None:
    """Git tries each way to spread the patterns over the folders."""
    (trap.top / "/".join("a" * 40)).mkdir(parents=True)
    (trap.top / "/".join("a" * 40) / "c").write_text("")
    (trap.top / ".gitignore").write_text("**/a/" * 20 + "b\n")


def large_rules(trap: Trap) -> None:
    with (trap.top / ".gitignore").open("wb") as file:
        file.truncate(1 << 27)


def endless_link(trap: Trap) -> None:
    (trap.top / ".git" / "commondir").symlink_to("/dev/zero")


def large_file_of_git(trap: Trap) -> None:
    with (trap.top / ".git" / "commondir").open("wb") as file:
        file.truncate(1 << 27)


_GREEDY: dict[Callable[[Trap], None], tuple[type[GitError], str]] = {
    endless_work: (GitBusyError, "computed"),
    large_rules: (GitTooLargeError, "memory"),
    endless_link: (GitTooLargeError, "commondir"),
    large_file_of_git: (GitTooLargeError, "commondir"),
}


@pytest.mark.parametrize("makes_greedy", _GREEDY)
def test_git_gets_only_so_much_time_and_memory(trap: Trap, makes_greedy: Callable[[Trap], None]) -> None:
    trap.git("sparse-checkout", "disable")
    makes_greedy(trap)
    small = Git(bounds=Bounds(patience=0.2, effort=0.5, memory=1 << 26))
    with pytest.raises(GitError) as caught:
        small.ask_for_files(os.fsencode(trap.top), [b"x"]).wait()
    kind, word = _GREEDY[makes_greedy]
    assert type(caught.value) is kind and word in str(caught.value)


def test_the_command_that_finds_endless_patterns_finds_them(trap: Trap, tmp_path: Path) -> None:
    endless_work(trap)
    (tmp_path / "clone" / "sub" / ".gitignore").write_text("**/logs\na/**/b\n")
    failure = GitBusyError("git has computed for 60 seconds without an answer")
    command = unlisted_by_git(".", str(trap.top), failure).remedy.partition(": ")[2]
    said = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout
    assert [line.partition(":")[0] for line in said.splitlines()] == [str(trap.top / ".gitignore")]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits another process")
def test_a_git_that_outlives_us_has_limits(trap: Trap) -> None:
    os.mkfifo(trap.top / ".gitignore")
    asked = Git(bounds=Bounds(patience=2)).ask_for_files(os.fsencode(trap.top), [b"x"])
    limits = Path(f"/proc/{_git_in(trap.top)}/limits").read_text()
    found = {line[:26].strip(): line[26:].split()[:2] for line in limits.splitlines()}
    assert found["Max data size"] == ["1073741824"] * 2
    assert found["Max cpu time"] == ["600"] * 2
    with pytest.raises(GitStuckError):
        asked.wait()


def test_git_ends_with_an_interrupted_command(trap: Trap) -> None:
    os.mkfifo(trap.top / ".gitignore")
    words = [sys.executable, "-m", "holdfast", "submit", "--dry-run", "train.py"]
    with subprocess.Popen(words, cwd=trap.top, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        git = _git_in(trap.top)
        process.send_signal(signal.SIGINT)  # to the command alone; a terminal sends it to git too
        process.wait()
    wait_for(lambda: not processes.is_alive(git), what="git is gone")


def _git_in(top: Path) -> int:
    """The process of git that works there."""

    def found() -> list[int]:
        alive = (each for each in processes.every() if each.is_alive and each.folder == str(top))
        return [each.pid for each in alive if each.program.endswith("/git")]

    return wait_for(found, what="git has begun")[0]
