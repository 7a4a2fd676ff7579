"""A notebook as it is submitted: what can run, parameters as people type them, and packages that it needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import ProjectError, UsageError
from holdfast.project.configuration import load_configuration
from holdfast.project.environment_spec import EnvironmentSpec, Requirement
from holdfast.workbench.reach.context import Context
from holdfast.workbench.submitting.job import Job, find_job
from holdfast.workbench.submitting.notebooks import with_packages
from holdfast.workbench.submitting.submit_request import CommandWishes, SubmitRequest
from kit.projects import project_at


def book(*cells: str, tagged: str = "", **metadata: Any) -> str:
    made = [{"cell_type": "code", "source": source, "metadata": {}} for source in cells]
    if tagged:
        made.insert(0, {"cell_type": "code", "source": tagged.splitlines(True), "metadata": {"tags": ["parameters"]}})
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": made})


def submitted(
    root: Path, text: str | bytes, *words: str, name: str = "deep/t.ipynb", how: CommandWishes | None = None
) -> Job:
    (root / "deep").mkdir(exist_ok=True)
    (root / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    (root / "aml_config").mkdir(exist_ok=True)
    project = project_at(root)
    request = SubmitRequest(name, words, how=how or CommandWishes())
    return find_job(project, request, load_configuration(project, None, None), Context(root / "h", {}, root, root))


def test_a_notebook_runs_in_its_own_folder(tmp_path):
    job = submitted(tmp_path, book("print(1)"))
    assert (job.name, job.script, job.folder, job.words) == ("deep/t.ipynb", "deep/t.ipynb", "deep", ("t.ipynb",))
    assert job.is_notebook and job.command == ()


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("lr=0.1", "lr = 0.1"),
        ("n=-3", "n = -3"),
        ("on=true", "on = True"),
        ("on=False", "on = False"),
        ("none=null", "none = None"),
        ("sizes=[1, 2]", "sizes = [1, 2]"),
        ('about={"deep": [true]}', "about = {'deep': [True]}"),
        ("path=data/x.csv", "path = 'data/x.csv'"),
        ("said=it's", 'said = "it\'s"'),
        ("code=00123", "code = '00123'"),
        ("wide=NaN", "wide = 'NaN'"),
        ("far=1e999", "far = '1e999'"),
        ("empty=", "empty = ''"),
        ("equation=a=b", "equation = 'a=b'"),
        ("lines=a\nb", "lines = 'a\\nb'"),
        ("call=__import__('os').getcwd()", "call = \"__import__('os').getcwd()\""),
        (f"deep={'(' * 100000}", f"deep = '{'(' * 100000}'"),
    ],
)
def test_a_parameter_is_a_literal_or_a_text(tmp_path, typed, line):
    job = submitted(tmp_path, book(tagged=f"{typed.partition('=')[0]} = 0"), "-p", typed)
    assert (job.words[1:], job.arguments, job.cautions) == ((line,), ("-p", typed), ())


def test_parameters_stand_before_the_notebook_or_after_it(tmp_path):
    text = book(tagged="a: int = 1\nb=2\nc = d = 3\n")
    how = CommandWishes(parameters=("a=1", "b=2"))
    assert submitted(tmp_path, text, "-pb=3", "--parameter=c=4", how=how).words[1:] == ("a = 1", "b = 3", "c = 4")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-p", "1a=2"), "`1a` is not a name"),
        (("-p", "lambda=2"), "`lambda` is not a name"),
        (("-p", "a"), "`a` has no value"),
        (("-p",), "`-p` is not one"),
        (("--gpus", "1"), "`--gpus` is not one"),
    ],
)
def test_words_that_set_no_parameter_are_refused(tmp_path, words, message):
    with pytest.raises(UsageError, match=message):
        submitted(tmp_path, book("a = 1"), *words)


@pytest.mark.parametrize(("how", "name"), [({"terminal": True}, "--tty"), ({"copies": 2}, "--processes-per-node")])
def test_what_is_about_commands_is_refused_for_a_notebook(tmp_path, how, name):
    with pytest.raises(UsageError, match=name):
        submitted(tmp_path, book("a = 1"), how=CommandWishes(**how))


def test_parameters_of_a_script_are_refused(tmp_path):
    with pytest.raises(UsageError, match="-p sets parameters of notebooks"):
        submitted(tmp_path, "print(1)", name="t.py", how=CommandWishes(parameters=("a=1",)))


@pytest.mark.parametrize(
    ("text", "caution"),
    [(book("a = 1"), "is tagged `parameters`, so"), (book(tagged="# b\na == b\nc.b = 1"), "does not set `b`")],
)
def test_a_parameter_that_may_have_no_effect_is_told(tmp_path, text, caution):
    (found,) = submitted(tmp_path, text, "-p", "b=1").cautions
    assert caution in found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty"),
        ("{", "cannot be read as a notebook"),
        ("[1]", "it has no `nbformat`"),
        ("[" * 100000, "cannot be read as a notebook"),
        (b"\xff\xfe{", "cannot be read as a notebook"),
        ('{"nbformat": 3, "worksheets": []}', "format 3"),
        ('{"nbformat": 4, "cells": 7}', "nothing would run"),
        ('{"nbformat": 4, "cells": [7, {"cell_type": "code"}], "metadata": []}', "nothing would run"),
        (book("  \n"), "nothing would run"),
        (book("1", kernelspec={"name": "ir", "language": "R"}), "a notebook in `R`"),
        (book("1", language_info={"name": "\x1b[31mjulia"}), r"a notebook in `\\x1b\[31mjulia`"),
    ],
)
def test_a_notebook_that_cannot_run_is_refused(tmp_path, text, message):
    with pytest.raises(ProjectError, match=message):
        submitted(tmp_path, text)


def test_the_name_of_the_kernel_does_not_count(tmp_path):
    assert submitted(tmp_path, book("1", kernelspec={"name": "my-env", "language": "Python"})).is_notebook


def added(spec: EnvironmentSpec, root: Path = Path()) -> list[str]:
    return [each.text for each in with_packages(spec, "t.ipynb", root).pip if each not in spec.pip]


def test_an_environment_gets_what_it_does_not_name_itself(tmp_path):
    assert added(EnvironmentSpec()) == ["nbclient", "ipykernel"]
    assert added(EnvironmentSpec(pip=(Requirement("IPyKernel[x] >=6 ; python_version>'3'", 1),))) == ["nbclient"]
    assert added(EnvironmentSpec(conda=(Requirement("conda-forge::nbclient=0.10", 1),))) == ["ipykernel"]


def test_a_lock_must_name_it(tmp_path):
    (tmp_path / "uv.lock").write_text('[[package]]\nname = "ipykernel"\nversion = "6"\n')
    locked = EnvironmentSpec(file="uv.lock", lock_file="uv.lock")
    with pytest.raises(ProjectError, match=r"`uv\.lock` lacks nbclient") as refused:
        with_packages(locked, "t.ipynb", tmp_path)
    assert "uv add nbclient ipykernel" in str(refused.value.hint)
    with (tmp_path / "uv.lock").open("a") as lock:
        lock.write('[[package]]\nname = "nbclient"\nversion = "1"\n')
    assert added(locked, tmp_path) == []
    hashed = EnvironmentSpec(file="r.txt", pip=(Requirement("six==1.16.0 --hash=sha256:00", 1),))
    with pytest.raises(ProjectError, match=r"`r.txt` lacks nbclient and ipykernel"):
        with_packages(hashed, "t.ipynb", tmp_path)
