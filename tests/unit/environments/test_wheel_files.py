"""Which file of each package is sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.environments.foreign_resolution import WheelFile, read_wheel_files
from holdfast.errors import PreparationError

A, B, C = ("a" * 64, "b" * 64, "c" * 64)
HOST = "https://index.example/files"


def requirements(*hashes: str, line: str = "coverage==7.0") -> str:
    return f"{line} \\\n" + " \\\n".join(f"    --hash=sha256:{each}" for each in hashes) + "\n    # via -r x\n"


def pylock(*wheels: tuple[str, str], name: str = "coverage", more: str = "") -> str:
    rows = ", ".join(
        f'{{ url = "{HOST}/{file}", hashes = {{ sha256 = "{digest}" }}{more} }}' for file, digest in wheels
    )
    return f'lock-version = "1.0"\n[[packages]]\nname = "{name}"\nversion = "7.0"\nwheels = [{rows}]\n'


def read(text: str, lock: str, folder: Path = Path("/tmp")) -> tuple[WheelFile, ...]:
    return read_wheel_files(text, lock, folder, folder / "project")


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("coverage-7.0-cp311-cp311-manylinux_2_17_x86_64.whl", "coverage-7.0-py3-none-any.whl"),
        ("coverage-7.0-cp311-cp311-manylinux_2_17_x86_64.whl", "coverage-7.0-cp38-abi3-manylinux_2_28_x86_64.whl"),
        ("coverage-7.0-cp39-abi3-manylinux_2_17_x86_64.whl", "coverage-7.0-cp38-abi3-manylinux_2_17_x86_64.whl"),
        ("coverage-7.0-cp311-cp311-manylinux_2_28_x86_64.whl", "coverage-7.0-cp311-cp311-manylinux_2_17_x86_64.whl"),
        ("coverage-7.0-py3-none-manylinux_2_17_x86_64.whl", "coverage-7.0-py3-none-any.whl"),
        ("coverage-7.0-2-py3-none-any.whl", "coverage-7.0-1-py3-none-any.whl"),
    ],
)
def test_of_several_that_fit_the_closest_one_is_taken(better, worse):
    for order in ([(better, A), (worse, B)], [(worse, B), (better, A)]):
        (found,) = read(pylock(*order), requirements(A, B))
        assert (found.name, found.sha256, found.url) == (better, A, f"{HOST}/{better}")


def test_only_a_file_that_the_lock_knows_is_taken_with_the_size_and_the_name_that_the_index_has():
    files = [("torch-2.3.0%2Bcu121-py3-none-any.whl", A), ("torch-2.3.0-cp311-cp311-linux_x86_64.whl", C)]
    (found,) = read(pylock(*files, more=", size = 12"), requirements(A, B))
    assert (found.sha256, found.name, found.size) == (A, "torch-2.3.0+cu121-py3-none-any.whl", 12)


ARCHIVE = f'[[packages]]\nname = "old"\narchive = {{ url = "{HOST}/old-1.tar.gz", hashes = {{ sha256 = "{A}" }} }}\n'


@pytest.mark.parametrize(
    ("text", "lock", "words", "remedy"),
    [
        (pylock(("coverage-7.0-py3-none-any.whl", C)), requirements(A, B), "coverage 7.0", "--upgrade"),
        (ARCHIVE, requirements(A, line=f"old @ {HOST}/old-1.tar.gz"), "`old` is no wheel", "pip wheel old"),
    ],
    ids=["the index has other files than the lock", "no wheel"],
)
def test_a_package_without_a_file_to_send_is_an_error_with_a_remedy(text, lock, words, remedy):
    with pytest.raises(PreparationError, match=words) as caught:
        read(text, lock)
    assert remedy in caught.value.hint


def test_wheels_that_the_spec_names_in_the_project_travel_with_it_and_others_do_not(tmp_path):
    own, beside = "wheels/own-1-py3-none-any.whl", "links/beside-1-py3-none-any.whl"
    text = (
        f'[[packages]]\nname = "own"\narchive = {{ path = "project/{own}", hashes = {{ sha256 = "{A}" }} }}\n'
        f'[[packages]]\nname = "beside"\nwheels = [{{ path = "project/{beside}", hashes = {{ sha256 = "{B}" }} }}]\n'
    )
    lock = requirements(A, line="${HOLDFAST_FILES}/" + own) + requirements(B, line="beside==1")

    (found,) = read(text, lock, tmp_path)

    assert found.package == "beside"
    assert found.url == (tmp_path / "project" / beside).as_uri()
