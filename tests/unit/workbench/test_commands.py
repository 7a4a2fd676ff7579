"""What a command line starts: a script by what it is, Python's own options, or a program."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import ProjectError, UsageError
from holdfast.project.configuration import load_configuration
from holdfast.workbench.reach.context import Context
from holdfast.workbench.submitting.job import Job, find_job, not_found
from holdfast.workbench.submitting.submit_request import CommandWishes, SubmitRequest
from kit.projects import project_at

FILES = {
    "train.py": "print(1)\n",
    "run.sh": "#!/usr/bin/env bash\necho hello\n",
    "strict.sh": "#!/bin/bash -eu -o pipefail\n",
    "plain.sh": "echo hello\n",
    "tool": "#!/usr/bin/env -S python3 -u\nprint(1)\n",
    "old": "#!/usr/bin/python2.7\n",
    "notes.txt": "Not a program.\n",
    "package/__init__.py": "",
    "package/train.py": "",
    "package/__main__.py": "",
    "examples/deep/fit.py": "",
}


def typed(root: Path, *words: str, folder: str = "", is_command: bool = False, vector: str = "[$file]") -> Job:
    """What runs for `submit WORDS` in that folder."""
    for name, content in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    (root / "env/bin").mkdir(parents=True, exist_ok=True)
    for name in ("text", "binary", "env/bin/python"):
        (root / name).write_bytes(b"\x7fELF\0" if name == "binary" else b"echo hello\n")
        (root / name).chmod(0o755)
    (root / "aml_config").mkdir(exist_ok=True)
    (root / "aml_config/x.runconfig").write_text(f"Target: local\nFramework: Python\nArgumentVector: {vector}\n")
    first, arguments = (words[0], words[1:]) if words else (None, ())
    project, request = project_at(root), SubmitRequest(first, arguments, "x", how=CommandWishes(is_program=is_command))
    return find_job(
        project, request, load_configuration(project, "x", None), Context(root / "h", {}, root / folder, root)
    )


@pytest.mark.parametrize(
    ("line", "words", "name"),
    [
        ("train.py --rate 1", "train.py --rate 1", "train.py"),
        ("python train.py --rate 1", "train.py --rate 1", "train.py"),
        ("python3 -u -W ignore train.py", "-u -W ignore train.py", "train.py"),
        ("-u train.py", "-u train.py", "train.py"),
        ("-m package.train --rate 1", "-m package.train --rate 1", "package.train"),
        ("python -m package", "-m package", "package"),
        ("python -m pytest -q", "-m pytest -q", "pytest"),
        ("python package", "package", "package"),
        ("python notes.txt", "notes.txt", "notes.txt"),
        ("tool x", "-u tool x", "tool"),
        ("old", "old", "old"),
    ],
)
def test_python_runs_what_it_would_run(tmp_path, line, words, name):
    job = typed(tmp_path, *line.split())
    assert (job.is_python, job.words, job.name) == (True, tuple(words.split()), name)


@pytest.mark.parametrize(
    ("line", "words", "name"),
    [
        ("run.sh a", "/usr/bin/env bash run.sh a", "run.sh"),
        ("./run.sh", "/usr/bin/env bash ./run.sh", "run.sh"),
        ("plain.sh", "sh plain.sh", "plain.sh"),
        ("text", "sh ./text", "text"),
        ("binary", "./binary", "binary"),
        ("bash run.sh a", "bash run.sh a", "run.sh"),
        ("torchrun --nproc-per-node 4 train.py --rate 1", "torchrun --nproc-per-node 4 train.py --rate 1", "train.py"),
        ("torchrun -m package.train", "torchrun -m package.train", "package.train"),
        ("accelerate launch --config notes.txt train.py", "accelerate launch --config notes.txt train.py", "train.py"),
        ("torchrun --standalone train.py x", "torchrun --standalone train.py x", "train.py"),
        ("launch --config run.sh train.py", "launch --config run.sh train.py", "train.py"),
        ("dvc repro", "dvc repro", "dvc repro"),
        ("nvidia-smi -L", "nvidia-smi -L", "nvidia-smi"),
        ("printenv A", "printenv A", "printenv"),
        ("/usr/bin/env true", "/usr/bin/env true", "env true"),
    ],
)  # fmt: skip
def test_a_program_runs_with_its_words(tmp_path, line, words, name):
    job = typed(tmp_path, *line.split())
    assert (job.is_python, job.words, job.name) == (False, tuple(words.split()), name)


def test_a_line_with_several_options_is_read_as_linux_reads_it(tmp_path):
    assert typed(tmp_path, "strict.sh").words == ("/bin/bash", "-eu -o pipefail", "strict.sh")


def test_arguments_are_what_comes_after_the_script(tmp_path):
    assert typed(tmp_path, "torchrun", "--nnodes", "1", "train.py", "--rate", "1").arguments == ("--rate", "1")
    assert typed(tmp_path, "dvc", "repro", "-f").arguments == ("-f",)
    assert typed(tmp_path, "-m", "package.train", "x").arguments == ("x",)


@pytest.mark.parametrize(
    ("folder", "word", "words", "name"),
    [
        ("examples/deep", "fit.py", "fit.py", "examples/deep/fit.py"),
        ("examples", "deep/fit.py", "deep/fit.py", "examples/deep/fit.py"),
        ("examples", "../train.py", "../train.py", "train.py"),
    ],
)
def test_a_run_starts_where_it_was_typed(tmp_path, folder, word, words, name):
    job = typed(tmp_path, word, folder=folder)
    assert (job.folder, job.words, job.name) == (folder, (words,), name)


def test_a_whole_path_becomes_one_of_the_copy(tmp_path):
    assert typed(tmp_path, str(tmp_path / "train.py"), folder="examples").words == ("../train.py",)


def test_a_module_belongs_to_the_folder_where_it_is_typed(tmp_path):
    assert typed(tmp_path, "-m", "deep.fit", folder="examples").script == "examples/deep/fit.py"


def test_a_word_after_two_dashes_is_a_program(tmp_path):
    job = typed(tmp_path, "text", is_command=True)
    assert (job.words, job.script) == (("text",), "")
    assert typed(tmp_path, "train.py", is_command=True).is_python


def test_options_of_python_stand_after_two_dashes_too(tmp_path):
    assert typed(tmp_path, "-u", "train.py", is_command=True).words == ("-u", "train.py")


def test_nothing_runs_where_nothing_ships(tmp_path):
    (tmp_path / ".git" / "hooks").mkdir(parents=True)
    with pytest.raises(ProjectError, match="never ships"):
        typed(tmp_path, "ls", folder=".git/hooks")
    with pytest.raises(UsageError, match="is empty"):
        typed(tmp_path, "")


@pytest.mark.parametrize(("program", "hint"), [("A=1", "--env A=1"), ("cd", "bash -c"), ("a && b", "bash -c")])
def test_words_of_a_shell_get_a_line_that_works(program, hint):
    assert hint in (not_found(program).hint or "")


@pytest.mark.parametrize(
    ("vector", "words", "is_python"),
    [
        ("[-u, $file, --rate]", "-u train.py --rate x", True),
        ("[torchrun, --nnodes, 1, $file]", "torchrun --nnodes 1 train.py x", False),
        ("[python, -m, package.train]", "train.py x", True),
    ],
)
def test_an_argument_vector_may_hold_options_and_a_command(tmp_path, vector, words, is_python):
    job = typed(tmp_path, "train.py", "x", vector=vector)
    assert (job.words, job.is_python) == (tuple(words.split()), is_python)


def test_a_command_of_the_argument_vector_runs_in_the_projects_folder(tmp_path):
    job = typed(tmp_path, vector="[-m, package.train]", folder="examples")
    assert (job.words, job.folder, job.script) == (("-m", "package.train"), "", "package/train.py")


@pytest.mark.parametrize(
    ("line", "error", "message"),
    [
        ("tran.py", ProjectError, "no script `tran.py`"),
        ("train", ProjectError, "no script `train`"),
        ("python tran.py", ProjectError, "no script `tran.py`"),
        ("package", ProjectError, "`package` is a folder"),
        ("notes.txt", ProjectError, "neither a Python file nor executable"),
        ("../elsewhere.py", ProjectError, "outside the project"),
        ("python", UsageError, "needs a script or a module"),
        ("-u", UsageError, "Python needs a script"),
        ("-m", UsageError, "`-m` needs a value"),
        ("env/bin/python train.py", ProjectError, "a Python of an environment"),
    ],
)
def test_what_nothing_can_start_is_refused(tmp_path, line, error, message):
    with pytest.raises(error, match=message):
        typed(tmp_path, *line.split())
