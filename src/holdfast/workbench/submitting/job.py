"""What a run starts: a script, a module or a command, by the words that were typed or by the run configuration."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from holdfast.errors import ProjectError, UsageError
from holdfast.farside.system.reserved_names import reserved_path
from holdfast.frozen import dataclass, replace
from holdfast.project.configuration import Configuration
from holdfast.project.folder import Project
from holdfast.project.package_names import PROGRAMS
from holdfast.shown_text import pasted
from holdfast.workbench.reach.context import Context
from holdfast.workbench.submitting.expanded_glob import refuse_expanded
from holdfast.workbench.submitting.named_file import PYTHONS, CommandFolder, NamedFile, find_file, has_file, is_script
from holdfast.workbench.submitting.submit_request import CommandWishes, SubmitRequest

FILE = "$file"
_OF_THE_SHELL = ("cd", "source", ".", "export", "alias", "ulimit", "eval", "exec", "set")
_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
"""Options of Python whose value is a word of its own. After `-c` and `-m`, all words are the program's."""


@dataclass(frozen=True)
class Job:
    """`words` follow the run's Python or, without `is_python`, begin with a program of its PATH. `name` is what a
    person calls it; `script` is the file of the project that it is about, if there is one. It starts in `folder`,
    relative to the project and empty for the project itself. Of a notebook, `words` are its name and what assigns its
    parameters; `cautions` are about these, `notes` about its environment."""

    name: str
    words: tuple[str, ...]
    arguments: tuple[str, ...]
    script: str = ""
    is_python: bool = True
    folder: str = ""
    is_notebook: bool = False
    cautions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def command(self) -> tuple[str, ...]:
        """For the record, where name and arguments do not say it all."""
        if self.is_python:
            return (PYTHONS[0], *self.words) if len(self.words) > len(self.arguments) + 1 else ()
        return self.words


def find_job(project: Project, request: SubmitRequest, configuration: Configuration, context: Context) -> Job:
    """With `$file` replaced. What it names in the project must exist there."""
    if request.prepare_only:
        return Job("", (), ())
    job = _find(project, request, configuration, context)
    if job.is_notebook:
        return _with_parameters(job, project, request.how)
    if request.how.parameters:
        raise UsageError(
            f"-p sets parameters of notebooks, and `{job.name}` is not one.",
            f"Arguments of a script go after it: holdfast submit {pasted(job.name)} …",
        )
    return job


def _find(project: Project, request: SubmitRequest, configuration: Configuration, context: Context) -> Job:
    refuse_expanded(request)
    vector = configuration.run.argument_vector
    if request.script is None:
        if vector and vector[0] == FILE and request.arguments:
            named = replace(request, script=request.arguments[0], arguments=request.arguments[1:])
            return _find(project, named, configuration, context)
        if not vector or FILE in vector:
            raise UsageError(
                "No script is named.",
                "Write it after the options: holdfast submit -c CONFIGURATION train.py, or into `ArgumentVector`.",
            )
        return _job((*vector, *request.arguments), CommandFolder(project.root, ""))
    place = CommandFolder(project.root, _folder(project, context))
    typed = (request.script, *request.arguments)
    is_named = request.script.startswith("-") or (is_script(request.script) and has_file(place, request.script))
    if request.how.is_program and not is_named:
        return _command(typed, place)
    if FILE in vector and has_file(place, request.script):  # a vector for another script does not count
        typed = (*(request.script if word == FILE else word for word in vector), *request.arguments)
    return _job(typed, place)


def _folder(project: Project, context: Context) -> str:
    """Where the user is, relative to the project."""
    try:
        found = Path(os.path.abspath(context.directory)).relative_to(project.root).as_posix()
    except ValueError:
        return ""
    if reserved_path([found]) is not None:
        raise ProjectError(
            f"`{found}` never ships, so nothing can run there.",
            f"Change to the project: cd {pasted(str(project.root))}",
        )
    return "" if found == "." else found


def _job(words: tuple[str, ...], place: CommandFolder) -> Job:
    first = words[0]
    if not first:
        raise UsageError("The name of the script is empty.", "Name one. If you typed a variable, it is not set.")
    if first.startswith("-") and not has_file(place, first):
        return _python(words, place)
    if first in PYTHONS and not has_file(place, first):
        if len(words) == 1:
            raise UsageError(f"`{first}` needs a script or a module.", "For example: holdfast submit train.py")
        return _python(words[1:], place)
    is_elsewhere = os.path.isabs(first) and not place.path(first).is_relative_to(place.root)
    if is_script(first) or has_file(place, first) or ("/" in first and not is_elsewhere):
        return _of_file(find_file(place, first), words[1:], place)
    _refuse_mistyped(first, place)
    return _command(words, place)


