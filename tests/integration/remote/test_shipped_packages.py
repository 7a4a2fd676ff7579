"""Packages for a box without internet: chosen and downloaded on the laptop, sent once, installed without a network."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.remote.benches import FarBench, cut_once_there, far_bench, largest, watched  # noqa: F401 - a fixture
from integration.remote.test_environments import environments
from kit.disks import fill, small_disk
from kit.files import holding
from kit.flows import Way
from kit.link import Link
from kit.package_server import Index, package_index
from kit.sshd import Options
from kit.waiting import wait_for
from kit.wheels import make_wheel

pytestmark = pytest.mark.time_limit(300, "downloads packages and sends them")

MakeBench = Callable[..., FarBench]
SCRIPT = """\
import six, markupsafe._speedups, sys
print(six.__version__, markupsafe.__version__, sys.prefix)
"""
CUT_OFF = 'exec unshare --user --map-current-user --net sh -c "$SSH_ORIGINAL_COMMAND"'
"""Every login runs in its own network, without any connection."""


@pytest.fixture
def bench(far_bench: MakeBench, needs: Callable[..., None]) -> FarBench:  # noqa: F811
    """On a box without a network: everything comes through ssh."""
    needs("unshare")
    made = far_bench(options=Options(force_command=CUT_OFF))
    compute = made.root / "aml_config" / "gpu1.compute"
    compute.write_text(compute.read_text() + "userManagedEnvironment: false\n")
    wants(made, "six==1.16.0", "markupsafe==2.1.5")
    made.write("train.py", SCRIPT)
    return made


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """An index that only the laptop reaches; it has `thing` 1.0, of a few megabytes."""
    make_wheel(tmp_path / "wheels", "thing", "1.0", {"thing.py": "text = '" + "x" * (3 << 20) + "'\n"})
    with package_index(tmp_path / "wheels", "me:secret!") as made:
        yield made


def wants(bench: FarBench, *lines: str, pin: str = "") -> None:
    text = "dependencies:\n" + (f"  - python={pin}\n" if pin else "") + "  - pip:\n"
    bench.write("aml_config/conda_dependencies.yml", text + "".join(f'      - "{line}"\n' for line in lines))


def near_home(bench: FarBench) -> Path:
    """Of the laptop."""
    return Path(os.environ.get("HOLDFAST_HOME") or f"{os.environ['HOME']}/.holdfast")


def half_written(bench: FarBench) -> list[Path]:
    return list(near_home(bench).glob("cache/packages/.incoming-*"))


def ship(bench: FarBench, *arguments: str, **options: Any) -> Any:
    return bench.submit("--ship-packages", *arguments, "train.py", **{"timeout": 120, **options})


def test_without_it_the_box_says_that_it_reaches_no_index(bench: FarBench) -> None:
    result = bench.submit("train.py")
    assert result.code == 250
    assert "submit with --ship-packages" in result.err


def test_packages_are_sent_to_a_box_without_internet_and_a_second_submit_sends_nothing(bench: FarBench) -> None:
    first = ship(bench)
    assert first.code == 0, first.err
    assert first.out.split()[:2] == ["1.16.0", "2.1.5"]
    assert first.out.split()[2].startswith(str(bench.home / "environments"))
    assert "Downloaded 2 packages for linux-" in first.err
    assert "Sending packages" in first.err
    assert not list(bench.home.glob("runs/*/*/packages"))
    before = bench.box.link.counters

    second = ship(bench)

    assert second.out == first.out
    assert "packages" not in second.err
    assert [event["built"] for event in environments(bench)] == [True, False]
    sent = bench.box.link.counters.to_server - before.to_server
    assert sent < 60_000, "the words of a submit, and no package"


def test_only_what_is_missing_is_downloaded_and_travels(bench: FarBench) -> None:
    assert ship(bench).code == 0
    wants(bench, "six==1.16.0", "markupsafe==2.1.5", "iniconfig==2.0.0")
    result = ship(bench)
    assert result.code == 0, result.err
    assert "Downloaded 1 package for" in result.err
    assert "Sending packages that are not there yet: 5.9 kB" in result.err
    again = ship(bench, "--rebuild")
    assert again.code == 0, again.err
    assert "Sending packages" not in again.err
    assert [event["built"] for event in environments(bench)] == [True, True, True]


def test_an_environment_that_is_built_there_needs_no_packages_here(bench: FarBench) -> None:
    assert ship(bench).code == 0
    shutil.rmtree(near_home(bench) / "cache")
    for path in bench.home.glob("objects/??/*"):
        path.unlink()
    result = ship(bench, env={"UV_OFFLINE": "1"})
    assert result.code == 0, result.err
    assert not list((near_home(bench) / "cache").glob("package*"))


def test_what_was_chosen_here_is_the_projects_lock(bench: FarBench) -> None:
    wants(bench, "six", "markupsafe")
    assert ship(bench).code == 0
    (path,) = (bench.root / ".holdfast" / "locks").glob("*/*.json")
    lock = json.loads(path.read_text())
    assert path.name.startswith(lock["platform"])
    assert "six==" in lock["requirements"]
    (run,) = bench.near_ids()
    assert json.loads((bench.root / ".holdfast" / "runs" / run / "environment.json").read_text()) == lock


def test_prepare_ships_too(bench: FarBench) -> None:
    result = bench.run("experiment", "prepare", "-c", "gpu1", "--ship-packages")
    assert result.code == 0, result.err
    assert "2 packages" in result.err
    assert bench.submit("train.py").code == 0


def test_the_environment_of_another_run_is_sent_to_a_box_that_does_not_have_it(bench: FarBench) -> None:
    assert ship(bench).code == 0
    (run,) = bench.near_ids()
    shutil.rmtree(bench.home / "cache")
    for mark in bench.home.glob("environments/*/.complete"):
        mark.unlink()
    wants(bench, "six==1.17.0", "markupsafe==2.1.5")
    result = ship(bench, "--environment-of", run)
    assert result.code == 0, result.err
    assert result.out.startswith("1.16.0 ")


def test_wheels_of_the_project_folders_of_wheels_and_addresses_work(bench: FarBench, index: Index) -> None:
    make_wheel(bench.root / "wheels", "own-thing", "2.0")
    make_wheel(bench.root / "links", "beside", "3.0")
    address = f"{index.url('me:secret!').removesuffix('/simple')}/files/thing-1.0-py3-none-any.whl"
    wants(bench, "wheels/own_thing-2.0-py3-none-any.whl", "--find-links links", "beside", address)
    bench.write("train.py", "import own_thing, beside, thing\nprint(own_thing.__version__, beside.__version__)\n")
    bench.write(".amlignore", "aml_config\n")
    result = ship(bench)
    assert (result.code, result.out) == (0, "2.0 3.0\n"), result.err


def test_a_private_index_that_only_the_laptop_reaches_is_used_and_its_password_stays_there(
    bench: FarBench, index: Index
) -> None:
    wants(bench, f"--index-url {index.url('me:secret!')}", "thing")
    bench.write("train.py", "import thing\nprint(len(thing.text))\n")
    bench.write(".amlignore", "aml_config\n")
    result = ship(bench)
    assert (result.code, result.out) == (0, f"{3 << 20}\n"), result.err
    assert "/files/thing-1.0-py3-none-any.whl" in index.seen
    assert holding("secret!", bench.home, bench.root / ".holdfast", near_home(bench) / "cache") == []


def test_a_package_without_a_wheel_for_the_box_is_named_with_a_remedy(bench: FarBench) -> None:
    wants(bench, "six", "docopt==0.6.2")
    result = ship(bench)
    assert result.code == 250
    assert "docopt==0.6.2" in result.err
    assert "aml_config/conda_dependencies.yml:4" in result.err, "the line that asked"
    assert "uv build --wheel" in result.err
    assert bench.near_ids() == [], "nothing was begun"


def test_an_index_that_the_laptop_does_not_reach_is_an_error_before_anything_is_begun(bench: FarBench) -> None:
    wants(bench, "--index-url http://127.0.0.1:9/simple", "six")
    result = ship(bench, env={"UV_HTTP_RETRIES": "0"})
    assert result.code == 250
    assert "http://127.0.0.1:9/simple" in result.err
    assert bench.near_ids() == []


def test_a_python_that_the_box_does_not_have_is_an_error_that_lists_those_it_has(bench: FarBench) -> None:
    wants(bench, "six", pin="3.5")
    result = ship(bench)
    assert result.code == 250
    assert "gpu1 has no Python 3.5" in result.err
    assert "It has: 3." in result.err


def test_conda_packages_are_refused_in_a_sentence(bench: FarBench) -> None:
    bench.write("aml_config/conda_dependencies.yml", "dependencies:\n  - numpy\n")
    result = ship(bench)
    assert result.code == 243
    assert "Packages of conda cannot be sent" in result.err


def test_other_files_than_the_lock_names_are_not_installed(bench: FarBench, index: Index, tmp_path: Path) -> None:
    wants(bench, f"--index-url {index.url('me:secret!')}", "thing")
    bench.write("train.py", "import thing\nprint(len(thing.text))\n")
    bench.write(".amlignore", "aml_config\n")
    assert ship(bench).code == 0
    shutil.rmtree(near_home(bench) / "cache")
    make_wheel(tmp_path / "wheels", "thing", "1.0")
    result = ship(bench, "--rebuild", env={"UV_NO_CACHE": "1"})
    assert result.code == 250
    assert "other files of `thing 1.0` than the lock names" in result.err
    assert "--upgrade" in result.err


def test_a_link_that_breaks_while_packages_travel_is_taken_up(bench: FarBench) -> None:
    assert ship(bench).code == 0
    wants(bench, "numpy")
    bench.write("train.py", "import numpy\nprint(numpy.ones(3).sum())\n")
    before = bench.box.link.counters.to_server
    with cut_once_there(bench.box.link, 8_000_000, Way.TO_SERVER, lambda: largest(bench.incoming) > 6_000_000):
        result = ship(bench)

    assert (result.code, result.out) == (0, "3.0\n"), result.err
    assert "connection lost" in result.err
    size = max(path.stat().st_size for path in near_home(bench).glob("cache/packages/??/*"))
    assert size > 8_000_000
    assert bench.box.link.counters.to_server - before < size + 4_000_000, "what had arrived did not travel again"


def test_a_laptop_that_is_killed_while_it_downloads_goes_on_the_next_time(bench: FarBench, tmp_path: Path) -> None:
    make_wheel(tmp_path / "wheels", "thing", "1.0", {"thing.py": "text = '" + "x" * (4 << 20) + "'\n"})
    with package_index(tmp_path / "wheels") as index, Link(index.port) as slow:
        slow.slow(throttle=1e6)  # four seconds for the file: a busy machine is in time to kill it
        wants(bench, f"--index-url http://127.0.0.1:{slow.port}/simple", "thing")
        bench.write("train.py", "import thing\nprint(len(thing.text))\n")
        with watched(bench.submitting("--ship-packages", "train.py")) as submitting:
            wait_for(lambda: bool(half_written(bench)))
            submitting.send_signal(signal.SIGKILL)
            submitting.wait(60)
        slow.slow()
        (left,) = half_written(bench)
        os.utime(left, (1, 1))

        result = ship(bench)

    assert (result.code, result.out) == (0, f"{4 << 20}\n"), result.err
    assert half_written(bench) == [], "the abandoned part is gone"
    assert len(bench.near_ids()) == 1


def test_a_full_disk_of_the_laptop_is_said_as_that(bench: FarBench) -> None:
    with small_disk(near_home(bench) / "cache", 1):
        filler = fill(near_home(bench) / "cache")
        result = ship(bench)
        assert result.code == 244, result.err
        assert "no room left" in result.err
        filler.unlink()
        assert ship(bench).code == 0
        assert half_written(bench) == []
