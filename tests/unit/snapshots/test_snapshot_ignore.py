"""Which files ship, in a git work tree and elsewhere, and which rule leaves one out."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from holdfast.errors import ProjectError
from holdfast.snapshots.ignore import Rule, explain, list_files
from holdfast.snapshots.take import Selection, take_snapshot


def shipped(project: Path) -> list[str]:
    return sorted(list_files(project).paths)


def test_everything_ships_when_no_rule_is_there(tree, write):
    write("train.py", "data/a b.csv", "data/quote'\".csv", "data/new\nline", "deep/er/est/x", ".hidden")
    (tree / os.fsdecode(b"caf\xe9")).write_text("latin 1")
    expected = [".hidden", "data/a b.csv", "data/new\nline", "data/quote'\".csv", "deep/er/est/x", "train.py"]
    assert shipped(tree) == sorted([*expected, os.fsdecode(b"caf\xe9")])


@pytest.mark.parametrize(
    ("files", "git_rules", "own_rules", "expected"),
    [
        (
            "docs/a outputs/a .holdfast/a __pycache__/a p/__pycache__/a p/a.pyc .ipynb_checkpoints/a p/docs/a "
            "p/outputs/a p/.holdfast/a kept",
            *("", ""),
            ["kept", "p/docs/a", "p/outputs/a"],
        ),
        (
            "docs/a outputs/a .holdfast/a p/a.pyc sub/.git/x",
            *("", "!docs/\n!outputs\n!*.pyc\n!.git\n!.git/\n!.holdfast\n!/.holdfast/\n"),
            [".amlignore", "docs/a", "outputs/a", "p/a.pyc"],
        ),
        (
            "a.csv b.csv data/c.csv c.txt data/c.bin",
            *("*.csv\ndata/\n", "!b.csv\n!data/\n*.txt\n"),
            [".amlignore", ".gitignore", "b.csv", "data/c.bin"],
        ),
        ("data/a data/b", "data/\n", "!data/a\n", [".amlignore", ".gitignore"]),
    ],
    ids=[
        "what is built in stays out",
        ".amlignore takes built-in folders back, but not git's and ours",
        ".amlignore is stronger than .gitignore in both directions",
        ".amlignore cannot take back a file below an excluded folder",
    ],
)
def test_rules_leave_files_out(tree, write, files, git_rules, own_rules, expected):
    write(*files.split())
    for name, rules in ((".gitignore", git_rules), (".amlignore", own_rules)):
        if rules:
            (tree / name).write_text(rules)
    assert shipped(tree) == expected


def test_a_link_named_outputs_stays_out(tree, write):
    write("a")
    (tree / "outputs").symlink_to("/nowhere")
    assert shipped(tree) == ["a"]


def test_amlignore_applies_to_files_that_git_tracks(repository, git, write):
    write("a.csv", "docs/x", "deep/er/b.csv", "kept", "deep/kept.csv")
    (repository / ".amlignore").write_text("*.csv\n!kept.csv\n")
    git(repository, "add", "-A")
    assert shipped(repository) == [".amlignore", "deep/kept.csv", "kept"]


def test_a_tracked_file_ships_although_gitignore_names_it(repository, git, write):
    write("model.bin", "other.bin")
    (repository / ".gitignore").write_text("*.bin\n")
    git(repository, "add", "-f", "model.bin")
    assert shipped(repository) == [".gitignore", "model.bin"]
    assert explain(repository, "model.bin") is None
    assert explain(repository, "other.bin") == Rule(".gitignore", 1, "*.bin")


def test_a_project_inside_a_repository_obeys_the_rules_above_it(tmp_path, git, write):
    project = tmp_path / "re[po" / "sub folder"
    write("a.log", "b.txt", "data/x", "deep/data/x", folder=project)
    git(tmp_path / "re[po", "init", "-q")
    (tmp_path / "re[po" / ".gitignore").write_text("*.log\n")
    (project / ".amlignore").write_text("/data\n")
    assert shipped(project) == [".amlignore", "b.txt", "deep/data/x"]
    assert explain(project, "a.log") == Rule("../.gitignore", 1, "*.log")


def test_a_project_that_its_repository_ignores_as_a_whole_stands_alone(tmp_path, git, write):
    home = tmp_path / "home"
    write("train.py", "skip.log", folder=home / "project")
    git(home, "init", "-q")
    (home / ".gitignore").write_text("*\n")
    (home / "project" / ".gitignore").write_text("*.log\n")
    assert shipped(home / "project") == [".gitignore", "train.py"]
    assert explain(home / "project", "train.py") is None
    assert explain(home / "project", "skip.log") == Rule(".gitignore", 1, "*.log")


def test_a_foreign_git_environment_is_not_obeyed(repository, tmp_path, git, write, monkeypatch):
    write("a")
    (tmp_path / "other").mkdir()
    git(tmp_path / "other", "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "nowhere"))
    listing = list_files(repository)
    assert (listing.paths, listing.warnings) == (("a",), ())


def test_a_git_that_fails_is_replaced_by_the_walk_with_a_warning(repository, write):
    write("a", "b.log")
    (repository / ".gitignore").write_text("*.log\n")
    (repository / ".git" / "config").write_text("[broken\n")
    listing = list_files(repository)
    assert sorted(listing.paths) == [".gitignore", "a"]
    (warning,) = listing.warnings
    assert "git could not list the files (fatal: bad config" in warning.message
    assert explain(repository, "b.log") == Rule(".gitignore", 1, "*.log")


def test_a_repository_of_another_user_names_the_setting(repository, write, monkeypatch):
    write("a")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    listing = list_files(repository)
    assert listing.paths == ("a",)
    (warning,) = listing.warnings
    assert warning.remedy == f"git config --global --add safe.directory {repository}"


def test_without_git_on_the_path_the_ignore_files_are_read_in_silence(repository, tmp_path, write, monkeypatch):
    write("a", "b.log")
    (repository / ".gitignore").write_text("*.log\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    listing = list_files(repository)
    assert (sorted(listing.paths), listing.warnings) == ([".gitignore", "a"], ())


def test_a_nested_repository_ships_by_its_own_rules(tree, git, write):
    write("a.log", "lib/a.log", "lib/b.tmp", "lib/docs/x", "lib/c.csv", "lib/sub/d")
    (tree / ".gitignore").write_text("*.log\n")
    (tree / "lib" / ".gitignore").write_text("*.tmp\n")
    (tree / ".amlignore").write_text("*.csv\n")
    git(tree / "lib", "init", "-q")
    git(tree / "lib", "add", "sub/d")
    expected = [".amlignore", ".gitignore", "lib/.gitignore", "lib/a.log", "lib/docs/x", "lib/sub/d"]
    assert shipped(tree) == expected
    assert explain(tree, "lib/b.tmp") == Rule("lib/.gitignore", 1, "*.tmp")
    assert explain(tree, "lib/a.log") is None


def test_a_nested_repository_that_is_left_out_is_not_asked(tree, git, write):
    write("a", "lib/x")
    (tree / ".amlignore").write_text("/lib\n")
    git(tree / "lib", "init", "-q")
    assert shipped(tree) == [".amlignore", "a"]


def test_a_submodule_ships_and_an_empty_one_is_named(repository, tmp_path, git, write):
    library = tmp_path / "library"
    write("x.py", folder=library)
    git(library, "init", "-q")
    git(library, "add", "-A")
    git(library, "commit", "-qm", "x")
    git(repository, "submodule", "--quiet", "add", str(library), "third party")
    assert shipped(repository) == [".gitmodules", "third party/x.py"]
    git(repository, "submodule", "--quiet", "deinit", "-f", "third party")
    listing = list_files(repository)
    assert listing.paths == (".gitmodules",)
    (warning,) = listing.warnings
    assert (warning.path, warning.remedy) == ("third party", "git submodule update --init")


def test_a_submodule_without_its_git_file_ships_as_a_folder(repository, tmp_path, git, write):
    write("lib/x")
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},lib")
    assert shipped(repository) == ["lib/x"]


def test_a_virtual_environment_is_left_out_with_a_note(tree, write):
    write("a", "my env/pyvenv.cfg", "my env/lib/x.py")
    listing = list_files(tree)
    assert listing.paths == ("a",)
    (warning,) = listing.warnings
    assert warning.path == "my env"
    assert "`!/my\\ env/`" in warning.remedy
    rule = explain(tree, "my env/lib/x.py")
    assert rule is not None
    assert rule.source == "built in"
    (tree / ".amlignore").write_text("!/my\\ env/\n")
    assert shipped(tree) == [".amlignore", "a", "my env/lib/x.py", "my env/pyvenv.cfg"]


def test_an_ignored_virtual_environment_is_left_out_in_silence(tree, write):
    write("a", ".venv/pyvenv.cfg", "env/pyvenv.cfg")
    (tree / ".gitignore").write_text(".venv\n")
    (tree / "env" / ".gitignore").write_text("*\n")
    listing = list_files(tree)
    assert (sorted(listing.paths), listing.warnings) == ([".gitignore", "a"], ())


def test_a_conflicted_file_ships_once(repository, git, write):
    for branch in ("main", "other"):
        git(repository, "checkout", "-q", "--orphan", branch)
        (repository / "a").write_text(branch)
        git(repository, "add", "a")
        git(repository, "commit", "-qm", branch)
    with pytest.raises(Exception, match="merge"):
        git(repository, "merge", "--allow-unrelated-histories", "main")
    assert list_files(repository).paths == ("a",)


def test_pipes_and_sockets_are_named_outside_git(project, write):
    write("a")
    os.mkfifo(project / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/cwd/{os.path.relpath(project)}/s" if len(str(project)) > 90 else str(project / "s"))
        listing = list_files(project)
    assert listing.paths == ("a",)
    assert sorted(warning.path for warning in listing.warnings) == ["pipe", "s"]


def test_what_is_no_folder_is_a_project_error(project):
    with pytest.raises(ProjectError, match="not a folder"):
        list_files(project / "missing")


def test_a_rule_is_named_with_its_file_and_line(tree, write):
    write("data/big.csv", "sub/x.log", "docs/a", "w.bin", ".holdfast/x", "kept", "sub/kept")
    (tree / ".gitignore").write_text("# data\n\ndata/\n")
    (tree / "sub" / ".gitignore").write_text("*.log\n")
    (tree / ".amlignore").write_text("# weights\n*.bin\n")
    assert explain(tree, "data/big.csv") == Rule(".gitignore", 3, "data/")
    assert explain(tree, "data") == Rule(".gitignore", 3, "data/")
    assert explain(tree, "sub/x.log") == Rule("sub/.gitignore", 1, "*.log")
    assert explain(tree, "w.bin") == Rule(".amlignore", 2, "*.bin")
    assert explain(tree, "./docs/a") == Rule("built in", None, "/docs/")
    assert explain(tree, ".holdfast/x") == Rule("built in", None, ".holdfast")
    assert str(explain(tree, "w.bin")) == "`*.bin` (.amlignore, line 2)"
    for path in ("kept", "sub/kept", "sub", "not/there", "../outside", "/etc/passwd", "."):
        assert explain(tree, path) is None


def test_a_rule_that_amlignore_overrides_is_not_named(tree, write):
    write("data/x.csv", "data/y.bin")
    (tree / ".gitignore").write_text("data/\n*.bin\n")
    (tree / ".amlignore").write_text("!data/\n")
    assert explain(tree, "data/x.csv") is None
    assert explain(tree, "data/y.bin") == Rule(".gitignore", 2, "*.bin")


def test_git_is_started_with_the_variables_that_are_given_and_rules_of_its_configuration_are_named(
    repository, tmp_path, write, monkeypatch
):
    (tmp_path / "gitconfig").write_text(f"[core]\n\texcludesFile = {tmp_path}/mine\n")
    (tmp_path / "mine").write_text("*.swp\n")
    given = {**os.environ, "GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig")}
    write("a.swp", "b")
    assert shipped(repository) == ["a.swp", "b"]
    assert explain(repository, "a.swp") is None
    assert list_files(repository, given).paths == ("b",)
    rule = explain(repository, "a.swp", given)
    assert rule is not None
    assert (rule.line, rule.pattern) == (1, "*.swp")
    with monkeypatch.context() as around:
        around.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
        assert shipped(repository) == ["b"]
    first = take_snapshot(repository, tmp_path / "state", None, Selection(given))
    assert first.files == 1
    monkeypatch.setenv("PATH", str(tmp_path))  # what is around us does not count
    assert take_snapshot(repository, tmp_path / "state", None, Selection(given)).digest == first.digest


def test_tracked_files_of_a_folder_that_amlignore_leaves_out_stay_at_home(project, git, write):
    write("train.py", "data/a.csv", "data/raw/b.csv", "data/raw/deep/c.csv")
    git(project, "init", "-q")
    git(project, "add", ".")
    (project / ".amlignore").write_text("/data/\n!b.csv\n")
    assert shipped(project) == [".amlignore", "train.py"]
