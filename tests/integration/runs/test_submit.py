"""Submitting to this machine: what the script gets, what is fetched, what is recorded."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from pathlib import Path

import pytest


def test_a_bare_folder_with_a_script_is_enough(bench):
    bench.write("hello.py", "print('hello')\n")
    result = bench.submit("hello.py")
    assert (result.code, result.out) == (0, "hello\n")
    run_id = result.err.splitlines()[0].removeprefix("RunId: ")
    assert result.err.splitlines() == [
        f"RunId: {run_id}",
        "",
        "Executing user inputs .....",
        "=" * 80,
        "",
        "Execution Details",
        "=" * 80,
        f"RunId: {run_id}",
        result.err.splitlines()[-1],
    ]
    assert result.err.splitlines()[-1].startswith("Status: Completed after ")


def test_the_script_runs_in_a_copy_so_that_a_later_edit_does_not_reach_it(bench):
    bench.write("data.txt", "before")
    bench.write(
        "slow.py",
        """
        import os, time
        print(os.getcwd(), flush=True)
        while not os.path.exists(os.environ["HOLDFAST_RUN_DIRECTORY"] + "/go"):
            time.sleep(0.01)
        print(open("data.txt").read())
        """,
    )
    run_id = bench.start("slow.py")
    bench.event(run_id, "started")
    bench.write("data.txt", "after")
    (bench.far(run_id) / "go").write_text("")
    result = bench.run("logs", "-f", "-r", run_id)
    assert result.out.splitlines() == [str(bench.there(run_id)), "before"]


def test_the_active_python_is_used_and_python_location_overrides_it(bench, tmp_path):
    bench.write("which.py", "import sys\nprint(sys.executable)\n")
    folder = tmp_path / "venv" / "bin"
    folder.mkdir(parents=True)
    (folder / "python").symlink_to(sys.executable)
    result = bench.submit("which.py", env={"VIRTUAL_ENV": str(folder.parent)})
    assert result.out.strip() == str(folder / "python")
    bench.write("aml_config/other.compute", f"type: local\npythonLocation: {sys.executable}\n")
    bench.write("aml_config/other.runconfig", "Target: other\nFramework: Python\n")
    assert bench.submit("-c", "other", "which.py").out.strip() == sys.executable


def test_a_python_that_does_not_start_is_a_clear_failure(bench):
    fake = bench.write("notpython", "this is no program")
    fake.chmod(0o755)
    bench.write("aml_config/bad.compute", f"type: local\npythonLocation: {fake}\n")
    bench.write("aml_config/bad.runconfig", "Target: bad\nFramework: Python\n")
    bench.write("t.py", "print(1)")
    result = bench.submit("-c", "bad", "t.py")
    assert result.code == 246
    assert "is not a program for this machine" in result.err
    assert bench.record()["reason"] == "cannot-start"


def test_a_runconfig_alone_names_script_and_arguments(bench):
    bench.write("show.py", "import sys\nprint(sys.argv[1:])\n")
    bench.write(
        "aml_config/night.runconfig",
        'ArgumentVector: [show.py, "--epochs", "3"]\nTarget: local\nFramework: Python\n',
    )
    assert bench.submit("night.runconfig").out == "['--epochs', '3']\n"
    assert bench.submit("-c", "night", "show.py", "x").out == "['x']\n"


def test_a_dry_run_shows_the_plan_with_holes_and_starts_nothing(bench):
    bench.write("t.py", "print(1)")
    result = bench.submit("--dry-run", "-o", "table", "--time-limit", "1h", "t.py", "--lr", "0.1")
    assert result.code == 0, result.err
    assert "directory    <work>" in result.out
    assert "time limit   1h" in result.out
    assert result.out.splitlines()[-1].endswith(" t.py --lr 0.1")
    assert [each.name for each in bench.root.iterdir()] == ["t.py"], "it leaves nothing behind"
    plan = json.loads(bench.submit("--dry-run", "-o", "json", "t.py").out)
    assert plan["command"]["directory"] == {"join": [{"hole": "work"}]}


def test_with_an_explicit_format_the_record_goes_to_stdout_and_the_output_to_stderr(bench):
    bench.write("t.py", "print('from the script')")
    result = bench.submit("-o", "json", "t.py")
    assert json.loads(result.out)["status"] == "Completed"
    assert "from the script" in result.err


def test_wait_shows_no_output_but_the_end(bench):
    bench.write("t.py", "print('from the script')")
    result = bench.submit("--wait", "t.py")
    assert result.out == ""
    assert "Status: Completed" in result.err


def test_a_run_started_inside_a_run_knows_its_parent(bench):
    bench.write("child.py", "print('child')")
    bench.write(
        "parent.py",
        f"""
        import subprocess
        subprocess.run([{sys.executable!r}, "-m", "holdfast", "submit", "child.py"], cwd={str(bench.root)!r})
        """,
    )
    assert bench.submit("parent.py").code == 0
    runs = json.loads(bench.run("history", "list", "-o", "json").out)
    child = next(run for run in runs if run["script_name"] == "child.py")
    parent = next(run for run in runs if run["script_name"] == "parent.py")
    assert child["parent_run_id"] == parent["run_id"]
    assert parent["parent_run_id"] is None


def test_run_numbers_count_per_script(bench):
    bench.write("a.py", "")
    bench.write("b.py", "")
    numbers = []
    for name in ("a.py", "a.py", "b.py"):
        bench.submit(name)
        numbers.append(bench.record()["run_number"])
    assert numbers == [1, 2, 1]


@pytest.mark.parametrize(
    ("script", "code", "words"),
    [
        ("tran.py", 242, "Did you mean `train.py`?"),
        ("np0.py", 242, ": long.py, train.py"),
        ("../outside.py", 242, "lies outside the project"),
        ("sub", 242, "sub/x.py"),
    ],
)
def test_a_script_that_cannot_be_used_is_refused_before_anything_is_made(bench, script, code, words):
    bench.write("train.py", "")
    bench.write("long.py", "")
    bench.write("sub/x.py", "")
    (bench.root.parent / "outside.py").write_text("")
    result = bench.submit(script)
    assert result.code == code
    assert words in result.err
    assert not (bench.root / ".holdfast" / "runs").exists()


def test_a_script_left_out_by_a_rule_is_refused_naming_the_rule(bench):
    bench.write("train.py", "")
    bench.write(".amlignore", "# nothing\n*.py\n")
    result = bench.submit("train.py")
    assert result.code == 242
    assert "`*.py` (.amlignore:2)" in result.err


def test_a_script_that_misses_an_ignored_file_is_told_which_rule_left_it_out(bench):
    bench.write("train.py", "open('data/train.csv')\n")
    bench.write("data/train.csv", "1,2")
    bench.write(".gitignore", "data/\n")
    result = bench.submit("train.py")
    assert result.code == 1
    assert "`data/train.csv`" in result.err and "`data/` (.gitignore:1)" in result.err
    bench.write(".amlignore", "!data/\n")
    assert bench.submit("train.py").code == 0


@pytest.mark.parametrize("typed", [("submit", "t.py"), ("submit", "--dry-run", "t.py")], ids=" ".join)
@pytest.mark.parametrize("mode", [None, 0o1777], ids=["home", "as /tmp"])
def test_a_folder_that_more_than_one_project_lies_in_cannot_be_one(holdfast, isolated: Path, tmp_path, mode, typed):
    folder = isolated if mode is None else tmp_path / "shared"
    folder.mkdir(exist_ok=True)
    (folder / "t.py").write_text("")
    if mode is not None:
        folder.chmod(mode)
    result = holdfast(*typed, cwd=folder)
    assert result.code == 242
    assert "cannot be a project" in result.err
    assert not (folder / ".holdfast" / "project.json").exists()


def test_pyspark_by_a_missing_line_says_so(bench):
    bench.write("t.py", "")
    bench.write("aml_config/old.runconfig", "Target: local\n")
    result = bench.submit("-c", "old", "t.py")
    assert result.code == 243
    assert "has no `Framework` line, which means PySpark" in result.err


def test_every_problem_of_the_files_is_told_at_once(bench):
    bench.write("t.py", "")
    bench.write("aml_config/gpu.compute", "type: local\nbaseImage: x\nnonsense: 1\n")
    bench.write("aml_config/gpu.runconfig", "Target: gpu\nFramwork: Python\n")
    result = bench.submit("-c", "gpu", "t.py")
    assert result.code == 241
    assert "aml_config/gpu.compute:2: baseImage" in result.err
    assert "baseDockerImage" in result.err
    assert "aml_config/gpu.compute:3: nonsense" in result.err
    assert "aml_config/gpu.runconfig:2: Framwork" in result.err


def test_a_read_only_project_gives_a_clear_error_and_leaves_nothing(bench, obeying_modes):
    bench.write("t.py", "print(1)")
    bench.root.chmod(0o555)
    result = obeying_modes(bench.root, "submit", "t.py")
    assert result.code == 244
    assert "cannot be written" in result.err
    assert not (bench.root / ".holdfast").exists()


def test_a_read_only_home_gives_a_clear_error_and_no_record(bench, obeying_modes):
    bench.write("t.py", "print(1)")
    shutil.rmtree(bench.home)
    bench.home.mkdir(mode=0o555)
    result = obeying_modes(bench.root, "submit", "t.py")
    assert result.code == 244
    assert "HOLDFAST_HOME" in result.err
    assert not list((bench.root / ".holdfast").glob("runs/*")), "nothing was submitted"


def test_a_read_only_project_can_still_be_read(bench, obeying_modes):
    bench.write("t.py", "print(1)")
    bench.submit("t.py")
    for path in (bench.root / ".holdfast", bench.root):
        path.chmod(0o555)
    result = obeying_modes(bench.root, "history", "list", "-o", "tsv", "--query", "[].status")
    assert (result.code, result.out) == (0, "Completed\n")


def test_a_script_that_missed_an_ignored_file_trains_with_all_of_them_by_the_command_that_is_named(bench):
    bench.write("data/prepare.py", "")
    for name in ("train.bin", "val.bin", "meta.pkl"):
        bench.write(f"data/{name}", "x")
    bench.write(".gitignore", "*.bin\n*.pkl\n")
    bench.write("train.py", "import os\nopen('data/train.bin').read()\nprint(sorted(os.listdir('data')))\n")
    result = bench.submit("train.py")
    assert result.code == 1
    note, command = result.err.splitlines()[0], result.err.splitlines()[-1]
    assert note.partition(". To ship them: ")[2] == "--include 'data/*'"
    words = shlex.split(command.partition("holdfast ")[2])
    again = bench.run(*words)
    assert (again.code, again.out) == (0, "['meta.pkl', 'prepare.py', 'train.bin', 'val.bin']\n")
    assert "note:" not in again.err
    assert not (bench.root / "aml_config").exists()
