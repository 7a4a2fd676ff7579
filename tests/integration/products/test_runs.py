"""What a script gets and what comes home of its run, the same on each product. `conftest.py` says which are tried."""

from __future__ import annotations

import json
import os
import zipfile

import pytest

from kit import processes
from kit.files import holding

SECRET = "s3cr3t-value-äöü"
WAITING = """
import os, time
open(os.environ["AZUREML_NATIVE_SHARE_DIRECTORY"] + "starts", "a").write("x")
print("first", flush=True)
while not os.path.exists("go"):
    time.sleep(0.01)
print("second", flush=True)
open("outputs/result", "w").write("whole")
"""


def test_output_comes_home_byte_for_byte_and_in_its_order(bench):
    bench.write(
        "t.py",
        r"""
        import os
        for number in range(2000):
            os.write(1, b"out %d\n" % number)
            os.write(2, b"err %d\n" % number)
        os.write(1, bytes(range(256)) * 4000 + b"\r\n\0\x1b[31mHOLDFAST 00\n")
        os.write(2, b"no newline at the end")
        """,
    )
    said = b"".join(b"out %d\nerr %d\n" % (number, number) for number in range(2000))
    expected = said + bytes(range(256)) * 4000 + b"\r\n\0\x1b[31mHOLDFAST 00\nno newline at the end"
    assert bench.popen("submit", "t.py").communicate(timeout=60)[0] == expected
    run_id = bench.record()["run_id"]
    for name in ("driver_log", "journal.jsonl"):
        assert (bench.near(run_id) / name).read_bytes() == (bench.far(run_id) / name).read_bytes()
    assert (bench.near(run_id) / "driver_log").read_bytes() == expected


@pytest.mark.parametrize(
    ("script", "code", "reason", "words"),
    [
        ("raise SystemExit(125)", 125, "exit-code", "exit code 125"),  # what `docker run` itself fails with
        ("raise SystemExit(255)", 255, "exit-code", ""),  # and what ssh does
        ("import ctypes\nctypes.string_at(0)", 128 + 11, "signal", "ended by SIGSEGV"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)", 128 + 15, "signal", ""),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", 128 + 9, "killed", "the cause is unknown"),
    ],
    ids=["code 125", "code 255", "crash", "SIGTERM", "SIGKILL"],
)
def test_submit_exits_with_the_scripts_own_code_and_says_why(bench, script, code, reason, words):
    bench.write("crash.py", script)
    result = bench.submit("crash.py")
    record = bench.record()
    assert (result.code, record["status"], record["reason"]) == (code, "Failed", reason)
    assert words in result.err
    if "ctypes" in script:
        assert "Segmentation fault" in result.out and "crash.py" in result.out, "the stack of native code"
    bench.until_nothing_is_left(record["run_id"])


def test_metrics_and_uploads_come_home_also_when_the_script_removed_its_outputs_folder(bench, target):
    bench.write("part/data.txt", "from the project")
    bench.write(
        "train.py",
        """
        import holdfast, shutil
        from azureml.logging import get_azureml_logger
        for step in range(3):
            holdfast.log("loss", 1.0 / (step + 1), step=step)
        get_azureml_logger().log("Accuracy", 0.9).wait()
        holdfast.upload("notes/summary.txt", open("part/data.txt").read())
        shutil.rmtree("outputs")
        """,
    )
    assert bench.submit("train.py").code == 0
    record = bench.record()
    assert (record["target_type"], record["status"], record["Accuracy"]) == (target, "Completed", 0.9)
    assert record["metrics"]["loss"] == 1.0 / 3
    assert (bench.near(record["run_id"]) / "uploads/notes/summary.txt").read_text() == "from the project"
    query = bench.run("history", "list", "-o", "tsv", "--query", "@[?Accuracy != null] | max_by(@, &Accuracy).Accuracy")
    assert query.out == "0.9\n"


