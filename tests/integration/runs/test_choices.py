"""Commands that are not quite what people mean, and choices that Holdfast reports instead of making silently."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("command", [("experiment", "diagnostics"), ("project", "restore"), ("submit",)])
def test_a_command_without_what_it_needs_says_what_is_missing(bench, command):
    result = bench.run(*command)
    assert result.code == 240
    assert result.err.startswith("error: Missing ")


def test_options_that_make_no_sense_together_are_refused(bench):
    bench.write("t.py", "")
    assert bench.submit("-a", "--wait", "t.py").code == 240
    assert bench.submit("--time-limit", "0", "t.py").code == 240


def test_an_asynchronous_submit_gives_its_record_in_the_format_that_was_asked_for(bench):
    bench.write("t.py", "")
    result = bench.submit("-a", "-o", "json", "t.py")
    assert json.loads(result.out)["script_name"] == "t.py"
    assert bench.submit("-a", "-o", "tsv", "--query", "run_id", "t.py").out.startswith("project_")


def test_a_script_named_like_an_option_runs(bench):
    bench.write("-x.py", "print('ran')")
    assert bench.submit("./-x.py").out == "ran\n"


def test_a_runconfig_that_leaves_the_script_open_takes_it_from_the_line(bench):
    bench.write("show.py", "import sys\nprint(sys.argv[1:])\n")
    bench.write("aml_config/open.runconfig", "ArgumentVector: [$file, --x]\nTarget: local\nFramework: Python\n")
    assert bench.submit("open.runconfig", "show.py", "--y").out == "['--x', '--y']\n"


def test_packages_of_the_users_own_python_are_recorded_and_compared(bench):
    bench.write("t.py", "")
    bench.submit("t.py", env={"VIRTUAL_ENV": str(Path(sys.executable).parent.parent)})
    packages = bench.record()["packages"]
    assert any(each.startswith("pytest==") for each in packages)


def test_a_program_that_is_no_python_is_refused(bench):
    bench.write("t.py", "")
    bench.write("aml_config/bad.compute", "type: local\npythonLocation: /bin/ls\n")
    bench.write("aml_config/bad.runconfig", "Target: bad\nFramework: Python\n")
    result = bench.submit("-c", "bad", "t.py")
    assert result.code == 242
    assert "`/bin/ls` is not a Python 3." in result.err


def test_a_folder_that_is_gone_and_a_relative_home_are_told(bench, tmp_path):
    bench.write("t.py", "")
    relative = bench.submit("t.py", env={"HOLDFAST_HOME": "here"})
    assert relative.code == 240
    assert "absolute path" in relative.err
    gone = tmp_path / "gone"
    gone.mkdir()
    script = (
        f"import os, sys; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); os.execv(sys.executable, [sys.executable, "
    )
    script += "'-m', 'holdfast', 'history', 'list'])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 242
    assert "does not exist any more" in done.stderr


def test_a_conda_file_that_is_not_used_is_said_once(bench):
    bench.write("t.py", "")
    bench.write("aml_config/local.compute", "type: local\n")
    bench.write("aml_config/local.runconfig", "Target: local\nFramework: Python\n")
    bench.write("aml_config/conda_dependencies.yml", "dependencies:\n  - python=3.9\n")
    result = bench.submit("-c", "local", "t.py")
    assert result.err.count("aml_config/conda_dependencies.yml is not used") == 1


def test_one_status_reads_well_on_a_terminal(bench):
    bench.write("t.py", "import sys\nsys.exit(3)\n")
    bench.submit("t.py")
    shown = bench.run("status", "-o", "table").out
    assert "Status" in shown
    assert "exit code 3" in shown
    assert all(len(line) <= 110 for line in shown.splitlines())
