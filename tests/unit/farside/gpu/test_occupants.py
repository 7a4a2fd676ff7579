"""Who is on a GPU, as far as other users may know."""

import os
import subprocess

import pytest

from holdfast.farside.gpu.occupants import Occupant, occupant, shown
from kit.waiting import wait_for


@pytest.mark.parametrize(
    ("words", "seen"),
    [
        ("python train.py --password=hunter2 data", "python train.py"),
        ("/usr/bin/python3.11 -uB /data/secret/train.py --epochs 3", "python3.11 train.py"),
        ("python -m torch.distributed.run --nproc_per_node 2 train.py", "python torch.distributed.run"),
        ("python -um pkg hunter2", "python"),
        ("python -c connect('hunter2')", "python"),
        ("python -W hunter2 train.py", "python"),
        ("python PASSWORD=hunter2 train.py", "python"),
        ("python", "python"),
        ("bash -c hunter2", "bash"),
        ("bash run.sh hunter2", "bash run.sh"),
        ("./train --password hunter2", "train"),
        ("mysql hunter2", "mysql"),
        ("", ""),
    ],
)
def test_a_command_is_its_program_and_its_script(words, seen):
    assert shown(words.split(" "), "comm") == seen


def test_a_process_that_writes_its_own_line_is_known_by_its_name():
    assert shown(["python /data/train.py --password=a/hunter2"], "python train.py") == "python"
    assert shown(["a b"], "") == ""


def test_a_command_is_short_and_has_nothing_that_a_terminal_would_obey(tmp_path):
    script = tmp_path / ("\x1b[2J" + "x" * 200)
    script.write_text("read line\n")
    with subprocess.Popen(["sh", str(script)], stdin=subprocess.PIPE) as process:
        wait_for(lambda: " " in occupant(process.pid).command)
        who = occupant(process.pid)
        process.communicate(b"\n")
    assert who.command.startswith("sh ?[2Jxxx")
    assert len(who.command) == 60 and who.command.endswith("…")
    assert who.uid == os.getuid()


def test_an_occupant_is_named_as_far_as_it_is_seen():
    assert Occupant(7, 5, "alice", "python", "python train.py").text == "process 7 (alice, python train.py)"
    assert Occupant(7, 5, "alice", "kworker", "").text == "process 7 (alice, kworker)"
    assert Occupant(7, None, "", "", "").text == "process 7 (which cannot be seen from here)"
