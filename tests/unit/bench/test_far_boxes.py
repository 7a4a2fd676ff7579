"""Machines over SSH in the benchmarks, as far as that needs no server: places, kept connections, tables."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import changing_scripts
import far_boxes
import pytest
from children import Place, make_place
from far_boxes import FarBox, disconnect, kept_connections, reaching
from measuring import FailedError, Figures
from peers import Tool
from report import table_text
from results import Verdict, verdict
from rows import many_boxes, outputs_home


def _far(name: str) -> FarBox:
    compute = "type: remote\naddress: 127.0.0.1:1111\nusername: me\n"
    client = SimpleNamespace(ssh=["ssh", "-F", "a config"])
    environment = {"HOLDFAST_SSH": "ssh -F 'a config'"}
    box: Any = SimpleNamespace(
        name=name, compute=compute, address="127.0.0.1:1111", client=client, environment=environment
    )
    return FarBox(box, 2222)


def test_a_project_gets_a_target_for_each_box_at_the_port_that_is_meant(tmp_path):
    place = reaching(make_place(tmp_path, "one", Tool("tool", tmp_path)), [_far("gpu1"), _far("gpu2")])
    folder = place.project / "aml_config"
    assert (folder / "gpu2.compute").read_text() == "type: remote\naddress: 127.0.0.1:2222\nusername: me\n"
    assert (folder / "gpu1.runconfig").read_text().startswith("Target: gpu1\n")
    assert place.environment()["HOLDFAST_SSH"] == "ssh -F 'a config'"


def test_only_sockets_of_masters_are_kept_connections():
    with tempfile.TemporaryDirectory() as short:  # the path of a socket has 107 bytes at most
        _look_for_masters(make_place(Path(short), "one", Tool("tool", Path(short))))


def _look_for_masters(place: Place) -> None:
    folder = place.root / "tmp" / "holdfast-0"
    folder.mkdir()
    (folder / ("a" * 16)).write_text("a file")
    with socket.socket(socket.AF_UNIX) as question, socket.socket(socket.AF_UNIX) as master:
        question.bind(str(folder / "ask-1"))
        assert kept_connections(place) == []
        disconnect(place)  # nothing to end
        master.bind(str(folder / "0123456789abcdef"))
        assert kept_connections(place) == [folder / "0123456789abcdef"]


def test_without_root_or_programs_a_row_says_why_it_was_not_measured(monkeypatch):
    monkeypatch.setattr(far_boxes.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(far_boxes.shutil, "which", lambda name, path: "/there")
    with pytest.raises(FailedError, match="only be made by root"), far_boxes.far_boxes():
        pass
    monkeypatch.setattr(far_boxes.shutil, "which", lambda name, path: None if name == "rsync" else "/there")
    with pytest.raises(FailedError, match="not installed: rsync"), far_boxes.far_boxes():
        pass


def test_a_second_connection_to_one_machine_misses_the_bar():
    right, wrong = many_boxes._counted([1, 1, 1]), many_boxes._counted([1, 2, 1])
    assert verdict(right, right.ours) is Verdict.MET
    assert verdict(wrong, wrong.ours) is Verdict.MISSED
    assert "| the machine with the fewest | 1 |" in table_text(wrong)


def test_by_hand_every_round_sends_a_script_of_another_size(tmp_path):
    place = make_place(tmp_path, "one", Tool("tool", tmp_path))
    contender = changing_scripts.contender("by hand", place, ["sh", "-c", "cut -d'\"' -f2 s.py"])
    sizes = []
    for _ in range(3):
        contender.measure()
        sizes.append((place.project / "s.py").stat().st_size)
    assert len(set(sizes)) == 3


def test_the_transfer_alone_is_what_a_single_byte_leaves():
    names = (outputs_home._OURS, outputs_home._SCP, outputs_home._OURS_SMALL, outputs_home._SCP_SMALL)
    figures = {name: Figures((value,)) for name, value in zip(names, (0.8, 0.6, 0.4, 0.2), strict=True)}
    assert "400 against 400 ms, 1.00 times" in outputs_home._transfer_alone(figures)
    assert outputs_home._transfer_alone({**figures, names[0]: Figures((), "failed")}) == ""


def test_files_that_arrived_damaged_are_no_measurement(tmp_path):
    there, here = tmp_path / "there", tmp_path / "here"
    for folder in (there, here):
        folder.mkdir()
        (folder / "a").write_bytes(b"same")
    outputs_home._require_same(there, here)
    (here / "a").write_bytes(b"some")
    with pytest.raises(FailedError, match="not what was there"):
        outputs_home._require_same(there, here)
