"""How a run's files are streamed to the client."""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.agent import Agent
from holdfast.farside.operations import storage
from holdfast.farside.system import frames, output
from holdfast.farside.system.frames import CHUNK
from holdfast.farside.system.layout import Home
from unit.farside.programs import program

_F_GETPIPE_SZ = 1032


def test_a_pipe_that_leads_home_holds_a_whole_piece_and_what_is_no_pipe_stays_as_it_is(tmp_path):
    read, write = os.pipe()
    with open(read), open(write, "w"), (tmp_path / "file").open("wb") as file:
        output.widen(write)
        assert fcntl.fcntl(write, _F_GETPIPE_SZ) >= CHUNK
        output.widen(file.fileno())
        file.write(b"x")
    assert (tmp_path / "file").read_bytes() == b"x"


@pytest.fixture
def home(home: Home) -> Home:
    """With a run that has one output."""
    program(Path(home.run("p", "r")) / "work" / "outputs" / "big").write_bytes(b"x" * (2 * CHUNK + 5))
    return home


RUN = {"project": "p", "run": "r"}


def _streamed(home: Home, have: bytes) -> tuple[list[tuple[dict[str, Any], bytes]], int]:
    beats: list[None] = []
    file = ("work/outputs/big", len(have), hashlib.sha256(have).hexdigest())
    frames_ = list(storage.stream(home, RUN, [file], lambda: beats.append(None)))
    return frames_, len(beats)


def test_what_is_at_home_is_read_with_a_sign_of_life_for_each_piece(home):
    sent, beats = _streamed(home, b"x" * (2 * CHUNK))
    assert beats == 2
    assert [message["offset"] for message, _ in sent] == [2 * CHUNK, 2 * CHUNK + 5]
    assert json.loads(sent[-1][1])["sha256"] == hashlib.sha256(b"x" * (2 * CHUNK + 5)).hexdigest()


@pytest.mark.parametrize("have", [b"", b"y" * 10, b"x" * (2 * CHUNK + 6)])
def test_a_file_that_does_not_begin_with_what_is_at_home_comes_from_its_beginning(home, have):
    sent, _ = _streamed(home, have)
    assert [message["offset"] for message, _ in sent] == [0, CHUNK, 2 * CHUNK, 2 * CHUNK + 5]


def test_a_program_is_listed_and_ends_as_one(home):
    beats: list[None] = []
    rows, problems = storage.list_files(home, {**RUN, "roots": ["work/outputs"]}, lambda: beats.append(None))
    assert [(row[0], row[5]) for row in rows] == [("work/outputs/big", True)]
    assert (problems, len(beats)) == ([], 1)
    assert json.loads(_streamed(home, b"")[0][-1][1])["executable"] is True


def test_the_agent_gives_a_sign_of_life_if_asked_and_only_after_a_silence(home):
    output = io.BytesIO()
    agent = Agent(home, output)
    agent._beating(RUN)()
    assert output.getvalue() == b"", "not requested"
    beat = agent._beating({**RUN, "alive": 60})
    agent._spoke -= 1e9
    beat()
    beat()
    output.seek(0)
    assert frames.decode(output.read) == ({"push": "alive", "run": "r"}, b"")
    assert output.read() == b"", "it has just spoken"


def test_files_of_the_project_are_listed_from_the_moment_that_the_run_noted_and_none_of_runs_that_noted_none(home):
    folder = Path(home.run("p", "r"))
    (folder / "work" / "own").write_text("new")
    message = {**RUN, "roots": ["work/outputs", "work"]}
    assert [row[0] for row in storage.list_files(home, message, lambda: None)[0]] == ["work/outputs/big"]
    since = (folder / "work" / "own").stat().st_ctime_ns
    lines = [{"t": 1, "e": "ready", "since": since}, {"t": 2, "e": "ready", "since": since + 1}]
    (folder / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    listed = storage.list_files(home, message, lambda: None)[0]
    assert [row[0] for row in listed] == ["work/outputs/big", "work/own"]
    (folder / "journal.jsonl").write_text('{"t":1,"e":"ready","since":"early"}\n')
    assert len(storage.list_files(home, message, lambda: None)[0]) == 1