def test_outputs_come_home_as_they_are_also_when_the_script_changed_directory_and_failed(bench, obeying_modes):
    bench.write(
        "train.py",
        """
        import os, pathlib
        os.makedirs("outputs/deep/closed")
        pathlib.Path("outputs/deep/model.bin").write_bytes(bytes(range(256)) * 1000)
        pathlib.Path("outputs/deep/closed/inside").write_text("1")
        pathlib.Path("outputs/shut").write_text("2")
        pathlib.Path("outputs/.unfinished-mine").touch()
        os.symlink("deep/model.bin", "outputs/latest")
        os.symlink(".", "outputs/loop")
        os.symlink("/etc/passwd", "outputs/outside")
        os.mkfifo("outputs/pipe")
        os.chmod("outputs/shut", 0)
        os.chmod("outputs/deep/closed", 0)
        os.chdir("/")
        raise SystemExit(3)
        """,
    )
    result = obeying_modes(bench.root, "submit", "train.py")
    assert result.code == 3, result.err
    outputs = bench.near(bench.record()["run_id"]) / "outputs"
    assert (outputs / "deep/model.bin").read_bytes() == bytes(range(256)) * 1000
    assert (outputs / "deep/closed/inside").read_text() == "1"
    (outputs / "shut").chmod(0o600)
    assert (outputs / "shut").read_text() == "2"
    assert (outputs / ".unfinished-mine").read_text() == ""
    assert [os.readlink(outputs / name) for name in ("latest", "loop")] == ["deep/model.bin", "."]
    assert not os.path.lexists(outputs / "outside")
    assert "`outside` is a link to `/etc/passwd`" in result.err
    assert "`pipe` is neither a file nor a folder" in result.err


def test_thousands_of_outputs_with_long_names_come_home(bench):
    bench.write("t.py", "for i in range(4500):\n    open('outputs/%05d' % i + 'x' * 240, 'w')\n")
    assert bench.submit("t.py").code == 0
    assert len(list((bench.near(bench.record()["run_id"]) / "outputs").iterdir())) == 4500


def test_outputs_that_are_left_there_are_fetched_when_they_are_wanted_and_not_cleaned_before(bench, tmp_path):
    bench.write(
        "t.py",
        """
        import holdfast
        open("outputs/model", "w").write("x")
        open("beside", "w").write("y")
        holdfast.upload("report", "short")
        """,
    )
    result = bench.submit("--no-outputs", "t.py")
    record = bench.record()
    run_id = record["run_id"]
    fetch = f"holdfast history download -r {run_id} -d DIR"
    assert fetch in result.err
    assert any(fetch in note for note in record["notes"])
    assert (bench.near(run_id) / "uploads/report").read_text() == "short"
    assert not (bench.near(run_id) / "outputs").exists()
    assert not (bench.near(run_id) / "files").exists()
    kept = bench.run("experiment", "clean", "--all")
    assert fetch in kept.err
    assert (bench.there(run_id) / "outputs/model").exists()
    assert bench.run("history", "download", "-r", run_id, "-d", str(tmp_path / "got")).code == 0
    assert (tmp_path / "got/outputs/model").read_text() == "x"
    assert (tmp_path / "got/beside").read_text() == "y"
    assert (bench.near(run_id) / "outputs/model").read_text() == "x"
    assert bench.record(run_id)["notes"] == []
    assert "stay" not in bench.run("history", "info", "-r", run_id, "-o", "table").out
    assert bench.run("experiment", "clean", "--all").code == 0
    assert not list(bench.home.glob(f"runs/*/{run_id}"))


TRAINING = """
import os
os.makedirs("checkpoints/__pycache__")
open("checkpoints/a.pt", "w").write("weights")
open("checkpoints/__pycache__/a.pyc", "w").write("cache")
times = os.stat("kept.txt")
open("kept.txt", "r+").write("K")
os.utime("kept.txt", ns=(times.st_atime_ns, times.st_mtime_ns))
open("outputs/model", "w").write("mine")
open("large.bin", "w").write("x" * 5000)
os.symlink("checkpoints/a.pt", "latest.pt")
os.symlink("/etc/passwd", "outside")
"""


