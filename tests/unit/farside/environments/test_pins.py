"""What is taken from the lock of another machine, and when two locks are the same environment."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.farside.environments.locks import is_lock, make_lock
from holdfast.farside.environments.pins import (
    LockedPackage,
    conda_pins,
    differences,
    entries,
    narrowed,
    pins,
    summary_of,
)

TEXT = "numpy==2.4.6 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n    # via -r requirements.in\nsix==1.17.0\n"
CONDA = {"name": "zlib", "version": "1.3.1", "build": "h_0", "subdir": "linux-64", "url": "u", "sha256": "cc"}


def lock(text: str, *conda: dict[str, Any]) -> dict[str, Any]:
    return make_lock("spec", "linux-x86_64-glibc2.36", "3.11.2", text, conda=list(conda))


def test_packages_are_read_with_their_hashes():
    assert entries(TEXT) == [
        LockedPackage("numpy==2.4.6", ("sha256:aa", "sha256:bb")),
        LockedPackage("six==1.17.0", ()),
    ]
    assert entries("mine @ https://h/m.whl --hash=sha256:aa\n") == [
        LockedPackage("mine @ https://h/m.whl", ("sha256:aa",))
    ]
    assert entries("") == entries("# nothing\n\n") == []


def test_comments_behind_packages_and_hashes_are_none_of_them():
    text = "six==1.16.0  # via x\na==1 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb # via -r y\nb==2\t#\n"
    assert entries(text) == [
        LockedPackage("six==1.16.0", ()),
        LockedPackage("a==1", ("sha256:aa", "sha256:bb")),
        LockedPackage("b==2", ()),
    ]
    assert pins(text) == {"six": "1.16.0", "a": "1", "b": "2"}
    assert entries("m @ https://h/m.whl#sha256=aa # via x\n") == [LockedPackage("m @ https://h/m.whl#sha256=aa", ())]


@pytest.mark.parametrize(
    "text",
    [
        "--index-url https://evil/simple",
        " -e /tmp/evil",
        "\t-r /etc/passwd",
        "six==1.0 \\\n--index-url https://evil/simple",
        "six==1.0 --global-option=x",
        "six==1.0 \\\n    --hash=sha256:aa \\\n    -e /tmp/evil",
        "six==1.0\u2028--index-url https://evil/simple",
        "six==1.0\x0b--index-url https://evil/simple",
        "six==1.0\x00",
        "six==1.0  # via x \\\n    --hash=sha256:aa",
        "six==1.0  # via x\r--index-url https://evil/simple",
        "# via x\r--index-url https://evil/simple",
        "six==1.0\r",
        "six==1.0 \\\n#x\r    --hash=sha256:aa",
        "six==1.0\x1b[2J",
    ],
)
def test_a_text_that_says_more_than_packages_is_no_lock_and_has_no_versions(text):
    with pytest.raises(ValueError, match=r"cannot be seen|not a package|goes on"):
        entries(f"{TEXT}{text}\n")
    assert pins(f"{TEXT}{text}\n") == {}
    assert not is_lock(lock(f"{TEXT}{text}\n"))


def test_only_names_with_a_version_are_pins():
    lines = [
        "Six_X.y==1!1.17.0rc1+cu126",
        " leading==1.0",
        "evil @ https://evil/evil-1.0.whl",
        "evil @ file:///tmp/evil",
        "/tmp/evil-1.0.whl",
        "./evil",
        "${HOLDFAST_FILES}/evil-1.0-py3-none-any.whl",
        "git+https://evil/evil.git",
        "evil[extra]==1.0",
        "evil==1.0 ; python_version > '3'",
        "evil==1.0;python_version>'3'",
        "evil==1.*",
        "evil===1.0",
        "evil>=1.0",
        "evil==1.0,<2",
        "evil==${VERSION}",
        "evil == 1.0",
        "evil==1.0.",
        "éвil==1.0",
        "evil==\uff11.0",
        "evil",
    ]
    assert pins("".join(f"{line}\n" for line in lines)) == {"six-x-y": "1!1.17.0rc1+cu126", "leading": "1.0"}


def test_of_a_conda_package_its_name_version_build_and_folder_count():
    others = [
        {**CONDA, "build": "*"},
        {**CONDA, "build": "h_0[url=file:///tmp/evil]"},
        {**CONDA, "version": ">=0"},
        {**CONDA, "name": "https://evil/x"},
        {"url": "file:///tmp/evil.conda", "sha256": "aa"},
    ]
    assert conda_pins([CONDA, *others]) == [("zlib", "1.3.1", "h_0", "linux-64")]


@pytest.mark.parametrize(
    ("text", "conda", "said"),
    [
        (TEXT, (), []),
        (TEXT.replace("    --hash=sha256:bb\n", "    --hash=sha256:ee\n"), (), []),
        (TEXT.replace("six==1.17.0", "six==1.16.0"), (), ["`six` is 1.16.0 instead of 1.17.0"]),
        (TEXT.replace(":aa", ":ee").replace(":bb", ":ff"), (), ["`numpy` has other files"]),
        (TEXT + "more==1\n", (), ["`more` is new"]),
        (
            "",
            (),
            [
                "`numpy` is not among the packages that are asked for",
                "`six` is not among the packages that are asked for",
            ],
        ),
        (TEXT, (CONDA,), ["`zlib of conda` is new"]),
    ],
)
def test_two_locks_are_the_same_environment_or_differ_in_words(text, conda, said):
    assert differences(lock(text, *conda), lock(TEXT)) == said


def test_files_of_conda_packages_are_compared_and_many_differences_are_counted():
    assert differences(lock("", {**CONDA, "sha256": "dd"}), lock("", CONDA)) == ["`zlib of conda` has other files"]
    assert differences(lock("", {**CONDA, "build": "h_1"}), lock("", CONDA)) == [
        "`zlib of conda` is 1.3.1 h_1 instead of 1.3.1 h_0"
    ]
    assert summary_of(["a", "b", "c", "d", "e"]) == "a; b; c; and 2 more"


def test_files_that_only_one_of_both_knows_are_left_out():
    wanted = lock("numpy==2.4.6 \\\n    --hash=sha256:bb \\\n    --hash=sha256:ee\nsix==1.17.0\n")
    assert narrowed(lock(TEXT), wanted)["requirements"] == ("numpy==2.4.6 \\\n    --hash=sha256:bb\nsix==1.17.0\n")
