"""Answers of a far side that is none of ours: an error that says so, never a traceback."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import HostError
from holdfast.model import Place
from holdfast.workbench import replies
from holdfast.workbench.machines import attaching, entering, leaving, shells, usability
from holdfast.workbench.records import cleaning, importing

NOTHING: list[Any] = [None, True, 7, "text", [], {}, [None], [[]], {"missing": 1}, {"runs": [["a"]], "more": False}]


@pytest.mark.parametrize("answer", NOTHING)
@pytest.mark.parametrize(
    "parse",
    [
        replies.greeting,
        lambda answer: replies.followed(answer, ("run_1",)),
        replies.was_given_up,
        lambda answer: importing._projects(answer if answer != [] else None),
        importing._page,
        cleaning._swept,
        cleaning._size,
        leaving._inventory,
        leaving._purged,
        shells._there,
        shells._token,
        entering._authorized,
        attaching._why,
        usability._place,
        usability._settled,
        usability._who,
        usability._python,
        usability._logout,
        usability._lives,
    ],
)
def test_an_answer_of_another_shape_is_an_error_of_the_host(parse, answer):
    with pytest.raises(HostError, match="in a way that is not understood"):
        parse(answer)


LOGOUT = {"user": "me", "ends": False, "lingers": None, "unit": False, "said": "", "start": ""}


@pytest.mark.parametrize(
    ("parse", "answer"),
    [
        (leaving._inventory, {"home": "/h", "folders": [["runs", "7"]], "runs": []}),
        (leaving._inventory, {"home": "/h", "folders": [["runs", 7, 8]], "runs": []}),
        (leaving._inventory, {"home": "/h", "folders": [], "runs": [["p", 1]]}),
        (leaving._inventory, {"home": None, "folders": [], "runs": []}),
        (leaving._purged, {"removed": True, "kept": []}),
        (leaving._purged, {"removed": 7, "kept": "notes.txt"}),
        (leaving._purged, {"removed": 7, "kept": [7]}),
        (shells._there, {"executable": "/usr/bin/python3", "entry": "main.py", "home": 7}),
        (shells._there, {"executable": ["/bin/sh", "-c"], "entry": "main.py", "home": "/h"}),
        (shells._token, {"token": 7}),
        (entering._authorized, {"file": "/k", "added": 1, "made": 0, "open_to_others": []}),
        (entering._authorized, {"file": "/k", "added": True, "made": 0, "open_to_others": "/home"}),
        (attaching._why, {"why": None}),
        (usability._place, {"network": "nfs4", "local": 7}),
        (usability._place, {"network": None, "local": None}),
        (usability._settled, {"home": "/h", "tightened": 0o755}),
        (usability._who, {"boot": "b", "host": None}),
        (usability._python, {"python": ["python3"]}),
        (usability._logout, {**LOGOUT, "ends": "no"}),
        (usability._logout, {**LOGOUT, "lingers": "yes"}),
        (usability._logout, {name: value for name, value in LOGOUT.items() if name != "start"}),
        (usability._lives, {"alive": "yes"}),
    ],
)
def test_a_value_of_another_kind_is_an_error_of_the_host(parse, answer):
    with pytest.raises(HostError):
        parse(answer)


def test_a_machine_that_is_looked_at_is_understood():
    assert usability._place({"network": "nfs4", "local": None}) == ("nfs4", None)
    assert usability._python({"python": "", "shell": "/bin/sh"}) is None
    assert usability._logout({**LOGOUT, "later": 1}).lingers is None
    stored = leaving._inventory({"home": "/h", "folders": [["runs", 7]], "runs": [["p", 2, 1]]})
    assert stored == leaving.Inventory("/h", (leaving.Stored("runs", 7),), (leaving.ProjectRuns("p", 2, 1),))
    assert entering._authorized({"file": "/k", "added": True, "made": 2, "open_to_others": ["/home"]}).loose == (
        "/home",
    )


def test_a_run_that_was_not_asked_about_is_not_missing():
    with pytest.raises(HostError):
        replies.followed({"missing": {"run_2": "gone"}}, ("run_1",))


def test_what_our_own_far_side_answers_is_understood():
    said = {"machine": "ab", "folder": "/home/me/.holdfast", "host": "node1", "time": 5}
    assert replies.greeting(said) == replies.Greeting(5.0, Place("ab", "/home/me/.holdfast", "node1"))
    assert replies.followed({"missing": {"run_1": "gone"}, "alive": 10}, ("run_1",)) == (frozenset({"run_1"}), 10.0)
    assert replies.was_given_up({"given_up": False}) is False


def test_what_an_older_far_side_does_not_say_is_not_known():
    assert replies.greeting({"time": 5.0}).place is None
    assert replies.followed({"missing": {}}, ()).pulse is None