def files_in(folder):
    found = (each for each in folder.rglob("*") if not each.is_dir())
    return {each.relative_to(folder).as_posix(): each.read_text() for each in found}


def test_everything_that_a_run_wrote_comes_home_and_what_is_too_large_is_named_and_kept(bench, tmp_path):
    bench.write("kept.txt", "kept")
    bench.write("same.txt", "same")
    bench.write("train.py", TRAINING)
    result = bench.submit("--outputs-limit", "4kB", "train.py")
    assert result.code == 0, result.err
    run_id = bench.record()["run_id"]
    near = bench.near(run_id)
    small = {"checkpoints/a.pt": "weights", "kept.txt": "Kept", "latest.pt": "weights"}
    assert files_in(near / "files") == small
    assert (near / "files/latest.pt").is_symlink()
    assert files_in(near / "outputs") == {"model": "mine"}
    assert "`outside` is a link to `/etc/passwd`" in result.err
    fetch = f"holdfast history download {run_id} large.bin -d DIR"
    assert fetch in result.err
    assert fetch in bench.run("history", "info", "-r", run_id, "-o", "table").out
    kept = bench.run("experiment", "clean", "--all")
    assert "large.bin (5.0 kB)" in kept.err
    large = tmp_path / "got"
    assert bench.run("history", "download", run_id, "large.bin", "-d", str(large)).code == 0
    assert files_in(large) == {"large.bin": "x" * 5000}
    assert (large / "large.bin").stat().st_nlink == 1, "what a person does to it is not done to the run's own"
    assert bench.run("experiment", "clean", "--all", "--discard-outputs").code == 0
    assert not list(bench.home.glob(f"runs/*/{run_id}"))
    gone = bench.run("history", "download", run_id, "large.bin", "-d", str(large), "--overwrite")
    assert gone.code != 0
    assert "large.bin" in gone.err
    assert files_in(large) == {"large.bin": "x" * 5000}


def test_files_go_back_to_where_a_run_by_hand_would_have_put_them(bench):
    bench.write("kept.txt", "kept")
    bench.write("train.py", TRAINING)
    assert bench.submit("train.py").code == 0
    before = bench.run("history", "download", "last", ".", "-d", ".")
    assert before.code != 0
    assert "kept.txt" in before.err
    assert (bench.root / "kept.txt").read_text() == "kept"
    assert not (bench.root / "checkpoints").exists()
    assert bench.run("history", "download", "last", "checkpoints", "outputs/", "-d", ".").code == 0
    assert (bench.root / "checkpoints/a.pt").read_text() == "weights"
    assert (bench.root / "outputs/model").read_text() == "mine"
    assert bench.run("history", "download", "last", ".", "-d", ".", "--overwrite").code == 0
    assert (bench.root / "kept.txt").read_text() == "Kept"


def test_only_the_wanted_outputs_come_home_by_themselves(bench, tmp_path):
    bench.write("kept.txt", "kept")
    bench.write("train.py", TRAINING)
    bench.write("aml_config/few.runconfig", "Target: local\nFramework: Python\nOutputs:\n  - checkpoints/\n")
    assert bench.submit("-c", "few", "train.py").code == 0
    near = bench.near(bench.record()["run_id"])
    assert files_in(near / "files") == {"checkpoints/a.pt": "weights"}
    assert bench.submit("-c", "few", "--outputs", "*.bin", "--outputs", "kept.txt", "train.py").code == 0
    run_id = bench.record()["run_id"]
    assert {*files_in(bench.near(run_id) / "files")} == {"kept.txt", "large.bin"}
    assert {*files_in(bench.near(run_id) / "outputs")} == {"model"}
    assert bench.run("history", "download", run_id, ".", "-d", str(tmp_path / "all")).code == 0
    assert {"checkpoints/a.pt", "kept.txt", "large.bin", "outputs/model"} <= {*files_in(tmp_path / "all")}


