"""What every host promises. A host that shares no disk with the client is this machine with another home."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.containers import Bare
from holdfast.errors import FarSideError, HostError, StorageError
from holdfast.hosts.connection import Connection, new_nonce
from holdfast.hosts.host import Local
from holdfast.model import Reason
from holdfast.plan import EnginePlan
from holdfast.snapshots.store import ObjectStore
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.targets import Product
from holdfast.workbench.submitting import submit as submitting
from holdfast.workbench.submitting.send import Sender
from holdfast.workbench.submitting.submit_request import SubmitRequest
from integration.interpreters import FOUND
from kit.homes import furnish
from kit.laptops import ended
from kit.projects import project_at


class Elsewhere(Local):
    """This machine, without use of the client's disk: files travel through the protocol."""

    name = "elsewhere"
    is_here = False


class Noisy(Elsewhere):
    """A machine whose login shell prints text, colours, binary and a forged marker before Holdfast's output."""

    name = "noisy"

    def connect(self, may_ask: bool = True) -> Connection:
        nonce = new_nonce()
        noise = (
            "import os, sys; os.write(1, b'Welcome!\\n\\x1b[31mred\\x1b[0m\\n' + bytes(range(256)) * 400"
            " + b'\\nHOLDFAST 0000000000000000\\nHFf1'); os.execv(sys.argv[1], sys.argv[1:])"
        )
        return Connection([sys.executable, "-c", noise, *self.argv(nonce)], nonce)


class OtherPython(Elsewhere):
    """A machine with another Python, and the bare locale that a login without a terminal has."""

    name = "other python"
    python = ""

    def connect(self, may_ask: bool = True) -> Connection:
        nonce = new_nonce()
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG"))}
        return Connection([self.python, *self.argv(nonce)[1:]], nonce, {**environment, "LC_ALL": "C"})


HOSTS = {"local": Local, "elsewhere": Elsewhere, "noisy": Noisy} | {
    version: type(version, (OtherPython,), {"python": str(python)}) for version, python in FOUND.items()
}


