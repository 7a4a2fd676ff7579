"""What a container adds to a run: its image, account, folders, limits and environments."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from integration.docker.benches import KINDS, ContainerBench, container_bench, kind  # noqa: F401 - fixtures
from kit.docker.images import ENTRYPOINT, PLAIN, PYTHON, USER
from kit.package_server import package_index
from kit.waiting import wait_for
from kit.wheels import make_wheel

MANAGED = "userManagedEnvironment: false"
ORIGINAL = Path(__file__).parents[2] / "cases" / "project-files" / "original-workbench" / "aml_config"


@pytest.fixture
def bench(container_bench: ContainerBench) -> ContainerBench:  # noqa: F811
    return container_bench


def test_the_record_has_the_image_by_name_and_id_and_the_python_of_the_image(bench: ContainerBench) -> None:
    bench.write("t.py", "import sys\nprint('%d.%d.%d' % sys.version_info[:3])\n")
    done = bench.submit("t.py")
    assert done.code == 0, done.err
    record = bench.record()
    assert (record["image"], record["image_id"]) == (PYTHON, bench.daemon.inspect(PYTHON)["Id"])
    assert record["container"] == bench.container(record["run_id"])
    assert record["python"] == done.out.strip()
    page = bench.run("history", "info", "-r", "last", "-o", "table").out
    assert PYTHON in page and record["image_id"] in page


@pytest.mark.parametrize("kind", KINDS)
def test_files_are_the_users_and_the_account_exists_inside(bench: ContainerBench, kind: str) -> None:  # noqa: F811 - it says on which
    bench.write(
        "t.py",
        """
        import getpass, os, pwd
        home = os.path.expanduser("~")
        open(os.path.join(home, ".written"), "w").close()
        open("outputs/x", "w").close()
        os.makedirs("left/behind")
        print(os.getuid(), os.getgid(), os.getppid(), getpass.getuser() == os.environ["USER"] == os.environ["LOGNAME"])
        print(pwd.getpwuid(os.getuid()).pw_dir == home)
        """,
    )
    done = bench.submit("t.py")
    assert done.out == f"{bench.uid} {bench.gid} 1 True\nTrue\n", done.err
    bench.until_left(bench.ids()[0])
    far = bench.far(bench.ids()[0])
    for path in (far, *far.rglob("*")):
        assert (path.lstat().st_uid, path.lstat().st_gid) == (bench.uid, bench.gid), path


@pytest.mark.parametrize("image", [ENTRYPOINT, USER])
def test_entry_points_and_users_of_images_are_passed_over(bench: ContainerBench, image: str) -> None:
    bench.target(image=image)
    bench.write("t.py", "import os\nopen('outputs/x', 'w').close()\nprint(os.getuid())\n")
    done = bench.submit("t.py")
    assert (done.code, done.out) == (0, f"{bench.uid}\n"), done.err


def test_what_runs_share_is_found_where_old_scripts_look_for_it(bench: ContainerBench) -> None:
    bench.write(
        "t.py",
        "import os\npath = os.environ['AZUREML_NATIVE_SHARE_DIRECTORY'] + 'count'\n"
        "open(path, 'a').write('.')\nprint(path, len(open('/azureml-share/count').read()))\n",
    )
    assert [bench.submit("t.py").out for _ in range(2)] == [f"/azureml-share/count {n}\n" for n in (1, 2)]
    base = bench.home.parent / "native share, old"
    bench.target(f'nativeSharedDirectory: "{base}"')
    assert bench.submit("t.py").out == "/azureml-share/count 1\n"
    assert [path.stat().st_uid for path in base.glob("*/count")] == [bench.uid]


def test_volumes_are_read_only_unless_they_say_otherwise(bench: ContainerBench) -> None:
    data = bench.home.parent / 'data, "and" more'
    data.mkdir()
    (data / "set").write_text("rows")
    data.chmod(0o777)
    bench.target("volumes:", f"  - '{data}:/data'", f"  - '{data}:/mine:rw'")
    bench.write(
        "t.py",
        """
        print(open("/data/set").read())
        open("/mine/new", "w").write("x")
        try:
            open("/data/other", "w")
        except OSError as error:
            print(error.strerror)
        """,
    )
    assert bench.submit("t.py").out == "rows\nRead-only file system\n"
    assert (data / "new").stat().st_uid == bench.uid


def test_a_volume_that_is_not_there_is_an_error_with_file_and_key(bench: ContainerBench) -> None:
    missing = bench.home.parent / "missing"
    bench.target("volumes:", f"  - {missing}:/data")
    bench.write("t.py", "print('ran')\n")
    done = bench.submit("t.py")
    assert done.code != 0 and done.out == ""
    assert str(missing) in done.err and "volumes" in done.err and "aml_config/box.compute" in done.err
    assert not missing.exists()
    wait_for(lambda: bench.containers() == [])


def test_limits_and_arguments_reach_the_container(bench: ContainerBench) -> None:
    bench.target("memory: 64m", "cpus: 0.5", "shmSize: 8m", "network: none", "dockerArguments: --hostname 'sea'")
    bench.write(
        "t.py",
        """
        import os
        print(os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize >> 20, os.uname().nodename)
        print(sorted(os.listdir("/sys/class/net")))
        """,
    )
    done = bench.submit("t.py")
    assert done.out == "8 sea\n['lo']\n", done.err


def test_a_mistake_in_the_file_is_told_before_anything_is_started(bench: ContainerBench) -> None:
    bench.target("dockerArguments:", "  - --rm", "  - -it", "baseImage: x")
    bench.write("t.py", "")
    done = bench.submit("t.py")
    assert done.code == 241 and bench.ids() == []
    for word in ("`--rm` cannot be used", "`--tty` cannot be used", "Write `baseDockerImage`"):
        assert word in done.err


def test_a_dry_run_shows_the_container_and_starts_nothing(bench: ContainerBench) -> None:
    bench.write("t.py", "")
    done = bench.submit("--dry-run", "-o", "table", "t.py")
    assert done.code == 0, done.err
    assert f"container    {PYTHON}\n" in done.out
    assert "options: --network host\n" in done.out
    assert bench.ids() == []


def test_an_environment_is_built_once_for_the_image_and_found_again(bench: ContainerBench, tmp_path: Path) -> None:
    bench.target(MANAGED)
    bench.write("t.py", "import demo, sys\nprint(demo.__version__, sys.prefix)\n")
    make_wheel(tmp_path / "wheels", "demo", "1.2")
    with package_index(tmp_path / "wheels") as index:
        bench.write(
            "aml_config/conda_dependencies.yml",
            f"dependencies:\n  - pip:\n    - --index-url {index.url()}\n    - demo\n",
        )
        prepared = bench.run("experiment", "prepare", "-c", "box")
        assert prepared.code == 0, prepared.err
        first = bench.submit("t.py")
    second = bench.submit("t.py")
    assert first.code == second.code == 0, first.err + second.err
    assert first.out == second.out
    version, prefix = first.out.split()
    assert version == "1.2" and Path(prefix).parent == bench.home / "environments"
    record = bench.record()
    assert record["packages"] == ["demo==1.2"] and record["environment_built_in"] is None
    wait_for(lambda: bench.containers() == [])


def test_the_image_of_a_run_is_used_again_though_its_name_has_moved(bench: ContainerBench) -> None:
    name = f"moving/{bench.kind}"
    bench.daemon.run("tag", PYTHON, name)
    bench.target(image=name)
    bench.write("t.py", "import os\nprint(os.path.exists('/usr/bin/python3'))\n")
    assert bench.submit("t.py").code == 0
    (first,) = bench.ids()
    bench.daemon.run("tag", PLAIN, name)
    try:
        again = bench.submit("--environment-of", first, "t.py")
        assert again.code == 0, again.err
        assert bench.record()["image_id"] == bench.daemon.inspect(PYTHON)["Id"]
        compared = bench.run("history", "compare", first, "last", "-o", "json")
        assert not [each for each in json.loads(compared.out)["facts"] if each["name"].startswith("image")]
        moved = bench.submit("t.py")
        assert moved.code != 0, "the name means an image without Python now"
        assert "userManagedEnvironment" in moved.err
    finally:
        bench.daemon.run("rmi", name, check=False)


@pytest.mark.parametrize("kind", ["remotedocker"])
def test_packages_are_sent_for_the_image_and_not_for_the_machine(
    bench: ContainerBench,
    tmp_path: Path,
    kind: str,  # noqa: F811 - it says on which
) -> None:
    bench.target(MANAGED, "network: none")
    bench.write("t.py", "import demo\nprint(demo.__version__)\n")
    make_wheel(tmp_path / "wheels", "demo", "1.2")
    with package_index(tmp_path / "wheels") as index:
        lines = f"dependencies:\n  - pip:\n    - --index-url {index.url()}\n    - demo\n"
        bench.write("aml_config/conda_dependencies.yml", lines)
        done = bench.submit("--ship-packages", "t.py")
    assert (done.code, done.out) == (0, "1.2\n"), done.err
    assert "Downloaded 1 package for linux-" in done.err


def test_a_projects_file_of_packages_is_found(bench: ContainerBench) -> None:
    bench.target(MANAGED)
    bench.write("requirements.txt", "packaging\n")
    bench.write("t.py", "import packaging\nprint('ran')\n")
    done = bench.submit("t.py")
    assert (done.code, done.out) == (0, "ran\n"), done.err
    assert "Packages: requirements.txt (found)" in done.err


@pytest.mark.parametrize("kind", ["docker"])
def test_files_of_the_original_run_unedited(
    bench: ContainerBench,
    kind: str,  # noqa: F811 - it says on which
) -> None:
    for name in ("docker.compute", "docker.runconfig"):
        shutil.copy(ORIGINAL / name, bench.root / "aml_config" / name)
    image = "microsoft/mmlspark:plus-0.9.9"
    bench.daemon.run("tag", PYTHON, image)
    bench.write("t.py", "open('/azureml-share/x', 'w').write('kept')\nprint('ran')\n")
    try:
        done = bench.run("submit", "-c", "docker", "t.py")
    finally:
        bench.daemon.run("rmi", image)
    assert (done.code, done.out) == (0, "ran\n"), done.err
    assert [each.read_text() for each in Path(os.environ["HOME"]).glob(".azureml/share/*/x")] == ["kept"]
    assert bench.record()["image"] == image