def test_hostile_file_names_travel_both_ways(bench):
    names = b"a b|-rf|new\nline|tab\t|quote'\"`$(id)|\xff\xfe|\xc3\xa4\xe2\x80\xae|*|\\|#".split(b"|")
    for name in names:
        (bench.root / os.fsdecode(name)).write_bytes(name)
    bench.write(
        "t.py",
        """
        import os
        for name in os.listdir(b"."):
            if os.path.isfile(name) and name != b"t.py":
                assert open(name, "rb").read() == name, name
                open(b"outputs/" + name, "wb").write(name[::-1])
        """,
    )
    assert bench.submit("t.py").code == 0
    outputs = bench.near(bench.record()["run_id"]) / "outputs"
    came = {os.fsencode(each.name): each.read_bytes() for each in outputs.iterdir()}
    assert came == {name: name[::-1] for name in names}


def test_arguments_and_variables_reach_the_script_as_they_are_and_it_has_no_input(bench):
    bench.write(
        "ünïcode.py",
        """
        import os, sys, json
        share = os.environ["AZUREML_NATIVE_SHARE_DIRECTORY"]
        open(share + "note.txt", "a").write("x")
        print(json.dumps({
            "words": sys.argv,
            "variables": [os.environ[name] for name in ("NUMBER", "COLOUR", "LINES_OF", "EMPTY", "LETTERS")],
            "input": sys.stdin.read(),
            "same": os.environ["AZUREML_RUN_ID"] == os.environ["HOLDFAST_RUN_ID"],
            "share": share.endswith("/") and os.path.isdir(share),
            "length": len(open(share + "note.txt").read()),
            "unbuffered": os.environ["PYTHONUNBUFFERED"],
        }))
        """,
    )
    bench.write(
        "aml_config/mine.runconfig",
        r"""
        Target: local
        Framework: Python
        EnvironmentVariables:
          NUMBER: 007
          COLOUR: green and 'blue' "$HOME" {home} `id`
          LINES_OF: "a\nb\\"
          EMPTY: ""
          LETTERS: é ☃
        """,
    )
    words = ["--epochs", "10", "-c", "x y", "$HOME", "'q\"", "--", "{home}", "\n", "ä", "--help"]
    first = bench.run("submit", "-c", "mine", "ünïcode.py", *words)
    assert first.code == 0, first.err
    assert json.loads(first.out) == {
        "words": ["ünïcode.py", *words],
        "variables": ["007", "green and 'blue' \"$HOME\" {home} `id`", "a\nb\\", "", "é ☃"],
        "input": "",
        "same": True,
        "share": True,
        "length": 1,
        "unbuffered": "1",
    }
    assert bench.record()["arguments"] == words
    second = json.loads(bench.run("submit", "-c", "mine", "ünïcode.py").out)
    assert second["length"] == 2, "the shared folder survives runs"


def test_a_secret_is_in_the_script_alone_redacted_and_never_written(bench, target):
    run_id = bench.begin(
        """
        import os, sys, time
        value = os.environ["TOKEN"]
        print("length", len(value))
        print("value", value)
        for letter in value:            # the value in pieces
            sys.stdout.write(letter)
            sys.stdout.flush()
            time.sleep(0.002)
        print("", flush=True)
        while not os.path.exists("go"):
            time.sleep(0.01)
        """,
        "--secret",
        "TOKEN",
        until="***\n***\n",
        env={"TOKEN": SECRET},
    )
    assert [each.argv for each in processes.every() if any(SECRET in word for word in each.argv)] == []
    theirs = processes.of_user(bench.far(run_id).stat().st_uid)
    knowing = {each.argv[-1] for each in theirs if f"TOKEN={SECRET}" in each.environment}
    assert "t.py" in knowing
    if target.startswith("remote"):  # on this machine the owners of the run have the environment of the command
        assert knowing == {"t.py"}
    for name in bench.containers():
        shown = bench.daemon.run("inspect", name).stdout + bench.daemon.run("logs", name).stdout
        assert SECRET not in shown
    (bench.there(run_id) / "go").touch()
    result = bench.run("logs", "-f", "-r", run_id)
    assert (result.code, result.out) == (0, f"length {len(SECRET)}\nvalue ***\n***\n")
    beside = [bench.box.account.home, bench.box.server.log.parent] if target == "remote" else []
    assert holding(SECRET, bench.root, bench.home, *beside) == []
    report = bench.run("experiment", "diagnostics", "-r", "last", "--file", "d.zip", env={"TOKEN": SECRET})
    assert report.code == 0, report.err
    with zipfile.ZipFile(bench.root / "d.zip") as archive:
        assert all(SECRET.encode() not in archive.read(name) for name in archive.namelist())
        assert any(name.endswith("journal.jsonl") for name in archive.namelist())