def _of_file(file: NamedFile, arguments: tuple[str, ...], place: CommandFolder) -> Job:
    folder, name = os.path.split(file.path)
    if name.endswith(".ipynb"):  # as Jupyter does, in the folder of the notebook
        return Job(file.path, (name,), arguments, file.path, True, folder, is_notebook=True)
    words = (*file.opening, file.typed, *arguments)
    return Job(file.path, words, arguments, file.path, file.is_python, place.folder)


def _with_parameters(job: Job, project: Project, how: CommandWishes) -> Job:
    from holdfast.workbench.submitting.notebooks import read_parameters, words_after

    wish = "--tty" if how.terminal else "--processes-per-node" if how.copies is not None else ""
    if wish:
        raise UsageError(f"{wish} does not work for notebooks such as `{job.name}`.", f"Leave out {wish}.")
    typed = (*how.parameters, *words_after(job.name, job.arguments))
    found = read_parameters(project.root, job.script, typed)
    arguments = tuple(word for each in typed for word in ("-p", each))
    return replace(job, words=(*job.words, *found.lines), arguments=arguments, cautions=found.cautions)


def _python(words: tuple[str, ...], place: CommandFolder) -> Job:
    """Words after `python`: its options come before the script, or the module."""
    index = 0
    while index < len(words) and words[index].startswith("-") and words[index][:2] not in ("-m", "-c"):
        index += 2 if words[index] in _WITH_VALUE else 1
    if index >= len(words):
        raise UsageError(
            "Python needs a script or a module.", "Name it after the options: -u train.py, -m package.train"
        )
    first, rest = words[index], words[index + 1 :]
    if not first.startswith("-"):
        if os.path.isdir(place.path(first)):  # with a `__main__.py`
            return Job(place.inside(first), words, rest, "", True, place.folder)
        file = find_file(place, first, for_python=True)
        return Job(file.path, (*words[:index], file.typed, *rest), rest, file.path, True, place.folder)
    named, arguments = (first[2:], rest) if len(first) > 2 else (rest[0] if rest else "", rest[1:])
    if not named:
        raise UsageError(f"`{first}` needs a value.", "For example: holdfast submit -m package.train")
    name = named if first.startswith("-m") else "python -c"
    return Job(name, words, arguments, _file_of_module(named, place) if name == named else "", True, place.folder)


def _command(words: tuple[str, ...], place: CommandFolder) -> Job:
    """A program of the run's PATH. It is called after the script or module of the project that it starts; without one,
    by its own first two words (`dvc repro`)."""
    for index in (*_scripts(words, place, before=False), *_scripts(words, place, before=True)):
        word, arguments = words[index], words[index + 1 :]
        module = _file_of_module(word, place)
        if module:
            return Job(word, words, arguments, module, False, place.folder)
        script = find_file(place, word, for_python=True).path
        return Job(script, words, arguments, script, False, place.folder)
    has_verb = len(words) > 1 and words[1].isidentifier() and words[1].islower()
    name = " ".join((os.path.basename(words[0]), *words[1 : 1 + has_verb]))
    return Job(name, words, words[1 + has_verb :], "", False, place.folder)


def _scripts(words: tuple[str, ...], place: CommandFolder, before: bool) -> Iterator[int]:
    """The places of words that name a script or, after `-m`, a module of the project. `before`: those with an option
    before them, whose value they may be."""
    for index, word in enumerate(words[1:], 1):
        if words[index - 1] in ("-m", "--module"):
            is_named = not before and bool(_file_of_module(word, place))
        else:
            is_named = is_script(word) and has_file(place, word) and words[index - 1].startswith("-") is before
        if is_named:
            yield index


def _file_of_module(name: str, place: CommandFolder) -> str:
    """The project's file of a module that is found from the working folder; empty for any other module."""
    if not all(part.isidentifier() for part in name.split(".")):
        return ""
    path = name.replace(".", "/")
    found = (each for each in (f"{path}.py", f"{path}/__main__.py") if has_file(place, each))
    return place.inside(next(found, ""))


def _refuse_mistyped(word: str, place: CommandFolder) -> None:
    """A name that stands for a script: a program of that name is hardly meant."""
    if "/" in word:
        return
    if os.path.isdir(place.path(word)) or os.path.lexists(place.path(word)) or has_file(place, f"{word}.py"):
        find_file(place, word)


def not_found(program: str) -> ProjectError:
    """Of a program that this machine does not have."""
    hint = "If it is a script, type its path. If it is a program, install it, or activate its environment."
    if "=" in program:
        hint = f"To set a variable: holdfast submit --env {pasted(program)} COMMAND"
    elif program in _OF_THE_SHELL or any(each in program for each in " ;&|"):
        hint = "For a line of the shell: holdfast submit bash -c 'LINE'"
    elif program in PROGRAMS:
        package = PROGRAMS[program]
        hint = (
            f"The package {package} provides it: python -m pip install {pasted(package)}\n"
            "Or build an environment from a file that names the package: holdfast submit -d FILE …"
        )
    return ProjectError(f"`{program}` is neither a file of this project nor a program on the PATH.", hint)
