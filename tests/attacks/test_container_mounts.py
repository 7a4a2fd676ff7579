"""A script in a container against what the far side opens: it reaches its own folders and nothing else of the run, and
what it puts there is never followed."""

from __future__ import annotations

import io
import json
import os
import stat
import tarfile
from pathlib import Path

import pytest

from integration.docker.benches import ContainerBench
from integration.docker.ending_runs import keeper
from integration.docker.environment_runs import built, wants
from kit.package_server import Index
from kit.waiting import wait_for

OWN = {"work", "metrics", "uploads", "stacks", "inside", "output.fifo"}
LINKS = """
import os
run, victim = os.environ["HOLDFAST_RUN_DIRECTORY"], VICTIM
print(sorted(os.listdir(run)))
names = "journal.jsonl driver_log control_log cancel cancel.new plan.json bound.json owner.json container.json lock"
for name in [*names.split(), "reserve", "environment.json", "gpu.json", "gpu.jsonl", "secrets", "stacks"]:
    path = os.path.join(run, name)
    try:
        if os.path.lexists(path):
            os.unlink(path)
        os.symlink(victim, path)
    except OSError:
        pass
"""


def victim(bench: ContainerBench) -> Path:
    """A file of the account that is no business of the run's, where a link of the same path would lead to it."""
    path = bench.home / "mine.json"
    path.write_text('{"code": 7, "signal": null, "swept": [[1, "private words", "SIGKILL"]], "count": 1}')
    owner = bench.home.stat()
    os.chown(path, owner.st_uid, owner.st_gid)
    return path


@pytest.mark.parametrize("kind", [pytest.param("docker", marks=pytest.mark.soak), "remotedocker"])
def test_links_in_the_place_of_the_run_s_own_files_lead_nobody_anywhere(container_bench: ContainerBench) -> None:
    mine = victim(container_bench)
    before = mine.read_bytes()
    container_bench.write("t.py", LINKS.replace("VICTIM", repr(str(mine))))

    done = container_bench.submit("t.py")

    assert done.code == 0, done.err
    assert set(done.out.strip("[]\n").replace("'", "").split(", ")) == OWN
    run = container_bench.far(container_bench.ids()[0])
    assert mine.read_bytes() == before
    assert [each.name for each in run.iterdir() if each.is_symlink()] == []
    assert container_bench.journal(run.name)[-1]["reason"] == "completed"


def test_a_script_finds_no_plan_no_other_run_and_no_program_of_the_host(container_bench: ContainerBench) -> None:
    home = container_bench.home
    (home / "engines").mkdir(exist_ok=True)
    container_bench.write(
        "t.py",
        f"import os\nfor folder, _, names in os.walk({str(home)!r}):\n"
        "    for name in names:\n        print(os.path.join(folder, name))\n",
    )

    done = container_bench.submit("t.py")

    assert done.code == 0, done.err
    run = container_bench.far(container_bench.ids()[0])
    places = (f"{home}/farside/", f"{home}/container-home/", *(f"{run}/{name}" for name in OWN))
    assert [line for line in done.out.splitlines() if not line.startswith(places)] == []


@pytest.mark.parametrize("kind", ["remotedocker"])
@pytest.mark.parametrize(
    "what", ["link", *(pytest.param(each, marks=pytest.mark.soak) for each in ("pipe", "endless"))]
)
def test_the_launcher_s_last_words_are_not_read_from_elsewhere(container_bench: ContainerBench, what: str) -> None:
    mine = victim(container_bench)
    container_bench.write(
        "t.py",
        f"""
        import os
        inside, what = os.path.join(os.environ["HOLDFAST_RUN_DIRECTORY"], "inside"), {what!r}
        status = os.path.join(inside, "status.json")
        if what == "link":
            os.symlink({str(mine)!r}, status)
        elif what == "pipe":
            os.mkfifo(status)
        else:
            with open(status, "wb") as target:
                target.truncate(1 << 40)
        os.chmod(os.path.join(inside, "lock"), 0)
        os.chmod(inside, 0o500)  # nothing is put in its place
        os._exit(0)
        """,
    )

    done = container_bench.submit("t.py")

    assert done.code != 0
    (run_id,) = container_bench.ids()
    told = container_bench.journal(run_id)
    assert told[-1]["e"] == "ended"
    assert "private words" not in json.dumps(told)
    wait_for(lambda: container_bench.containers() == [], what="the container is removed")


