"""Which files ship, in a git work tree and elsewhere, and which rule leaves one out."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.errors import ProjectError
from holdfast.snapshots.ignore import Rule, explain, list_files
from holdfast.snapshots.take import take_snapshot

Write = Callable[..., None]
Git = Callable[..., str]


@pytest.fixture(params=["git", "walk"])
def either(request: pytest.FixtureRequest, project: Path, git: Git) -> str:
    """Both ways: the project is a git work tree, or it is not."""
    if request.param == "git":
        git(project, "init", "-q")
    return str(request.param)


def shipped(project: Path) -> list[str]:
    return sorted(list_files(project).paths)


def test_everything_ships_when_no_rule_is_there(project: Path, either: str, write: Write) -> None:
    write("train.py", "data/a b.csv", "data/quote'\".csv", "data/new\nline", "deep/er/est/x", ".hidden")
    (project / os.fsdecode(b"caf\xe9")).write_text("latin 1")
    expected = [".hidden", "data/a b.csv", "data/new\nline", "data/quote'\".csv", "deep/er/est/x", "train.py"]
    assert shipped(project) == sorted([*expected, os.fsdecode(b"caf\xe9")])


def test_what_is_built_in_stays_out(project: Path, either: str, write: Write) -> None:
    write(
        "docs/a",
        "outputs/a",
        ".holdfast/a",
        "__pycache__/a",
        "p/__pycache__/a",
        "p/a.pyc",
        ".ipynb_checkpoints/a",
    )
    write("p/docs/a", "p/outputs/a", "p/.holdfast/a", "kept")
    assert shipped(project) == ["kept", "p/.holdfast/a", "p/docs/a", "p/outputs/a"]


def test_amlignore_takes_built_in_folders_back_but_not_git_and_ours(project: Path, either: str, write: Write) -> None:
    write("docs/a", "outputs/a", ".holdfast/a", "p/a.pyc", "sub/.git/x")
    (project / ".amlignore").write_text("!docs/\n!outputs\n!*.pyc\n!.git\n!.git/\n!.holdfast\n!/.holdfast/\n")
    found = shipped(project)
    assert {"docs/a", "outputs/a", "p/a.pyc"} <= set(found)
    assert not [path for path in found if ".git/" in path or ".holdfast" in path]


def test_a_link_named_outputs_stays_out(project: Path, either: str, write: Write) -> None:
    write("a")
    (project / "outputs").symlink_to("/nowhere")
    assert shipped(project) == ["a"]


def test_amlignore_is_stronger_than_gitignore_in_both_directions(project: Path, either: str, write: Write) -> None:
    write("a.csv", "b.csv", "data/c.csv", "c.txt", "data/c.bin")
    (project / ".gitignore").write_text("*.csv\ndata/\n")
    (project / ".amlignore").write_text("!b.csv\n!data/\n*.txt\n")
    assert shipped(project) == [".amlignore", ".gitignore", "b.csv", "data/c.bin"]


def test_amlignore_cannot_take_back_a_file_below_an_excluded_folder(project: Path, either: str, write: Write) -> None:
    write("data/a", "data/b")
    (project / ".gitignore").write_text("data/\n")
    (project / ".amlignore").write_text("!data/a\n")
    assert shipped(project) == [".amlignore", ".gitignore"]


def test_amlignore_applies_to_files_that_git_tracks(project: Path, git: Git, write: Write) -> None:
    git(project, "init", "-q")
    write("a.csv", "docs/x", "deep/er/b.csv", "kept", "deep/kept.csv")
    (project / ".amlignore").write_text("*.csv\n!kept.csv\n")
    git(project, "add", "-A")
    assert shipped(project) == [".amlignore", "deep/kept.csv", "kept"]


def test_tracked_files_of_a_folder_that_amlignore_leaves_out_stay_at_home(
    project: Path, git: Git, write: Write
) -> None:
    write("train.py", "data/a.csv", "data/raw/b.csv", "data/raw/deep/c.csv")
    git(project, "init", "-q")
    git(project, "add", ".")
    (project / ".amlignore").write_text("/data/\n!b.csv\n")
    assert shipped(project) == [".amlignore", "train.py"]


def test_a_tracked_file_ships_although_gitignore_names_it(project: Path, git: Git, write: Write) -> None:
    git(project, "init", "-q")
    write("model.bin", "other.bin")
    (project / ".gitignore").write_text("*.bin\n")
    git(project, "add", "-f", "model.bin")
    assert shipped(project) == [".gitignore", "model.bin"]
    assert explain(project, "model.bin") is None
    assert explain(project, "other.bin") == Rule(".gitignore", 1, "*.bin")


def test_a_project_inside_a_repository_obeys_the_rules_above_it(tmp_path: Path, git: Git, write: Write) -> None:
    project = tmp_path / "re[po" / "sub folder"
    write("a.log", "b.txt", "data/x", "deep/data/x", folder=project)
    git(tmp_path / "re[po", "init", "-q")
    (tmp_path / "re[po" / ".gitignore").write_text("*.log\n")
    (project / ".amlignore").write_text("/data\n")
    assert shipped(project) == [".amlignore", "b.txt", "deep/data/x"]
    assert explain(project, "a.log") == Rule("../.gitignore", 1, "*.log")


def test_a_project_that_its_repository_ignores_as_a_whole_stands_alone(tmp_path: Path, git: Git, write: Write) -> None:
    home = tmp_path / "home"
    write("train.py", "skip.log", folder=home / "project")
    git(home, "init", "-q")
    (home / ".gitignore").write_text("*\n")
    (home / "project" / ".gitignore").write_text("*.log\n")
    assert shipped(home / "project") == [".gitignore", "train.py"]
    assert explain(home / "project", "train.py") is None
    assert explain(home / "project", "skip.log") == Rule(".gitignore", 1, "*.log")


def test_a_foreign_git_environment_is_not_obeyed(
    project: Path, tmp_path: Path, git: Git, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(project, "init", "-q")
    write("a")
    (tmp_path / "other").mkdir()
    git(tmp_path / "other", "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "nowhere"))
    listing = list_files(project)
    assert (listing.paths, listing.warnings) == (("a",), ())


def test_a_git_that_fails_is_replaced_by_the_walk_with_a_warning(project: Path, git: Git, write: Write) -> None:
    write("a", "b.log")
    (project / ".gitignore").write_text("*.log\n")
    git(project, "init", "-q")
    (project / ".git" / "config").write_text("[broken\n")
    listing = list_files(project)
    assert sorted(listing.paths) == [".gitignore", "a"]
    (warning,) = listing.warnings
    assert "git could not list the files (fatal: bad config" in warning.message
    assert explain(project, "b.log") == Rule(".gitignore", 1, "*.log")


def test_a_repository_of_somebody_else_names_the_setting(
    project: Path, git: Git, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(project, "init", "-q")
    write("a")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    listing = list_files(project)
    assert listing.paths == ("a",)
    (warning,) = listing.warnings
    assert warning.remedy == f"git config --global --add safe.directory {project}"


def test_without_git_on_the_path_the_ignore_files_are_read_in_silence(
    project: Path, tmp_path: Path, git: Git, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(project, "init", "-q")
    write("a", "b.log")
    (project / ".gitignore").write_text("*.log\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    listing = list_files(project)
    assert (sorted(listing.paths), listing.warnings) == ([".gitignore", "a"], ())


def test_a_nested_repository_ships_by_its_own_rules(project: Path, either: str, git: Git, write: Write) -> None:
    write("a.log", "lib/a.log", "lib/b.tmp", "lib/docs/x", "lib/c.csv", "lib/sub/d")
    (project / ".gitignore").write_text("*.log\n")
    (project / "lib" / ".gitignore").write_text("*.tmp\n")
    (project / ".amlignore").write_text("*.csv\n")
    git(project / "lib", "init", "-q")
    git(project / "lib", "add", "sub/d")
    expected = [".amlignore", ".gitignore", "lib/.gitignore", "lib/a.log", "lib/docs/x", "lib/sub/d"]
    assert shipped(project) == expected
    assert explain(project, "lib/b.tmp") == Rule("lib/.gitignore", 1, "*.tmp")
    assert explain(project, "lib/a.log") is None


def test_a_nested_repository_that_is_left_out_is_not_asked(project: Path, either: str, git: Git, write: Write) -> None:
    write("a", "lib/x")
    (project / ".amlignore").write_text("/lib\n")
    git(project / "lib", "init", "-q")
    assert shipped(project) == [".amlignore", "a"]


def test_a_submodule_ships_and_an_empty_one_is_named(project: Path, tmp_path: Path, git: Git, write: Write) -> None:
    library = tmp_path / "library"
    write("x.py", folder=library)
    git(library, "init", "-q")
    git(library, "add", "-A")
    git(library, "commit", "-qm", "x")
    git(project, "init", "-q")
    git(project, "submodule", "--quiet", "add", str(library), "third party")
    assert shipped(project) == [".gitmodules", "third party/x.py"]
    git(project, "submodule", "--quiet", "deinit", "-f", "third party")
    listing = list_files(project)
    assert listing.paths == (".gitmodules",)
    (warning,) = listing.warnings
    assert (warning.path, warning.remedy) == ("third party", "git submodule update --init")


def test_a_submodule_without_its_git_file_ships_as_a_folder(
    project: Path, tmp_path: Path, git: Git, write: Write
) -> None:
    write("lib/x")
    git(project, "init", "-q")
    git(project, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},lib")
    assert shipped(project) == ["lib/x"]


def test_a_virtual_environment_is_left_out_with_a_note(project: Path, either: str, write: Write) -> None:
    write("a", "my env/pyvenv.cfg", "my env/lib/x.py")
    listing = list_files(project)
    assert listing.paths == ("a",)
    (warning,) = listing.warnings
    assert warning.path == "my env"
    assert "`!/my\\ env/`" in warning.remedy
    rule = explain(project, "my env/lib/x.py")
    assert rule is not None
    assert rule.source == "built in"
    (project / ".amlignore").write_text("!/my\\ env/\n")
    assert shipped(project) == [".amlignore", "a", "my env/lib/x.py", "my env/pyvenv.cfg"]


def test_an_ignored_virtual_environment_is_left_out_in_silence(project: Path, either: str, write: Write) -> None:
    write("a", ".venv/pyvenv.cfg", "env/pyvenv.cfg")
    (project / ".gitignore").write_text(".venv\n")
    (project / "env" / ".gitignore").write_text("*\n")
    listing = list_files(project)
    assert (sorted(listing.paths), listing.warnings) == ([".gitignore", "a"], ())


def test_a_conflicted_file_ships_once(project: Path, git: Git, write: Write) -> None:
    git(project, "init", "-q")
    for branch in ("main", "other"):
        git(project, "checkout", "-q", "--orphan", branch)
        (project / "a").write_text(branch)
        git(project, "add", "a")
        git(project, "commit", "-qm", branch)
    with pytest.raises(Exception, match="merge"):
        git(project, "merge", "--allow-unrelated-histories", "main")
    assert list_files(project).paths == ("a",)


def test_pipes_and_sockets_are_named_outside_git(project: Path, write: Write) -> None:
    write("a")
    os.mkfifo(project / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/cwd/{os.path.relpath(project)}/s" if len(str(project)) > 90 else str(project / "s"))
        listing = list_files(project)
    assert listing.paths == ("a",)
    assert sorted(warning.path for warning in listing.warnings) == ["pipe", "s"]


def test_what_is_no_folder_is_a_project_error(project: Path) -> None:
    with pytest.raises(ProjectError, match="not a folder"):
        list_files(project / "missing")


def test_a_rule_is_named_with_its_file_and_line(project: Path, either: str, write: Write) -> None:
    write("data/big.csv", "sub/x.log", "docs/a", "w.bin", ".holdfast/x", "kept", "sub/kept")
    (project / ".gitignore").write_text("# data\n\ndata/\n")
    (project / "sub" / ".gitignore").write_text("*.log\n")
    (project / ".amlignore").write_text("# weights\n*.bin\n")
    assert explain(project, "data/big.csv") == Rule(".gitignore", 3, "data/")
    assert explain(project, "data") == Rule(".gitignore", 3, "data/")
    assert explain(project, "sub/x.log") == Rule("sub/.gitignore", 1, "*.log")
    assert explain(project, "w.bin") == Rule(".amlignore", 2, "*.bin")
    assert explain(project, "./docs/a") == Rule("built in", None, "/docs/")
    assert explain(project, ".holdfast/x") == Rule("built in", None, "/.holdfast")
    assert str(explain(project, "w.bin")) == "`*.bin` (.amlignore, line 2)"
    for path in ("kept", "sub/kept", "sub", "not/there", "../outside", "/etc/passwd", "."):
        assert explain(project, path) is None


def test_a_rule_that_amlignore_overrides_is_not_named(project: Path, either: str, write: Write) -> None:
    write("data/x.csv", "data/y.bin")
    (project / ".gitignore").write_text("data/\n*.bin\n")
    (project / ".amlignore").write_text("!data/\n")
    assert explain(project, "data/x.csv") is None
    assert explain(project, "data/y.bin") == Rule(".gitignore", 2, "*.bin")


def test_git_is_started_with_the_variables_that_are_given(
    project: Path, tmp_path: Path, git: Git, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gitconfig").write_text(f"[core]\n\texcludesFile = {tmp_path}/mine\n")
    (tmp_path / "mine").write_text("*.swp\n")
    given = {**os.environ, "GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig")}
    git(project, "init", "-q")
    write("a.swp", "b")
    assert sorted(list_files(project).paths) == ["a.swp", "b"]
    assert list_files(project, given).paths == ("b",)
    assert explain(project, "a.swp") is None
    assert explain(project, "a.swp", given) is not None
    first = take_snapshot(project, tmp_path / "state", None, given)
    assert first.files == 1
    monkeypatch.setenv("PATH", str(tmp_path))  # what is around us does not count
    assert take_snapshot(project, tmp_path / "state", None, given).digest == first.digest


def test_a_rule_of_the_users_own_git_configuration_is_named(
    project: Path, tmp_path: Path, git: Git, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gitconfig").write_text(f"[core]\n\texcludesFile = {tmp_path}/mine\n")
    (tmp_path / "mine").write_text("*.swp\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    git(project, "init", "-q")
    write("a.swp", "b")
    assert shipped(project) == ["b"]
    rule = explain(project, "a.swp")
    assert rule is not None
    assert (rule.line, rule.pattern) == (1, "*.swp")