@pytest.fixture(params=sorted(HOSTS))
def host(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return HOSTS[request.param](furnish(tmp_path / "home"), dict(os.environ))


def test_a_run_on_a_host_gets_its_files_and_sends_everything_home(host, tmp_path, monkeypatch):
    """A whole run: snapshot sent, script run, output, metrics and outputs fetched, cleaned up."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "é \n.txt").write_text("contents")
    (root / os.fsdecode(b"not-utf8-\xff")).write_text("")
    (root / "t.py").write_text(
        "import os, sys\n"
        "open('outputs/big', 'wb').write(b'0123456789' * 300000)\n"
        "open('outputs/\\u00e9', 'w').close()\n"
        "sys.stdout.buffer.write(open(u'\\u00e9 \\n.txt', 'rb').read() + repr(os.environ.get('LC_ALL')).encode())\n"
    )
    context = Context(tmp_path / "home", {**os.environ, "PATH": os.path.dirname(sys.executable)}, root, tmp_path)
    monkeypatch.setattr(submitting, "product_of", lambda *_: Product(host, EnginePlan(), Bare()))
    run = ended(submitting.submit(project_at(root), SubmitRequest("t.py"), context))
    assert run.ending.reason is Reason.COMPLETED, run
    folder = root / ".holdfast" / "runs" / run.run_id
    outside = None if host.name == "this machine" and "LC_ALL" not in os.environ else os.environ.get("LC_ALL")
    expected = "C" if host.name == "other python" else outside
    assert (folder / "driver_log").read_bytes() == b"contents" + repr(expected).encode()
    assert (folder / "outputs/big").read_bytes() == b"0123456789" * 300000
    assert (folder / "outputs/é").exists()
    sent = list((tmp_path / "home" / "objects").glob("??/*"))
    assert bool(sent) == (not host.is_here)
    assert host.is_here or not list(send_again(host, root, run)), "nothing is sent twice"


def send_again(host: Any, root: Path, run: Any) -> Iterator[Any]:
    snapshot = run.submission.snapshot
    with host.connect() as connection:
        sender = Sender(connection, ObjectStore(root / ".holdfast/objects"), snapshot, base=snapshot)
        sender.announce()
        yield from sender.complete()
        sender.confirm()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _lacks(connection: Any, data: bytes) -> bool:
    """Whether the host lacks the content of a snapshot with only this file."""
    rows = [["x", "f", _digest(data), len(data)]]
    manifest = b'{"format":1,"files":' + json.dumps(rows, separators=(",", ":")).encode() + b"}"
    connection.request("put", {"digest": _digest(manifest)}, manifest)
    return connection.request("prepare", {"snapshot": _digest(manifest)})["lacks"] == [[0, 1]]


def test_a_host_answers_with_its_facts(host):
    with host.connect() as connection:
        facts = connection.request("hello")
    assert facts["uid"] == os.getuid()
    assert facts["python"].count(".") == 2
    assert Path(facts["home"]).stat().st_mode & 0o777 == 0o700


def test_only_what_is_missing_is_asked_for_and_a_repeat_stores_nothing_twice(host):
    data = os.urandom(3 << 20)
    digest = _digest(data)
    with host.connect() as connection:
        assert _lacks(connection, data)
        first = {"digest": digest, "offset": 0, "more": True}
        assert connection.request("put", first, data[: 1 << 20]) == {"stored": False}
        assert _lacks(connection, data), "not before it is whole"
        connection.request("put", {"digest": digest, "offset": 1 << 20, "more": False}, data[1 << 20 :])
        assert not _lacks(connection, data)
        assert connection.request("put", {"digest": digest}, data) == {"stored": True}


def test_what_does_not_hash_to_its_name_is_not_stored(host):
    digest = _digest(b"right")
    with host.connect() as connection:
        with pytest.raises(FarSideError) as caught:
            connection.request("put", {"digest": digest}, b"wrong")
        assert caught.value.kind == "damaged"
        assert _lacks(connection, b"right")


def test_requests_can_be_pipelined_and_answered_in_any_order(host):
    with host.connect() as connection:
        empty = bytes.fromhex(_digest(b"")) + bytes(4)
        numbers = [connection.send("pack", {"count": count}, empty * count) for count in range(50)]
        answers = {number: connection.answer(number) for number in reversed(numbers)}
    assert [answers[number] for number in numbers] == [{"stored": count} for count in range(50)]


HOSTILE: list[tuple[str, dict[str, Any]]] = [
    ("put", {"digest": "../../../../tmp/evil"}),
    ("put", {"digest": None}),
    ("prepare", {"snapshot": "../x"}),
    ("start", {"plan": {"project": "../../escaped/deep", "run": "x", "generation": "g", "format": 1}}),
    ("give-up", {"project": "../../escaped/deep", "run": "x", "generation": "g"}),
    ("start", {"plan": {"project": "p", "run": "/etc/x", "generation": "g"}}),
    ("start", {"plan": {"project": "p", "run": "r", "generation": "../g"}}),
    ("start", {}),
    ("follow", {"runs": [{"project": "p", "run": "..", "have": {}}]}),
    ("list", {"project": "p", "run": "r", "roots": ["../../.."]}),
    ("stream", {"project": "p", "run": "r", "files": [["/etc/passwd", 0, ""]]}),
    ("stream", {"project": "p", "run": "../r", "files": []}),
    ("prepare", {"snapshot": "../x"}),
    ("prepare", {"snapshot": "0" * 64, "base": "../x"}),
    ("pack", {"count": -1}),
    ("pack", {"count": 1 << 60}),
    ("link", {"project": "p", "run": "r", "path": "../plan.json", "destination": "/x"}),
    ("remove", {"project": "..", "run": ".."}),
    ("remove", {"environment": "../x"}),
    ("cancel", {"project": "p", "run": "../../x"}),
    ("known-runs", {"project": "../../.."}),
    ("known-runs", {"after": 5}),
    ("records", {"runs": [["..", "x"]]}),
    ("records", {"runs": [["p", "../../x"]]}),
    ("objects", {"project": "p", "run": "r", "digests": ["../x"]}),
    ("objects", {"project": "..", "run": "..", "digests": []}),
    ("nonsense", {}),
]


def test_hostile_requests_are_refused_and_the_connection_goes_on(host, tmp_path):
    with host.connect() as connection:
        for operation, fields in HOSTILE:
            with pytest.raises((FarSideError, StorageError)):
                connection.request(operation, fields)
                pytest.fail(f"obeyed: {operation} {fields}")
            assert connection.request("hello")["uid"] == os.getuid()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["home"]


def test_a_far_side_that_dies_is_an_error_with_its_last_words(host):
    with host.connect() as connection:
        connection.request("hello")
        connection._end.kill()
        with pytest.raises(HostError, match="The far side is gone"):
            connection.request("hello")


def test_a_program_that_is_not_the_far_side_is_an_error_with_what_it_said():
    argv = [sys.executable, "-c", "import sys; print('hello there'); sys.exit('Permission denied (publickey).')"]
    with (
        Connection(argv, new_nonce()) as connection,
        pytest.raises(HostError, match=r"Permission denied \(publickey\)"),
    ):
        connection.request("hello")