def test_an_async_submit_returns_while_the_script_runs_and_logs_follow_it_later(bench):
    run_id = bench.begin(WAITING, until="first\n")
    follower = bench.popen("logs", "-f", "-r", run_id)
    assert follower.stdout.readline() == b"first\n"
    (bench.there(run_id) / "go").touch()
    assert follower.communicate(timeout=60)[0] == b"second\n"
    assert follower.returncode == 0
    assert (bench.near(run_id) / "outputs/result").read_text() == "whole"


def test_a_run_goes_on_from_what_an_earlier_one_wrote(bench):
    bench.write(
        "train.py",
        """
        import os, sys
        before = int(open("ckpt/last").read()) if "--resume" in sys.argv else 0
        os.makedirs("ckpt", exist_ok=True)
        open("ckpt/last", "w").write(str(before + 1))
        open("outputs/%d" % before, "w").write("x")
        print(before, sorted(os.listdir("outputs")), os.environ.get("HOLDFAST_FROM"))
        """,
    )
    first = bench.submit("train.py")
    assert (first.code, first.out) == (0, "0 ['0'] None\n")
    run_id = bench.record()["run_id"]
    again = bench.submit("--from", "last", "train.py", "--resume")
    assert (again.code, again.out) == (0, f"1 ['0', '1'] {run_id}\n")
    record = bench.record()
    assert (record["from"], record["attachments"]) == (run_id, ["outputs/1", "ckpt/last"]), "what it wrote itself"
    assert (bench.there(run_id) / "ckpt/last").read_text() == "1", "the earlier run's file is what it was"
    part = bench.submit("--from", f"{run_id}:ckpt/last", "train.py", "--resume")
    assert part.out == f"1 ['1'] {run_id}\n"


def test_data_beside_the_project_is_found_at_its_place_and_sent_once(bench, target):
    folder = bench.root.parent / "datasets" / "tiny"
    (folder / "part").mkdir(parents=True)
    (folder / "part" / "x").write_text("data")
    (folder / "link").symlink_to("part/x")
    bench.write(
        "t.py",
        """
        import os
        print(open("data/tiny/link").read(), sorted(os.listdir("data/tiny")))
        open("outputs/r", "w").write("r")
        try:
            open("data/tiny/part/x", "r+").write("other")
        except OSError:
            print("read-only")
        """,
    )
    is_here = target == "local"
    said = "data ['link', 'part']\n" + ("" if is_here else "read-only\n")
    first = bench.submit("--data", f"{folder}:data/tiny", "t.py")
    assert (first.code, first.out) == (0, said)
    record = bench.record()
    assert record["attachments"] == ["outputs/r"], "what it was given is not its output"
    assert [(each["target"], each["files"], each["size"]) for each in record["data"]] == [("data/tiny", 2, 4)]
    if is_here:
        assert (folder / "part" / "x").read_text() == "other", "as by hand"
        return
    again = bench.submit("--data", f"{folder}:data/tiny", "t.py")
    assert again.out == said and "Sending" in first.err and "Sending" not in again.err
    assert len(list(bench.far(record["run_id"]).parents[2].glob("data/*/tree"))) == 1
