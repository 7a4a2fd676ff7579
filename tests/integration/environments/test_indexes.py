"""Package indexes: out of reach, behind a password, named by the host's own settings. Passwords stay in memory."""

from __future__ import annotations

import base64
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.environments.conftest import Managed
from integration.remote.benches import FarBench, far_bench  # noqa: F401 - a fixture
from integration.remote.conftest import box, boxes, client, kit_folder  # noqa: F401 - fixtures
from kit import processes
from kit.files import contents
from kit.package_server import Index, package_index
from kit.wheels import make_wheel

PASSWORD = "Wunder%21bar-7Qx"
"""Has a character that an address must escape."""
LOGIN = f"trainer:{PASSWORD}"
SHOW = "import private_thing\nprint(private_thing.__version__)\n"


class Watch:
    """Reads the arguments of all processes at each request to the index, while the installer works."""

    def __init__(self) -> None:
        self.looks = 0
        self.found: list[list[str]] = []

    def look(self) -> None:
        self.looks += 1
        for process in processes.every():
            if any(word in argument for argument in process.argv for word in _spellings()):
                self.found.append(process.argv)


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def private(tmp_path: Path, watch: Watch) -> Iterator[Index]:
    """An index that has one package and asks for a password."""
    make_wheel(tmp_path / "wheels", "private-thing", "1.2")
    with package_index(tmp_path / "wheels", LOGIN.replace("%21", "!"), watch.look) as index:
        yield index


def test_an_index_that_does_not_answer_is_an_error_with_a_remedy(managed: Managed, closed_port: int) -> None:
    address = f"http://127.0.0.1:{closed_port}/simple"
    managed.wants("six==1.16.0")
    managed.write("t.py", "print(1)\n")

    result = managed.submit("t.py", env={"PIP_INDEX_URL": address, "UV_HTTP_RETRIES": "0"})

    assert (result.code, result.out) == (250, "")
    assert address in result.err
    assert "--ship-packages" in result.err
    assert "aml_config/conda_dependencies.yml:3" in result.err, "the line that asked"
    assert managed.record()["reason"] == "preparation"
    assert not managed.built()


def test_a_password_in_an_address_of_the_spec_opens_the_index_and_is_written_nowhere(
    managed: Managed, private: Index, watch: Watch, assert_unknown: Callable[[], None]
) -> None:
    managed.wants(f"--extra-index-url {private.url(LOGIN)}", "private-thing", "six==1.16.0")
    managed.write("t.py", SHOW)
    managed.write(".amlignore", "aml_config\n")  # what the user writes into the file is the snapshot's, too

    result = managed.submit("t.py")

    assert (result.code, result.out) == (0, "1.2\n"), result.err
    assert "/files/private_thing-1.2-py3-none-any.whl" in private.seen
    assert_unknown()
    assert watch.looks > 1
    assert watch.found == []
    assert PASSWORD not in result.err + managed.run("logs", "--control").out
    assert managed.submit("t.py").out == "1.2\n"
    assert not managed.environment()["built"]


def test_nor_is_it_written_or_shown_on_a_machine_over_ssh(
    far_bench: Callable[..., FarBench],  # noqa: F811
    private: Index,
    watch: Watch,
) -> None:
    bench = far_bench()
    bench.attach(bench.box, "userManagedEnvironment: false\n")
    spec = f"dependencies:\n  - pip:\n      - --extra-index-url {private.url(LOGIN)}\n      - private-thing\n"
    bench.write("aml_config/conda_dependencies.yml", spec)
    bench.write("t.py", SHOW)
    bench.write(".amlignore", "aml_config\n")

    result = bench.submit("t.py", timeout=180)

    assert (result.code, result.out) == (0, "1.2\n"), result.err
    _assert_unknown(bench.home, bench.root / ".holdfast")
    assert watch.looks > 1
    assert watch.found == []


def test_a_wrong_password_is_said_without_saying_it(
    managed: Managed, private: Index, assert_unknown: Callable[[], None]
) -> None:
    managed.wants(f"--index-url {private.url('trainer:' + PASSWORD + 'X')}", "private-thing")
    managed.write("t.py", SHOW)
    managed.write(".amlignore", "aml_config\n")

    result = managed.submit("t.py")

    assert result.code == 250
    assert private.refused
    assert PASSWORD not in result.err
    assert "private-thing" in result.err
    assert_unknown()


def test_a_variable_in_an_address_is_filled_in_where_the_packages_are_installed(
    managed: Managed, private: Index, watch: Watch, assert_unknown: Callable[[], None]
) -> None:
    managed.wants(f"--extra-index-url {private.url('trainer:${TOKEN}')}", "private-thing")
    managed.write("t.py", SHOW + "import os\nprint(os.environ.get('TOKEN'))\n")

    result = managed.submit("t.py", env={"TOKEN": PASSWORD})

    assert (result.code, result.out.splitlines()[0]) == (0, "1.2"), result.err
    assert PASSWORD not in result.out
    assert_unknown()
    assert watch.found == []


def test_a_variable_without_a_value_is_named(managed: Managed, private: Index) -> None:
    managed.wants(f"--extra-index-url {private.url('trainer:${HF_TEST_TOKEN}')}", "private-thing")
    managed.write("t.py", SHOW)

    result = managed.submit("t.py")

    assert result.code != 0
    assert "HF_TEST_TOKEN" in result.err


def test_pips_own_settings_of_the_host_are_honoured(
    managed: Managed, private: Index, watch: Watch, assert_unknown: Callable[[], None]
) -> None:
    settings = Path(os.environ["XDG_CONFIG_HOME"]) / "pip" / "pip.conf"
    settings.parent.mkdir(parents=True)
    settings.write_text(f"[global]\nindex-url = {private.url(LOGIN)}\n")
    managed.wants("private-thing")
    managed.write("t.py", SHOW)

    result = managed.submit("t.py")

    assert (result.code, result.out) == (0, "1.2\n"), result.err
    assert_unknown()
    assert watch.found == []


@pytest.fixture
def assert_unknown(managed: Managed) -> Callable[[], None]:
    """No file of the host's folder, and none of the project's own records, has the password in any spelling."""

    return lambda: _assert_unknown(managed.home, managed.root / ".holdfast")


def _assert_unknown(*folders: Path) -> None:
    words = [word.encode() for word in _spellings()]
    looked = 0
    for path, content in contents(*folders):
        assert not [word for word in words if word in content], path
        looked += 1
    assert looked > 20


def _spellings() -> list[str]:
    plain = PASSWORD.replace("%21", "!")
    coded = [base64.b64encode(f"trainer:{each}".encode()).decode().rstrip("=")[:-1] for each in (plain, PASSWORD)]
    return [PASSWORD, plain, *coded]


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port without a listener, now and later."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield int(taken.getsockname()[1])
