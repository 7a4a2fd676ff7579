"""Requirements files, and the same lines below `pip:` of a conda file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.project.conda_file import read_conda
from holdfast.project.environment_spec import EnvironmentSpec, Requirement, variables_in
from holdfast.project.problems import Mistake, Problem
from holdfast.project.requirement_lines import RequiredPackage, logical_lines, parse_package, parse_wheel_name
from holdfast.project.requirements import read_requirements

HASH = "sha256:" + "ab" * 32


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_txt", ".txt").replace("_yml", ".yml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


def good(root: Path, text: str) -> EnvironmentSpec:
    (root / "r.txt").write_text(text, encoding="utf-8")
    spec, problems = read_requirements(root, "r.txt")
    assert spec is not None and problems == [], problems
    return spec


def bad(root: Path, text: str) -> list[Problem]:
    (root / "r.txt").write_text(text, encoding="utf-8")
    spec, problems = read_requirements(root, "r.txt")
    assert spec is None
    return problems


def texts(spec: EnvironmentSpec) -> list[str]:
    return [each.text for each in spec.pip]


def test_comments_and_continued_lines_are_read_as_pip_reads_them():
    text = "a # one\n#two\n\nb \\\n  >= 1 \\\n  # three\nc#d\ne\\\n"
    assert list(logical_lines(text)) == [(1, "a"), (4, "b    >= 1"), (7, "c#d"), (8, "e")]


@pytest.mark.parametrize(
    ("line", "package"),
    [
        ("numpy", RequiredPackage("numpy")),
        ("NumPy >= 1.0 , < 2", RequiredPackage("numpy", specifier=">= 1.0 , < 2")),
        ("a_b.c[x, y]==1.*", RequiredPackage("a-b-c", "x,y", "==1.*")),
        ("six (>=1.0)", RequiredPackage("six", specifier=">=1.0")),
        ("six===1.0+local", RequiredPackage("six", specifier="===1.0+local")),
        (
            'six~=1.0; python_version < "3.9"',
            RequiredPackage("six", specifier="~=1.0", marker='python_version < "3.9"'),
        ),
        (f"six==1.0 --hash={HASH}", RequiredPackage("six", specifier="==1.0", hashes=(HASH,))),
        ("six @ https://h.example/six-1.0.zip", RequiredPackage("six", location="https://h.example/six-1.0.zip")),
        (
            "https://h.example/My_Pkg-1.0-py3-none-any.whl ; sys_platform == 'linux'",
            RequiredPackage(
                "my-pkg", location="https://h.example/My_Pkg-1.0-py3-none-any.whl", marker="sys_platform == 'linux'"
            ),
        ),
        ("git+https://h.example/x.git@v1#egg=x", RequiredPackage("x", location="git+https://h.example/x.git@v1#egg=x")),
        ("./w/a-1-py3-none-any.whl[gpu]", RequiredPackage("a", "gpu", location="./w/a-1-py3-none-any.whl")),
        ("a-1-py3-none-any.whl", RequiredPackage("a", location="a-1-py3-none-any.whl")),
        ("w\\a-1-py3-none-any.whl", RequiredPackage("a", location="w\\a-1-py3-none-any.whl")),
    ],
)
def test_a_package_is_taken_apart(line, package):
    assert parse_package(line) == package


@pytest.mark.parametrize(
    ("line", "remedy"),
    [
        ("numpy=1.19", "Write `numpy==1.19`."),
        ("numpy=1.19.2=py37_0", "Write `numpy==1.19.2`."),
        ("numpy 1.19", "Write `numpy==1.19`."),
        ("numpy>1.*", "Write it like `numpy` or `numpy==1.0`."),
        ("numpy pandas", "Write it like `numpy` or `numpy==1.0`."),
        ("six#comment", "Write it like `six` or `six==1.0`."),
        ("!numpy", "Write it like `numpy` or `numpy==2.1.0`."),
        ("numpy --global-option=x", "Write the option on a line of its own."),
    ],
)
def test_what_is_no_package_is_said_with_what_to_write(line, remedy):
    found = parse_package(line)
    assert isinstance(found, Mistake) and found.remedy == remedy


def test_a_wheels_name_has_its_tags():
    found = parse_wheel_name("torch-1.0-1-cp36.cp37-cp36m-manylinux1_x86_64.whl")
    assert found is not None
    assert (found.name, found.pythons, found.platforms) == ("torch", ("cp36", "cp37"), ("manylinux1_x86_64",))
    assert parse_wheel_name("torch.whl") is None and parse_wheel_name("a-1-py3-none-any.zip") is None


def test_options_are_written_as_the_installer_takes_them(tmp_path):
    (tmp_path / "my wheels").mkdir()
    spec = good(
        tmp_path,
        "-i https://a.example/simple\n--extra-index-url=https://b.example/simple --no-index\n-f https://c.example/w\n"
        "--find-links ./my wheels\n-f '/opt/wheels'\n--only-binary :all:\nsix\n",
    )
    assert texts(spec) == [
        "--index-url https://a.example/simple",
        "--extra-index-url https://b.example/simple",
        "--no-index",
        "--find-links https://c.example/w",
        "--find-links ${HOLDFAST_FILES}/my wheels",
        "--find-links /opt/wheels",
        "--only-binary :all:",
        "six",
    ]
    assert spec.files == ("my wheels",) and spec.arguments == ()


def test_what_the_installer_ignores_in_a_file_goes_to_its_command_line(tmp_path):
    spec = good(tmp_path, "--pre\n--pre\n--trusted-host files.example:8080\nsix\n")
    assert texts(spec) == ["six"]
    assert spec.arguments == ("--prerelease", "allow", "--allow-insecure-host", "files.example:8080")


def test_what_the_installer_has_no_choice_of_is_said(tmp_path):
    (tmp_path / "r.txt").write_text("six\n--prefer-binary\n")
    spec, problems = read_requirements(tmp_path, "r.txt")
    assert spec is not None and texts(spec) == ["six"]
    assert [(each.line, each.severity) for each in problems] == [(2, "warning")]


def test_every_wrong_line_is_said_at_once(tmp_path):
    problems = bad(
        tmp_path,
        "six=1.0\n--no-deps\n--indx-url https://x.example\n# x\n-e hg+https://h.example/x@v1#egg=mine\n./folder\n"
        "--index-url simple\n-r\n--index-url https://a.example\n--index-url https://b.example\n-c https://h.example/c.txt\n"
        "hg+https://h.example/x\ngit+git@h.example:me/x.git\nfive @ file:///tmp/build/five\nsix --hash=nothing\n'a\n",
    )
    assert [str(each) for each in problems] == [
        "r.txt:1: `six=1.0` is conda's spelling. Write `six==1.0`.",
        "r.txt:2: `--no-deps` is for pip's command line, not for a file. Remove it; to have exact packages and no "
        "others, list every one with `==` and `--hash`.",
        "r.txt:3: `--indx-url` is not an option that can stand here. Write `--index-url`.",
        "r.txt:5: the installer knows no addresses that begin with `hg+https:`. Write an address that begins with "
        "`https://`, or `git+https://` for a repository of Git's.",
        "r.txt:6: there is no `folder` in the project. Correct the path, or copy the file there.",
        "r.txt:7: `simple` is not the address of an index. Write `--index-url https://…`; for a folder with wheels "
        "`--find-links`.",
        "r.txt:8: `-r` needs a value. Write it like `-r VALUE`, or remove it.",
        "r.txt:10: `--index-url` is named twice, first in r.txt:9. Keep one, and make the other `--extra-index-url`.",
        "r.txt:11: `--constraint https://h.example/c.txt` names a file elsewhere. Save it in the project, "
        "and name that.",
        "r.txt:12: the installer knows no addresses that begin with `hg+https:`. Write an address that begins with "
        "`https://`, or `git+https://` for a repository of Git's.",
        "r.txt:13: `git+git@h.example:me/x.git` is not an address. Write `git+ssh://git@h.example/me/x.git`.",
        "r.txt:14: `file:///tmp/build/five` is on another machine's disk. Write `five` and its version.",
        "r.txt:15: `nothing` is not a hash. Write it like `--hash=sha256:…`.",
        "r.txt:16: `'a` is not a package. Write it like `numpy` or `numpy==2.1.0`.",
    ]


def test_named_files_are_put_in_their_place_with_their_own_lines(tmp_path):
    write(
        tmp_path,
        aml_config__c_yml="dependencies:\n- python=3.11\n- pip:\n"
        "  - -r base.txt\n  - -r more.txt\n  - -c limits.txt\n  - z\n",
        aml_config__base_txt="a\n\n-r deep/inner.txt\n",
        aml_config__deep__inner_txt="\nb>1\n-r ../base2.txt\n",
        aml_config__base2_txt="c\n",
        more_txt="d\n-rbase3.txt\n",
        base3_txt="e\n",
        limits_txt="# none\nb<2\n",
    )
    spec, problems = read_conda(tmp_path, "aml_config/c.yml")
    assert spec is not None, problems
    assert spec.pip == (
        Requirement("a", 1, "aml_config/base.txt"),
        Requirement("b>1", 2, "aml_config/deep/inner.txt"),
        Requirement("c", 1, "aml_config/base2.txt"),
        Requirement("d", 1, "more.txt"),
        Requirement("e", 1, "base3.txt"),
        Requirement("z", 7, "aml_config/c.yml"),
    )
    assert spec.constraints == (Requirement("b<2", 2, "limits.txt"),)


def test_files_that_name_each_other_are_found(tmp_path):
    write(tmp_path, a_txt="x\n-r b.txt\n", b_txt="-r a.txt\n")
    spec, problems = read_requirements(tmp_path, "a.txt")
    assert spec is None
    assert [str(each) for each in problems] == [
        "b.txt:1: the files name each other in a circle: a.txt → b.txt → a.txt. Remove this line."
    ]


def test_a_file_that_two_files_name_is_no_circle(tmp_path):
    write(tmp_path, a_txt="-r b.txt\n-r c.txt\n", b_txt="-r d.txt\n", c_txt="-r d.txt\n", d_txt="x\n")
    spec, problems = read_requirements(tmp_path, "a.txt")
    assert spec is not None and problems == [] and texts(spec) == ["x"]


def test_problems_of_a_named_file_follow_those_of_the_conda_file(tmp_path):
    write(tmp_path, c_yml="dependencies:\n- pip:\n  - -r r.txt\n  - a=1\nchannls: []\n", r_txt="b=1\n")
    _, problems = read_conda(tmp_path, "c.yml")
    assert [(each.file, each.line, each.key) for each in problems] == [
        ("c.yml", 4, "pip"),
        ("c.yml", 5, "channls"),
        ("r.txt", 1, ""),
    ]


def test_local_wheels_are_named_from_the_top_of_the_project(tmp_path):
    write(tmp_path, aml_config__w__a="", w="")
    (tmp_path / "w").unlink()
    (tmp_path / "w").mkdir()
    for path in (
        "aml_config/w/a-1-py3-none-any.whl",
        "w/a-1-py3-none-any.whl",
        "w/b-1.tar.gz",
        "w/c d-1-py3-none-any.whl",
    ):
        (tmp_path / path).write_bytes(b"")
    lines = [
        "./w/a-1-py3-none-any.whl[gpu]",
        "b @ w/b-1.tar.gz ; python_version > '3'",
        "w/c d-1-py3-none-any.whl",
        f"file://{tmp_path.as_posix()}/w/b-1.tar.gz",
    ]
    (tmp_path / "aml_config" / "r.txt").write_text("\n".join(lines))
    spec, problems = read_requirements(tmp_path, "aml_config/r.txt")
    assert spec is not None, problems
    assert texts(spec) == [
        "${HOLDFAST_FILES}/aml_config/w/a-1-py3-none-any.whl[gpu]",
        "b @ ${HOLDFAST_FILES}/w/b-1.tar.gz ; python_version > '3'",
        "${HOLDFAST_FILES}/w/c d-1-py3-none-any.whl",
        "${HOLDFAST_FILES}/w/b-1.tar.gz",
    ]
    assert spec.files == ("aml_config/w/a-1-py3-none-any.whl", "w/b-1.tar.gz", "w/c d-1-py3-none-any.whl")


def test_files_must_be_there_and_inside_the_project(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    (tmp_path / "a-1-py3-none-any.whl").write_bytes(b"")
    os.symlink(tmp_path, root / "out")
    problems = bad(
        root,
        "w/a-1-py3-none-any.whl\n../a-1-py3-none-any.whl\nout/a-1-py3-none-any.whl\n"
        "~/a-1-py3-none-any.whl\n-r gone.txt\n",
    )
    assert [(each.line, each.message) for each in problems] == [
        (1, "there is no `w/a-1-py3-none-any.whl` in the project"),
        (2, "`../a-1-py3-none-any.whl` is outside the project"),
        (3, "`out/a-1-py3-none-any.whl` is outside the project"),
        (4, "`~/a-1-py3-none-any.whl` is outside the project"),
        (5, "there is no `gone.txt` in the project"),
    ]
    assert problems[1].remedy == "Copy it into the project, or write `a` and its version."


def test_a_file_with_hashes_throughout_is_a_lock(tmp_path):
    index = "--index-url https://a.example/s\n"
    spec = good(tmp_path, f"--require-hashes\n{index}six==1.0 \\\n  --hash={HASH} \\\n  --hash {HASH}\n  # via me\n")
    assert spec.locked == f"{index}six==1.0 --hash={HASH} --hash={HASH}\n"
    assert spec.pip[-1].line == 3


@pytest.mark.parametrize("other", ["numpy==2.0", f"numpy --hash={HASH}", f"numpy==2.* --hash={HASH}"])
def test_a_file_with_a_package_without_hashes_is_none(tmp_path, other):
    assert good(tmp_path, f"six==1.0 --hash={HASH}\n{other}\n").locked == ""
    problems = bad(tmp_path, f"six==1.0 --hash={HASH}\n{other}\n--require-hashes\n")
    assert [(each.line, each.message) for each in problems] == [(2, "`numpy` has no exact version with hashes")]


def test_variables_stay_and_are_listed(tmp_path):
    spec = good(
        tmp_path, "--extra-index-url https://${USER_NAME}:${TOKEN}@a.example/s\n${WHEELS}/a-1-py3-none-any.whl\n"
    )
    assert texts(spec) == [
        "--extra-index-url https://${USER_NAME}:${TOKEN}@a.example/s",
        "${WHEELS}/a-1-py3-none-any.whl",
    ]
    assert variables_in(spec) == ("TOKEN", "USER_NAME", "WHEELS") and not spec.credentials


@pytest.mark.parametrize(
    ("written", "kept", "taken"),
    [
        ("oauth2:${TOKEN}", "oauth2:${TOKEN}", []),
        ("${TOKEN}:", "${TOKEN}:", []),
        ("${USER_NAME}:s3cret", "${USER_NAME}:${HOLDFAST_INDEX_9B475046}", ["s3cret"]),
        ("me:s3${MORE}cret", "${HOLDFAST_INDEX_25279CEF}${MORE}${HOLDFAST_INDEX_9B475046}", ["me:s3", "cret"]),
    ],
)
def test_a_variable_beside_other_words_of_a_login_stays_one_that_the_installer_fills_in(tmp_path, written, kept, taken):
    spec = good(tmp_path, f"--extra-index-url https://{written}@a.example/s\n")
    assert texts(spec) == [f"--extra-index-url https://{kept}@a.example/s"]
    assert list(spec.credentials.values()) == taken


def test_the_version_beside_it_is_the_pin(tmp_path):
    assert good(tmp_path, "six\n").python is None
    (tmp_path / ".python-version").write_text("# mine\ncpython-3.11.4-linux-x86_64-gnu\n3.10\n")
    spec = good(tmp_path, "six\n")
    assert (spec.python, spec.python_from) == ("3.11.4", Requirement("3.11.4", 2, ".python-version"))
    write(tmp_path, sub__r_txt="six\n")
    below, _ = read_requirements(tmp_path, "sub/r.txt")
    assert below is not None and below.python == "3.11.4"


def test_a_version_that_is_none_is_said_and_not_used(tmp_path):
    write(tmp_path, r_txt="six\n")
    (tmp_path / ".python-version").write_text("my-virtualenv\n")
    spec, problems = read_requirements(tmp_path, "r.txt")
    assert spec is not None and spec.python is None
    assert [(each.file, each.severity) for each in problems] == [(".python-version", "warning")]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "latin-1"])
def test_other_encodings_are_read_or_said(tmp_path, encoding):
    (tmp_path / "r.txt").write_bytes("six # für\r\n".encode(encoding))
    spec, problems = read_requirements(tmp_path, "r.txt")
    if encoding == "utf-8-sig":
        assert spec is not None and texts(spec) == ["six"]
    else:
        assert spec is None and "encoding UTF-8" in problems[0].remedy
        assert ("PowerShell" in problems[0].remedy) is (encoding == "utf-16")


def test_an_empty_and_a_missing_file_differ(tmp_path):
    assert good(tmp_path, "# nothing yet\n").pip == ()
    spec, problems = read_requirements(tmp_path, "gone.txt")
    assert spec is None and len(problems) == 1


PIECES = [
    *("six", "-r ", "-e", "--hash=", " ", "==1", "[x]", ";", "@", "https://", "u:p@", "./", ".whl"),
    *("\\\n", "\n", "#", "'", "${A}", "=", "~", "\0"),
]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=12))
def test_any_text_is_read_or_said_to_be_wrong(tmp_path_factory, pieces):
    root = tmp_path_factory.getbasetemp()
    (root / "any.txt").write_bytes("".join(pieces).encode("utf-8", "surrogatepass"))
    spec, problems = read_requirements(root, "any.txt")
    assert (spec is None) == any(each.severity == "error" for each in problems)
    assert all(str(each).isprintable() for each in problems)
