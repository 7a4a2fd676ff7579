"""Commands that are more than a Python file, the same on each product. `conftest.py` says which are tried."""

from __future__ import annotations

import json
import os

import pytest

WHO = "import os, sys; print(os.path.basename(os.getcwd()), *sys.argv[1:])"
ON_PATH = """
import os, shutil, sys
beside = os.path.dirname(sys.executable)
print(shutil.which("python3") is not None, os.path.isdir(beside))
"""
TERMINAL = """
import os, sys
print(*os.get_terminal_size(0), sys.stdout.isatty(), sys.stderr.isatty(), os.environ["TERM"])
try:
    input()
except EOFError:
    print("no input")
sys.exit(3)
"""


BESIDE = """
import holdfast, os
top = os.getcwd()
print(os.path.basename(top), os.listdir(".."), os.path.relpath(holdfast.current_run().outputs))
os.mkdir("../logs")
open("../logs/x", "w").write("near")
open("../../../x", "w").write("far")
open("../../../plan.json", "w").write("{}")
"""


@pytest.mark.parametrize(
    ("words", "out", "name"),
    [
        (["-m", "package.train", "a b"], "sub a b\n", "package.train"),
        (["python", "package/train.py"], "sub\n", "sub/package/train.py"),
        (["run.sh", "a", "b c"], "sub a b c\n", "sub/run.sh"),
        (["--", "sh", "-c", "echo $0 $1", "a", "b"], "a b\n", "sh"),
    ],
    ids=["module", "python", "shell script", "program"],
)
def test_a_command_runs_where_it_was_typed_and_is_called_as_a_person_would(bench, words, out, name):
    bench.write("aml_config/README", "")
    bench.write("sub/package/__init__.py", "")
    bench.write("sub/package/train.py", WHO)
    bench.write("sub/run.sh", '#!/bin/sh\necho "$(basename "$PWD")" "$@"\n')
    result = bench.command("submit", *words, cwd=bench.root / "sub")
    record = bench.record()
    assert (result.out, result.code) == (out, 0)
    assert (record["script_name"], record["status"]) == (name, "Completed")


def test_the_folder_of_a_command_need_not_have_files(bench):
    bench.write("aml_config/README", "")
    (bench.root / "empty").mkdir()
    result = bench.command("submit", "pwd", cwd=bench.root / "empty")
    assert (result.out.rstrip().split("/")[-2:], result.code) == (["project", "empty"], 0)


def test_what_a_script_writes_beside_its_project_comes_home_and_its_folder_has_its_name(bench):
    bench.write("tools/train.py", BESIDE)
    before = sorted(os.listdir(bench.root.parent))
    result = bench.submit("tools/train.py")
    assert (result.code, result.out) == (0, f"{bench.root.name} ['{bench.root.name}'] outputs\n"), result.err
    run_id = bench.record()["run_id"]
    assert (bench.near(run_id) / "above/1/logs/x").read_text() == "near"
    assert (bench.near(run_id) / "above/3/x").read_text() == "far"
    assert json.loads((bench.far(run_id) / "plan.json").read_text())["run"] == run_id
    assert {"../logs/x", "../../../plan.json"} <= {each["path"] for each in bench.record()["outputs"]}
    assert sorted(os.listdir(bench.root.parent)) == before


def test_a_script_imports_the_projects_packages_from_any_folder_and_hides_nothing_of_python(bench):
    bench.write("mylib/__init__.py", "from inner import NAME\n")
    bench.write("src/inner/__init__.py", "NAME = 'inner'\n")
    bench.write("random.py", "raise SystemExit('hidden')\n")
    bench.write("tools/deep/train.py", "import random, mylib\nprint(mylib.NAME, random.__name__)\n")
    bench.write("tools/run.sh", "#!/bin/sh\npython3 deep/train.py\n")
    assert bench.submit("tools/deep/train.py").out == "inner random\n"
    bench.write("aml_config/README", "")
    assert bench.command("submit", "run.sh", cwd=bench.root / "tools").out == "inner random\n"


def test_the_programs_of_the_runs_python_are_on_its_path(bench):
    bench.write("t.py", ON_PATH)
    assert bench.submit("t.py").out == "True True\n"


def test_variables_that_are_typed_reach_the_command_and_its_record(bench, monkeypatch):
    monkeypatch.setenv("FROM_HERE", "of this shell")
    result = bench.submit("--env", "TYPED=a b", "--env", "FROM_HERE", "--", "printenv", "TYPED", "FROM_HERE")
    assert (result.out, result.code) == ("a b\nof this shell\n", 0)
    run_id = bench.record()["run_id"]
    recorded = json.loads((bench.near(run_id) / "configuration.json").read_text())["run_configuration"]
    assert recorded["environment_variables"] == {"TYPED": "a b", "FROM_HERE": "of this shell"}


def test_a_program_that_is_not_there_is_named(bench, target):
    result = bench.submit("--", "no-such-program", "train")
    assert result.code != 0 and "no-such-program" in result.err
    if target != "local":
        assert bench.record()["reason"] == "cannot-start"


def test_several_processes_are_one_run(bench):
    bench.write("t.py", "import os, sys\nprint('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])\n")
    assert bench.submit("--processes-per-node", "2", "t.py").out == "rank 0 of 2\n"
    tagged = bench.submit("--processes-per-node", "2", "--tag-output", "t.py").out
    assert sorted(tagged.splitlines()) == ["[rank 0] rank 0 of 2", "[rank 1] rank 1 of 2"]
    bench.write("t.py", "import os, sys\nsys.exit(int(os.environ['RANK']) * 7)\n")
    assert bench.submit("--processes-per-node", "2", "t.py").code == 7
    assert bench.record()["script_name"] == "t.py"


def test_a_command_may_have_a_terminal(bench):
    bench.write("t.py", TERMINAL)
    done = bench.submit("--tty", "t.py")
    assert (done.out, done.code) == ("80 24 True True xterm-256color\nno input\n", 3)
    assert bench.record()["terminal"] is True