def test_words_without_end_to_the_keeper_fill_no_memory_and_hide_no_signal(container_bench: ContainerBench) -> None:
    run_id = container_bench.begin(
        """
        import os, signal, sys, threading
        run = os.environ["HOLDFAST_RUN_DIRECTORY"]
        def save(number, frame):
            print("saved", flush=True)
            os._exit(0)
        signal.signal(signal.SIGTERM, save)
        events = os.open(os.path.join(run, "inside", "events"), os.O_WRONLY)
        def flood():
            line = b'{"e": "status", "status": {"code": 0}}\\n' * 1000
            while True:
                os.write(events, line)
        for _ in range(1600):
            os.write(events, b"x" * (1 << 16))  # 100 MB in one line
        os.write(events, b"\\n")
        for _ in range(2):
            threading.Thread(target=flood, daemon=True).start()
        print("up", flush=True)
        while True:
            signal.pause()
        """
    )

    status = Path(f"/proc/{keeper(container_bench, run_id)}/status").read_text()
    done = container_bench.run("cancel", "-r", run_id, "--grace", "30")

    assert done.code == 0, done.err
    most = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    assert most < 80_000, "kB"
    assert container_bench.event(run_id, "ended")["reason"] == "canceled"
    assert (container_bench.far(run_id) / "driver_log").read_text() == "up\nsaved\n"


def test_metrics_that_lead_elsewhere_stay_on_the_machine(container_bench: ContainerBench) -> None:
    mine = victim(container_bench)
    container_bench.write(
        "t.py",
        f"""
        import os
        folder = os.path.join(os.environ["HOLDFAST_RUN_DIRECTORY"], "metrics")
        os.symlink({str(mine)!r}, os.path.join(folder, "1-a.jsonl"))
        os.mkfifo(os.path.join(folder, "2-b.jsonl"))
        try:
            os.rmdir(folder)
        except OSError as error:
            print(type(error).__name__)
        """,
    )

    done = container_bench.submit("t.py")

    assert done.code == 0, done.err
    near = container_bench.near(container_bench.ids()[0])
    assert [each for each in near.rglob("*") if each.is_file() and b"private words" in each.read_bytes()] == []


def test_rights_are_given_back_to_folders_and_to_nothing_that_they_are_swapped_for(tmp_path: Path) -> None:
    from holdfast.farside.system.nofollow import allow_below

    private = tmp_path / "private"
    private.mkdir(mode=0o500)
    run = tmp_path / "run"
    run.mkdir()
    (run / "folder").symlink_to(private)

    allow_below(str(run), "folder", stat.S_IRWXU)

    assert stat.S_IMODE(private.stat().st_mode) == 0o500


BACKEND = """
import os, sys
def touch(path, text="planted"):
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "a") as target:
            target.write(text)
    except OSError:
        pass
def read(path):
    try:
        with open(path) as source:
            return source.read()
    except OSError:
        return ""
home = HOME
for name in sorted(os.listdir(home)):
    for inner in ("x", "planted/x"):
        if name not in ("environments", "cache", "pythons"):
            touch(os.path.join(home, name, inner))
            touch(os.path.join(home, name))
for place, folders, names in os.walk(os.path.join(home, "farside")):
    for name in names:
        touch(os.path.join(place, name))
for place, folders, names in os.walk(os.path.join(home, "tools")):
    for name in names:
        os.path.isfile(os.path.join(place, name)) and touch(os.path.join(place, name), "")
run = os.path.dirname(os.environ.get("HOLDFAST_FILES", "/nowhere/work"))
for name in ("requirements.in", "requirements.out", "requirements.lock"):
    path = os.path.join(run, "build", name)
    if os.path.lexists(path):
        os.unlink(path)
        os.symlink(VICTIM, path)
raise SystemExit("found: " + read(os.path.join(home, "keys", "id")))
"""


