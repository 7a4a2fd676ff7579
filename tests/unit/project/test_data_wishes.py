"""What `Data:` and `--data` say."""

import pytest

from holdfast.errors import UsageError
from holdfast.project.configuration_folders import ConfigurationFolders
from holdfast.project.data_wishes import MOST, DataWish, in_force, parse_data
from holdfast.project.runconfig import read_runconfig, render_runconfig


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        ("~/datasets/tiny:data/tiny", DataWish("~/datasets/tiny", "data/tiny")),
        ("box:/mnt/imagenet:data/imagenet", DataWish("/mnt/imagenet", "data/imagenet", "box")),
        ("box:~/sets/:./data/", DataWish("~/sets", "data", "box")),
        ("./a:b:data", DataWish("./a:b", "data")),
        ("../x:x", DataWish("../x", "x")),
    ],
)
def test_a_line_says_what_lies_where(text, wish):
    assert parse_data(text) == wish


@pytest.mark.parametrize(
    "text",
    ["", "x", "x:", ":x", "x:/abs", "x:../y", "x:a/../b", "x:a//b", "x:.", "x:.git/config", "x:outputs/y", "x:a\nb"],
)
def test_a_place_outside_the_project_or_in_its_outputs_is_refused(text):
    with pytest.raises(UsageError):
        parse_data(text)


def test_what_is_typed_takes_the_place_of_what_is_written_and_nothing_lies_in_another():
    written = (parse_data("a:data/x"), parse_data("b:data/y"))
    assert in_force([parse_data("c:data/x")], written) == (DataWish("c", "data/x"), DataWish("b", "data/y"))
    with pytest.raises(UsageError):
        in_force([parse_data("c:data")], written)


def test_a_run_configuration_is_read_and_written_with_its_data(tmp_path):
    folder = tmp_path / "aml_config"
    folder.mkdir()
    lines = ["Target: local", "Framework: Python", "Data:", "  - ~/tiny:data/tiny", "  - local:/mnt/x:data/x"]
    (folder / "a.runconfig").write_text("\n".join(lines))
    found, _ = read_runconfig(ConfigurationFolders(tmp_path), "a")
    assert found is not None and [str(each) for each in found.data] == ["~/tiny:data/tiny", "local:/mnt/x:data/x"]
    (folder / "a.runconfig").write_text(render_runconfig(found))
    assert read_runconfig(ConfigurationFolders(tmp_path), "a")[0] == found
    (folder / "a.runconfig").write_text("\n".join([*lines, "  - y:../y", "  - z:data/tiny/z"]))
    broken, problems = read_runconfig(ConfigurationFolders(tmp_path), "a")
    assert broken is None and [each.line for each in problems] == [6, 7]


def test_more_lines_than_a_run_can_have_are_refused_without_comparing_them(tmp_path):
    (tmp_path / "aml_config").mkdir()
    lines = ["Target: local", "Framework: Python", "Data:", *(f"  - a:x{number}" for number in range(500))]
    (tmp_path / "aml_config" / "a.runconfig").write_text("\n".join(lines))
    found, problems = read_runconfig(ConfigurationFolders(tmp_path), "a")
    assert found is None and [each.line for each in problems] == [4 + MOST]
