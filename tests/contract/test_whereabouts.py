"""Which machine a run is on: names that lead to several machines, targets whose files change while a run goes on. A
wrong machine says nothing about a run, and nothing starts twice."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import ElsewhereError, FarSideError, StorageError, Unreachable
from holdfast.farside.run.liveness import is_alive
from holdfast.hosts.connection import Connection
from holdfast.hosts.host import Local
from holdfast.model import Reason, Status
from holdfast.workbench.following.follower import Follower
from holdfast.workbench.following.session import ANOTHER_FOLDER, ANOTHER_MACHINE, session_of
from holdfast.workbench.reach import contacts, events, link, run_hosts
from holdfast.workbench.reach.contacts import silences
from holdfast.workbench.reach.targets import host_of, product_of
from holdfast.workbench.records import import_runs, refresh
from holdfast.workbench.records.cancel import cancel
from holdfast.workbench.records.clean import Rubbish, clean
from holdfast.workbench.submitting import submit
from holdfast.workbench.submitting.submit_request import SubmitRequest
from kit.homes import furnish
from kit.laptops import NOON, Behind, Box, Laptop, ended, removed
from kit.waiting import wait_for


class Unheard:
    """A link whose first start happens, or never arrives; either way it breaks before the answer arrives."""

    def __init__(self, box: Box, arrives: bool = True, breaks: BaseException | None = None) -> None:
        self._box, self._arrives, self._asked = box, arrives, 0
        self._breaks = breaks or Unreachable("The link broke.")

    def __call__(self, connection: Connection) -> Connection:
        send = connection.send

        def unheard(operation: str, fields: Mapping[str, Any] | None = None, body: bytes = b"") -> int:
            self._asked += operation == "start"
            if operation != "start" or self._asked > 1:
                return send(operation, fields, body)
            before = len(runs_on(self._box))
            if self._arrives:
                send(operation, fields, body)
                wait_for(lambda: len(runs_on(self._box)) > before, what="the start of the run")
            raise self._breaks

        connection.send = unheard  # type: ignore[method-assign] # this one connection alone
        return connection


def runs_on(box: Box) -> list[Path]:
    return list(box.folder.glob("runs/*/*_*"))


def submitted(laptop: Laptop, happened: list[events.Event], wait: bool = False) -> None:
    """The events, even those before an error."""
    request = SubmitRequest("train.py", ("gpu1",), None, "gpu1")
    happened.extend(submit.submit(laptop.project, request, laptop.context, wait=wait))


def run_of(happened: list[events.Event]) -> str:
    return next(each.run_id for each in happened if isinstance(each, events.RunCreated))


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "TRIES", (0.01, 0.01, 0.01))


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[tuple[Box, Box]]:
    """Two machines that answer to one name, each with its own folder."""
    made = Box("login", tmp_path / "node1", "node1"), Box("login", tmp_path / "node2", "node2")
    for box in made:
        furnish(box.folder, has_uv=False)
    yield made
    for box in made:
        box.open_gate()


@pytest.mark.parametrize("is_known", [False, True], ids=["never met", "met before"])
def test_a_run_does_not_start_again_on_another_machine_behind_the_same_name(laptop, boxes, nodes, is_known):
    first, second = nodes
    boxes["gpu1"] = first
    before = [laptop.start("gpu1")] if is_known else []
    first.link = second.link = Unheard(first)
    boxes["gpu1"] = Behind("login", first, second)
    happened: list[events.Event] = []
    with pytest.raises(ElsewhereError, match=r"Another machine than the one .* was sent to answers at login") as caught:
        submitted(laptop, happened, wait=True)
    run = run_of(happened)
    assert runs_on(second) == []
    assert f"holdfast status -r {run}" in caught.value.hint
    assert not laptop.read(run).status.is_final
    boxes["gpu1"] = first
    first.open_gate()
    laptop.look_until_ended(run, *before)
    assert laptop.read(run).status is Status.COMPLETED


def test_a_name_that_leads_to_another_machine_than_the_last_time_gets_a_new_run_all_the_same(laptop, boxes, nodes):
    first, second = nodes
    boxes["gpu1"] = first
    before = laptop.start("gpu1")
    boxes["gpu1"] = second
    happened: list[events.Event] = []
    submitted(laptop, happened)
    assert [len(runs_on(each)) for each in nodes] == [1, 1]
    assert laptop.folders.place(run_of(happened)).machine != laptop.folders.place(before).machine
    second.open_gate()
    wait_for(lambda: laptop.look() and laptop.folders.is_collected(run_of(happened)), what="the end of the new run")


@pytest.mark.parametrize("part", [0, 1], ids=["machine", "folder"])
def test_a_machine_starts_nothing_that_is_meant_for_another_place(boxes, part):
    with boxes["gpu1"].connect() as connection:
        hello = connection.request("hello")
        place = [hello["machine"], hello["folder"]]
        place[part] += "-other"
        with pytest.raises(FarSideError) as caught:
            connection.request("start", {"plan": {}, "place": place})
    assert caught.value.kind == "elsewhere"


def test_where_a_run_may_start_is_written_down_before_it_is_asked_for(laptop, boxes):
    boxes["gpu1"].link = Unheard(boxes["gpu1"], arrives=False, breaks=KeyboardInterrupt())
    for _ in ("never met", "met before"):
        happened: list[events.Event] = []
        with pytest.raises(KeyboardInterrupt):
            submitted(laptop, happened)
        assert laptop.folders.place(run_of(happened)).folder == str(boxes["gpu1"].folder)
        laptop.start("gpu1")
        boxes["gpu1"].link = Unheard(boxes["gpu1"], arrives=False, breaks=KeyboardInterrupt())


def move(laptop: Laptop, boxes: dict[str, Any], how: str) -> Box:
    """Point the target to another folder of the same machine, or to another machine."""
    old = boxes["gpu1"]
    machine = "gpu1" if how == "folder" else "another"
    folder = old.folder.with_name("moved") if how == "folder" else old.folder.parent / "other" / old.folder.name
    folder.mkdir(parents=True)
    boxes["gpu1"] = Box("gpu1", folder, machine)
    return old


MOVES = pytest.mark.parametrize(("how", "reason"), [("folder", ANOTHER_FOLDER), ("machine", ANOTHER_MACHINE)])


@MOVES
@pytest.mark.parametrize("is_looked_at", [False, True], ids=["never looked at", "looked at"])
def test_a_living_run_is_neither_lost_nor_given_up_where_it_never_was(laptop, boxes, how, reason, is_looked_at):
    run = laptop.start("gpu1")
    if is_looked_at:
        laptop.look()
    old = move(laptop, boxes, how)
    before = laptop.read(run)
    (told,) = laptop.look()
    assert (type(told), told.target, told.since, told.reason) == (events.HostSilent, "gpu1", NOON, reason)
    assert "gpu1.compute" in told.remedy
    laptop.time += 60
    assert [each.since for each in laptop.look()] == [NOON]
    assert laptop.read(run) == before
    assert silences(laptop.project, [run], laptop.context)[run].reason == reason
    assert runs_on(boxes["gpu1"]) == []
    boxes["gpu1"] = old
    old.open_gate()
    laptop.look_until_ended(run)
    assert laptop.read(run).status is Status.COMPLETED
    assert silences(laptop.project, [run], laptop.context) == {}
    assert contacts.read(laptop.project, "gpu1").elsewhere == {}


def test_other_runs_of_the_machine_that_answers_are_asked_about_all_the_same(laptop, boxes):
    away = laptop.start("gpu1")
    move(laptop, boxes, "machine")
    here = laptop.start("gpu1")
    boxes["gpu1"].open_gate()
    wait_for(lambda: laptop.look() and laptop.folders.is_collected(here), what="the end of the run")
    assert laptop.read(here).status is Status.COMPLETED
    assert list(silences(laptop.project, [away, here], laptop.context)) == [away]


@MOVES
def test_following_and_canceling_say_that_the_run_is_elsewhere(laptop, boxes, how, reason):
    run = laptop.start("gpu1")
    move(laptop, boxes, how)
    with pytest.raises(ElsewhereError) as caught:
        list(Follower(session_of(laptop.project, run, laptop.context)).follow())
    assert caught.value.reason == reason
    for wait in (True, False):
        with pytest.raises(ElsewhereError):
            list(cancel(laptop.project, run, laptop.context, wait=wait))


def test_outputs_are_not_given_up_where_they_never_were(laptop, boxes, monkeypatch):
    run = laptop.start("gpu1")
    boxes["gpu1"].open_gate()
    with monkeypatch.context() as patch:
        patch.setattr(refresh, "FETCHED_BY_THE_WAY", 5)
        wait_for(lambda: laptop.look() and laptop.read(run).status.is_final, what="the end of the run")
    old = move(laptop, boxes, "machine")
    assert [each.reason for each in laptop.look()] == [ANOTHER_MACHINE]
    assert not laptop.folders.is_collected(run)
    boxes["gpu1"] = old
    laptop.look_until_ended(run)
    assert (laptop.folders.path(run) / "outputs/result").read_text() == "made on gpu1"


def test_a_run_whose_place_is_not_known_is_settled_by_the_machine_that_answers(laptop, boxes):
    run = laptop.start("gpu1")
    laptop.look()
    (laptop.folders.path(run) / "host.json").unlink()
    move(laptop, boxes, "machine")
    laptop.look()
    assert laptop.read(run).ending.reason is Reason.LOST


def test_a_run_whose_files_were_removed_is_lost_where_it_was(laptop, boxes):
    run = laptop.start("gpu1")
    laptop.look()
    boxes["gpu1"].open_gate()
    (far,) = runs_on(boxes["gpu1"])
    wait_for(lambda: not is_alive(str(far)), what="its owners have left the run")
    shutil.rmtree(far)
    laptop.look()
    assert laptop.read(run).ending.reason is Reason.LOST


def test_a_run_on_this_machine_is_not_lost_for_a_client_with_another_home(laptop, monkeypatch, tmp_path):
    monkeypatch.setattr(submit, "product_of", product_of)
    monkeypatch.setattr(run_hosts, "host_of", host_of)
    (laptop.root / "train.py").write_text(
        "import os, time\n"
        "while not os.path.exists(os.environ['HOLDFAST_RUN_DIRECTORY'] + '/go'): time.sleep(0.01)\n"
        "open('outputs/x', 'w').write('y')\n"
    )
    happened = list(submit.submit(laptop.project, SubmitRequest("train.py"), laptop.context, wait=False))
    run = run_of(happened)
    home = laptop.context.home
    object.__setattr__(laptop.context, "home", tmp_path / "another home")
    (told,) = laptop.look()
    assert f"HOLDFAST_HOME={home} holdfast status -r {run}" in told.remedy
    assert not laptop.read(run).status.is_final
    object.__setattr__(laptop.context, "home", home)
    (next(home.glob(f"runs/*/{run}")) / "go").touch()
    laptop.look_until_ended(run)
    assert laptop.read(run).status is Status.COMPLETED


def damage_the_store(laptop: Laptop) -> None:
    for path in (laptop.root / ".holdfast" / "objects").glob("??/*"):
        path.unlink()


def test_an_error_of_a_second_attempt_does_not_undo_what_the_first_one_started(laptop, boxes):
    box = boxes["gpu1"]
    box.link = Unheard(box)
    box.open_gate()
    box.before = lambda: damage_the_store(laptop) if len(box.connections) == 2 else None
    happened: list[events.Event] = []
    submitted(laptop, happened, wait=True)
    assert ended(happened).ending.reason is Reason.COMPLETED
    assert len(runs_on(box)) == 1


def test_an_error_of_a_second_attempt_is_written_down_by_the_host_where_nothing_was_started(laptop, boxes):
    box = boxes["gpu1"]
    box.link = Unheard(box, arrives=False)
    box.before = lambda: damage_the_store(laptop) if len(box.connections) == 2 else None
    happened: list[events.Event] = []
    with pytest.raises(StorageError):
        submitted(laptop, happened, wait=True)
    run = run_of(happened)
    assert laptop.read(run).ending.reason is Reason.NOT_STARTED
    (far,) = runs_on(box)
    assert (far / "journal.jsonl").read_bytes() == (laptop.folders.path(run) / "journal.jsonl").read_bytes()
    assert json.loads((far / "plan.json").read_text())["given_up"] is True


def test_an_error_of_a_second_attempt_leaves_the_run_open_where_the_host_cannot_be_asked(laptop, boxes, monkeypatch):
    box = boxes["gpu1"]
    box.link = Unheard(box)
    box.before = lambda: damage_the_store(laptop) if len(box.connections) == 2 else None
    request = Connection.request

    def refuse(self: Connection, operation: str, *rest: Any) -> Any:
        if operation == "give-up":
            raise FarSideError("storage", "The disk is full.")
        return request(self, operation, *rest)

    happened: list[events.Event] = []
    with monkeypatch.context() as patch, pytest.raises(StorageError) as caught:
        patch.setattr(Connection, "request", refuse)
        submitted(laptop, happened, wait=True)
    run = run_of(happened)
    assert f"holdfast status -r {run}" in caught.value.hint
    assert not laptop.read(run).status.is_final
    box.open_gate()
    laptop.look_until_ended(run)
    assert laptop.read(run).status is Status.COMPLETED


@pytest.mark.parametrize("arrives", [False, True], ids=["before it was sent", "after it was sent"])
def test_a_look_settles_a_submission_that_was_interrupted(laptop, boxes, arrives):
    box = boxes["gpu1"]
    box.link = Unheard(box, arrives, KeyboardInterrupt())
    box.open_gate()
    happened: list[events.Event] = []
    with pytest.raises(KeyboardInterrupt):
        submitted(laptop, happened)
    laptop.look_until_ended(run_of(happened))
    reason = laptop.read(run_of(happened)).ending.reason
    assert reason is (Reason.COMPLETED if arrives else Reason.NOT_STARTED)


def test_an_imported_run_is_removed_only_by_its_name(laptop, new_laptop, boxes):
    run = laptop.start("gpu1")
    boxes["gpu1"].open_gate()
    second = new_laptop("second")
    list(import_runs.import_run(second.project, run, "gpu1", second.context))
    second.look_until_ended(run)
    (kept,) = removed(clean(second.project, Rubbish(), second.context))
    assert kept.name == "1 imported run"
    assert "-r RUN" in kept.kept
    assert len(runs_on(boxes["gpu1"])) == 1
    laptop.look_until_ended(run)
    assert laptop.read(run).status is Status.COMPLETED
    gone = removed(clean(second.project, Rubbish((run,)), second.context))
    assert [(each.name, each.kept) for each in gone] == [(run, "")]
    assert runs_on(boxes["gpu1"]) == []


def test_an_imported_run_is_not_lost_on_another_machine(laptop, new_laptop, boxes):
    run = laptop.start("gpu1")
    second = new_laptop("second")
    list(import_runs.import_run(second.project, run, "gpu1", second.context))
    move(second, boxes, "machine")
    assert [each.reason for each in second.look()] == [ANOTHER_MACHINE]
    assert not second.read(run).status.is_final


def test_this_machine_has_one_identity_whatever_folder_is_used(tmp_path):
    said = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        with Local(tmp_path / name, {"PATH": "/usr/bin:/bin"}).connect() as connection:
            said.append(connection.request("hello"))
    assert said[0]["machine"] == said[1]["machine"] != ""
    assert [each["folder"] for each in said] == [str(tmp_path / "one"), str(tmp_path / "two")]