def make_source(folder: Path, backend: str) -> Path:
    """The source of the package `evil`, which runs `backend` when it is built."""
    folder.mkdir()
    project = '[project]\nname = "evil"\nversion = "1"\n[build-system]\nrequires = []\n'
    texts = {"pyproject.toml": project + 'build-backend = "backend"\nbackend-path = ["."]\n', "backend.py": backend}
    texts["PKG-INFO"] = "Metadata-Version: 2.1\nName: evil\nVersion: 1\n"
    with tarfile.open(folder / "evil-1.tar.gz", "w:gz") as target:
        for name, text in texts.items():
            entry = tarfile.TarInfo(f"evil-1/{name}")
            entry.size = len(text.encode())
            target.addfile(entry, io.BytesIO(text.encode()))
    return folder


@pytest.mark.parametrize("kind", [pytest.param("docker", marks=pytest.mark.soak), "remotedocker"])
def test_code_of_a_package_that_is_built_for_an_image_reaches_no_program_and_no_key(
    container_bench: ContainerBench,
) -> None:
    bench, home = container_bench, container_bench.home
    mine = victim(bench)
    (home / "keys").mkdir()
    (home / "keys" / "id").write_text("a private key")
    backend = BACKEND.replace("HOME", repr(str(home)), 1).replace("VICTIM", repr(str(mine)))
    sources = make_source(home.parent / "sources", backend)
    owner = home.stat()
    for each in (home / "keys", home / "keys" / "id"):
        os.chown(each, owner.st_uid, owner.st_gid)
    bench.target("userManagedEnvironment: false")
    lines = "".join(f"    - {each}\n" for each in ("--no-index", f"--find-links file://{sources}", "evil"))
    bench.write("aml_config/conda_dependencies.yml", f"dependencies:\n  - pip:\n{lines}")
    bench.write("t.py", "print(1)\n")
    before = programs(home)

    done = bench.submit("t.py")

    assert done.code != 0
    log = (bench.far(bench.ids()[0]) / "control_log").read_text()
    assert "found: " in log, "it was built"
    assert "a private key" not in log
    assert programs(home) == before
    assert [each for each in home.rglob("*") if each.name == "planted"] == []
    assert "evil" not in mine.read_text()


def programs(home: Path) -> dict[str, int]:
    """Everything of the far side and its tools, with sizes."""
    files = [each for top in ("farside", "tools", "keys") for each in (home / top).rglob("*") if each.is_file()]
    return {str(each.relative_to(home)): each.stat().st_size for each in files if each.suffix != ".pyc"}


@pytest.mark.parametrize("kind", ["remotedocker"])
def test_a_script_changes_no_environment_and_no_settings_of_installers(
    container_bench: ContainerBench, index: Index
) -> None:
    bench = container_bench
    bench.target("userManagedEnvironment: false")
    wants(bench, index)
    bench.write(
        "t.py",
        """
        import demo, os, sys
        for path in (os.path.dirname(demo.__file__), demo.__file__, sys.prefix):
            try:
                os.chmod(path, 0o755)
                open(os.path.join(path, "planted") if os.path.isdir(path) else path, "a").write("# planted")
            except OSError:
                pass
        settings = os.path.join(os.environ["HOME"], ".config", "uv")
        os.makedirs(settings, exist_ok=True)
        open(os.path.join(settings, "uv.toml"), "w").write("this is no TOML")
        import shutil
        sys.dont_write_bytecode = True
        first = os.environ["HOLDFAST_RUN_DIRECTORY"].split("/")[1]
        cache = os.environ.get("PYTHONPYCACHEPREFIX", sys.prefix)
        shutil.rmtree(os.path.join(cache, first), ignore_errors=True)
        os.symlink("/" + first, os.path.join(cache, first))
        """,
    )

    assert bench.submit("t.py").code == 0
    (environment,) = built(bench)
    assert [each for each in environment.rglob("*") if each.name == "planted"] == []
    assert [each for each in environment.rglob("demo.py") if "planted" in each.read_text()] == []
    (first,) = bench.ids()
    wants(bench, index, "demo>1.0")
    bench.write("t.py", "import demo\nprint(demo.__version__)\n")
    bench.until_left(first)
    again = bench.submit("t.py")

    assert again.code == 0, again.err
    assert bench.far(first).is_dir(), "bytecode was cleared through a link"
