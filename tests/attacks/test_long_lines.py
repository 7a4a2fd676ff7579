"""Long lines in files of a project, and in what machines say: reading takes time in proportion to their length.

Each text repeats what an expression may repeat, and ends so that it does not match. Where the work grows with the
square, none of these ends within the limit.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from holdfast.environments import fixes
from holdfast.environments.gpu_builds import find_conda_cpu_build
from holdfast.farside.environments import conda_build, conda_worker, locks, settings
from holdfast.hosts import ssh_errors
from holdfast.project import compute, credentials, own_package, plain
from holdfast.project.environment_spec import Requirement
from holdfast.project.packages_search import read_environment_spec
from holdfast.project.pyproject import read_pyproject
from holdfast.project.requirement_lines import in_one_spelling, parse_options, parse_package
from holdfast.project.requirements import read_requirements
from holdfast.workbench.following.named_paths import named_paths

N = 900_000

pytestmark = pytest.mark.time_limit(60, "what takes the square of a megabyte does not end")


def grown(begin: str, repeated: str, end: str = "") -> str:
    return begin + repeated * (N // len(repeated)) + end


LINES = {
    "spaces": grown("six", " ", "x"),
    "spaces before a name": grown("six", " ", "@"),
    "brackets": grown("six", "[a"),
    "brackets that close": grown("six", "[a", "]"),
    "comments": grown("six ", " #", "\x0bx"),
    "clauses": grown("six>=1", " ", ",x"),
    "an option and words": grown("-e ", "a "),
    "options": grown("", "--pre "),
    "a scheme": grown("x://a ", "a."),
    "a login": grown("x://", "u:p@", "h"),
    "an address": grown("x @ http://", "["),
    "parameters": grown("x @ http://h/", "?sig"),
    "one parameter again and again": grown("x @ http://h/?", "key=1&key=2&"),
    "tokens": grown("x @ http://h/", "/t/a"),
    "a repository": grown("git+", "a@", "x"),
    "hashes": grown("six==1", " --hash=sha256:00", "x"),
    "parts of a path": grown("-r ", "../"),
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_a_line_of_a_megabyte_among_the_requirements(tmp_path, line):
    (tmp_path / "requirements.txt").write_text(line)
    read_requirements(tmp_path, "requirements.txt")
    (tmp_path / "pyproject.toml").write_text(f"[project]\ndependencies = ['''{line}''']\n", newline="")
    read_pyproject(tmp_path, "pyproject.toml")


def test_a_line_of_a_megabyte_below_pip(tmp_path):
    (tmp_path / "aml_config").mkdir()
    for line in (LINES["spaces"], LINES["brackets"], LINES["parameters"]):
        (tmp_path / "conda.yml").write_text(f"dependencies:\n- pip:\n  - '{line}'\n")
        read_environment_spec(tmp_path, "conda.yml")


def test_a_text_with_line_breaks_is_a_package_in_no_other_way():
    for text in (grown("six", " ", "x\ny"), grown("six ", " #", "\nx"), grown("", "a", "\n>")):
        parse_package(text)
        in_one_spelling(text)


def one_place_in_many_ways() -> None:
    concealer = credentials.Concealer()
    for number in range(20_000):
        concealer.conceal(f"https://me:{number}@h/simple")
    assert len(concealer.taken()) == 20_000


READERS: dict[str, Callable[[], object]] = {
    "an option's words": lambda: parse_options(grown("-e ", "a ")),
    "a login that changes": one_place_in_many_ways,
    "a long address with parameters": lambda: credentials.Concealer().conceal(
        grown("http://h/", "a/") + "?" + "&".join(f"key{number}=1" for number in range(50_000))
    ),
    "spaces in a file of the project": lambda: plain.parse_plain(grown("", " ", "\0")),
    "colons of an address": lambda: compute.parse_address(grown("", "a:", "!")),
    "builds": lambda: find_conda_cpu_build(Requirement(grown("pytorch[", "build="), 1), "pytorch"),
    "brackets of builds": lambda: find_conda_cpu_build(Requirement(grown("pytorch", "[build"), 1), "pytorch"),
    "line breaks before a table": lambda: list(fixes._toml_items(grown("", "\n", "x"), ["six"])),
    "dependencies that are not there": lambda: list(fixes._toml_items(grown("", '"a'), map(str, range(40_000)))),
    "spaces before a comment": lambda: list(fixes._lines(grown("six", " ", "x"), "line")),
    "spaces behind an item": lambda: fixes._edited(
        grown("[six", " ", "x]"), fixes._Item("toml", "six", 1, 1, 4, "", is_flow=True), ()
    ),
    "spaces before an item": lambda: fixes._edited(
        grown("[x", " ", "six]"), fixes._Item("toml", "six", 1, N + 2, N + 5, "", is_flow=True), ()
    ),
    "spaces in a lock": lambda: locks.package_lines(grown("six", " ", "x")),
    "a version in a lock": lambda: re.match(r"3\.\d+\.\d[a-z0-9]*\Z", grown("3.1.", "0", "!")),
    "spaces in a package of conda's": lambda: conda_build._name(grown("", " ")),
    "addresses in a message": lambda: [each.sub("", grown("", "https://a")) for each, _ in conda_worker._SECRETS],
    "addresses in a variable": lambda: settings.secrets_in({"UV_INDEX": grown("", "://")}),
    "parameters in a variable": lambda: settings.secrets_in({"UV_INDEX": grown("://", "?sig")}),
    "what a shell says": lambda: ssh_errors._misses_python(grown("", "python3 a")),
    "a setup file": lambda: [
        re.search(own_package._NAME_IN_PROGRAM, grown("", each)) for each in ("name", "name ", "name = ")
    ],
    "sections": lambda: [own_package._declared(grown("", each), ("x",)) for each in ("[a]\n", "[", "name=", "name \n")],
    "what a library says": lambda: named_paths(grown("cannot ", "a/'")),
    "what a script says": lambda: named_paths(grown("", "a")),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_megabyte_of_the_same(read):
    read()
