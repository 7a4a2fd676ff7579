"""The near readers of foreign bytes, each with something valid to read: for `kit.fuzzing`."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from holdfast.cli import tables
from holdfast.codec import Malformed, decode, encode
from holdfast.environments.environment_plan import is_lock
from holdfast.errors import HoldfastError
from holdfast.farside.environments.locks import make_lock
from holdfast.farside.system import frames
from holdfast.history import gpu_series, metrics
from holdfast.history.queries import run_as_dict, run_in_detail
from holdfast.history.run_differences import RunView, compare_runs, flattened
from holdfast.history.run_folder import RunFolders
from holdfast.hosts import machine_report, replies
from holdfast.hosts.connection import Push
from holdfast.model import Run, Submission
from holdfast.presenting import environment_page, event_lines, machine_page, run_page, run_words
from holdfast.project import provenance
from holdfast.project.folder import Project
from holdfast.snapshots import cache, manifest
from holdfast.workbench.following.transfer import _json, inflated
from holdfast.workbench.reach import contacts, events
from holdfast.workbench.records.diagnostics import _Hiding
from holdfast.workbench.records.inspection import Inspection
from holdfast.workbench.records.promotion import read_link
from kit.fuzzing import Reader, example, in_file, json_lines, json_of
from kit.journals import folded, parsed

T = 1_521_077_190.5
SUBMISSION = Submission(
    *("iris_1521077190506", 1, "p", "iris", "train.py", ("--rate", "0.1"), "local", "local", "local", "a" * 64, T, "g"),
    properties={"commit": "abc"},
)
VERDICT = {
    "t": T + 5,
    "e": "gpu",
    "state": "partly-used",
    "reason": "few",
    "sentence": "The GPU was partly used: why.",
    "remedy": "Do it.",
    "devices": [
        {"number": 0, "uuid": "GPU-1", "name": "K80", "mean": 31.5, "peak_memory": 1 << 30},
        {"first_use": 1.5, "busy": 0.25, "is_leased": True},
    ],
    "waited": 0.5,
    "spells": [[0.0, 4.0], [9.0, 12.5]],
    "evidence": "memory",
}
JOURNAL = json_lines(
    {"t": T + 1, "e": "created", "host": "bench", "user": "ada", "engine": "slurm"},
    {"t": T + 1, "e": "queued", "engine": "slurm", "text": "2 ahead"},
    {"t": T + 2, "e": "phase", "name": "environment", "text": "installing"},
    {
        "t": T + 3,
        "e": "environment",
        "id": "e1",
        "packages": ["a==1"],
        "built": True,
        "seconds": 3.5,
        "python": "3.11.2",
    },
    {"t": T + 3, "e": "container", "image": "sha256:ab", "image_name": "ubuntu", "name": "c", "gpus": True},
    {"t": T + 4, "e": "started", "pid": 7, "argv": ["python"]},
    {"t": T + 4, "e": "note", "text": "a note"},
    {"t": T + 5, "e": "ending", "cause": "cancel", "grace": 90},
    {"t": T + 5, "e": "exited", "code": 3, "signal": 9},
    {"t": T + 5, "e": "swept", "processes": [[9, "loader", "SIGTERM"], [10, "x", 9]], "count": 4},
    {"t": T + 5, "e": "files", "outputs": [["outputs/m.pkl", 5]], "others": [["s.bin", 12]], "others_count": 3},
    VERDICT,
    {"t": T + 6, "e": "ended", "reason": "signal", "code": 3, "signal": 11, "detail": "why"},
)
METRICS = json_lines(
    {"t": T + 4, "n": "loss", "v": 0.5, "s": None},
    {"t": T + 5, "n": "loss", "v": 1, "s": 3},
    {"t": T + 5, "n": "list", "v": [1, 2.5, [True]], "s": 3},
    {"t": T + 5, "n": "name", "v": "text", "s": 3},
    {"t": T + 5, "n": "bad", "v": "NaN", "s": 3, "f": 1},
)
DEVICE = {"number": 0, "uuid": "GPU-1", "name": "K80", "total": 1 << 34, "mig": False}
SAMPLES = json_lines(
    {"format": 1, "began": T + 3, "source": "nvml"},
    {"devices": [DEVICE]},
    {"t": T + 4.1, "d": [[0, 50, 1 << 30, 70.5, 40, 1 << 20, 30, [7], [8], 0, [[7, 1, 2]]]]},
    {"t": T + 4.2, "lost": 0, "problem": "GPU is lost"},
    {"t": T + 4.3, "found": 0},
    {"t": T + 4.4, "skipped": 2},
    {"t": T + 4.5, "d": [[0, 90, None, None, None, None, None, [], [], 0, []]]},
    {"t": T + 4.9, "problem": "Driver Not Loaded"},
)
CONTACT = {
    "format": 1,
    "host": "me@gpu1",
    **encode(contacts.Contact("a" * 64, T, T, "why", 2.5, "m", "/f", "n", {"iris_1": (T, "another machine")})),
}
PUSHES = {"size": 3, "sha256": "a" * 64, "mtime_ns": 10**18, "executable": True, "steady": True, "message": "m"}


def shown(run: Run, configuration: Any = None, summaries: Any = (), gpus: Any = ()) -> None:
    """A run on each of the pages that show one."""
    inspection = Inspection(run, configuration or {}, (), tuple(summaries), (), tuple(gpus))
    list(run_page.rows(inspection))
    table = run_words.table([run], {}, T)
    for stream in (io.StringIO(),):
        tables.draw(table.rows, table.columns, stream)
        tables.draw_page(run_page.rows(inspection), stream)
    json.dumps([run_as_dict(run), run_in_detail(run), run_page.as_dict(inspection)])
    list(run_words.ending_lines(run))
    compare_runs(RunView(run, configuration or {}), RunView(folded(SUBMISSION), {}))
    assert decode(Run, json.loads(json.dumps(encode(run)))) is not None, "the index has to read it again"


def _read_journal(data: bytes) -> None:
    shown(folded(SUBMISSION, data))
    for event in parsed(data).events:
        event_lines.lines(events.Recorded("iris_1", event), T)


def _read_metrics(path: Path) -> None:
    shown(
        folded(SUBMISSION, JOURNAL, metrics.final_values(path.parent)),
        {},
        metrics.summarize(path.parent).values(),
    )


def _read_samples(path: Path) -> None:
    found = gpu_series.read_series(path.parent, T + 4, T + 5)
    shown(folded(SUBMISSION, JOURNAL), {}, (), found)
    for each in found:
        gpu_series.means([(point.since, point.time, point.utilisation) for point in each.points], 1.0, 60)


def _read_record(state: Path, name: str) -> Callable[[bytes], object]:
    folders = RunFolders(state)
    folder = folders.path(SUBMISSION.run_id)

    def read(path: Path) -> None:
        if name != "submission.json":
            (folder / "submission.json").write_bytes(json_of(SUBMISSION))
        submission = folders.submission(SUBMISSION.run_id)
        folders.plan(SUBMISSION.run_id)
        configuration = folders.configuration(SUBMISSION.run_id)
        flattened(configuration)
        folders.place(SUBMISSION.run_id)
        folders.is_collected(SUBMISSION.run_id), folders.outputs_are_left(SUBMISSION.run_id)
        run = folded(submission)
        from holdfast.frozen import replace

        run = replace(run, clock_offset=folders.clock_offset(SUBMISSION.run_id))
        folders.why_abandoned(SUBMISSION.run_id)
        run.running_time(T)
        shown(run, configuration)

    for other in ("submission.json", "plan.json", "configuration.json"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / other).write_bytes(json_of(SUBMISSION) if other == "submission.json" else b"{}")
    return in_file(folder, name, read)


def _read_contact(root: Path) -> Callable[[bytes], object]:
    root.mkdir(parents=True, exist_ok=True)
    provenance.make(root / ".holdfast", root / "home")
    project = Project(root, "p", "iris", False, root / "home")
    file = contacts._file(project, "me@gpu1")

    def read(path: Path) -> None:
        found = contacts.read(project, "me@gpu1")
        encode(found), found.place
        run = folded(SUBMISSION)
        since = [found.unreachable_since or T, *(each[0] for each in found.elsewhere.values())]
        for each in since:
            silence = contacts.Silence(each, found.reason)
            run_words.host_state(silence)
            run_words.table([run], {run.run_id: silence}, T)
        contacts.found(project, "me@gpu1", {"iris_2": "why"}, ["iris_3"], T)

    return in_file(file.parent, file.name, read)


def _read_frames(data: bytes) -> None:
    source = io.BytesIO(data)
    while frames.decode(source.read) is not None:
        pass


def _pages_of(shape: Any) -> Callable[[Any], object]:
    """What shows an answer."""
    pages: dict[Any, Callable[[Any], object]] = {
        machine_report.MachineFacts: lambda found: (list(machine_page.rows(found)), machine_page.as_dict(found)),
        machine_report.GpuInventory: lambda found: (
            list(machine_page.user_rows(found)),
            machine_page.users_document(found),
        ),
        replies.Shown: lambda found: (list(environment_page.rows(found, T)), environment_page.shown_as_dict(found)),
        replies.ListedEnvironment: _shown_environment,
    }
    return lambda found: json.dumps(encode(pages.get(shape, lambda found: None)(found) or found), default=str)


def _shown_environment(found: replies.ListedEnvironment) -> None:
    row = environment_page.listed_as_dict(found)
    tables.draw([row], environment_page.columns(T), io.StringIO())


def _answers() -> Iterator[Reader]:
    modules = (replies, machine_report)
    shapes = [each for module in modules for each in vars(module).values() if isinstance(each, type)]
    for shape in shapes:
        is_value = shape.__module__ in (replies.__name__, machine_report.__name__) and not issubclass(shape, str)
        if is_value:
            show = _pages_of(shape)

            def read(data: bytes, shape: Any = shape, show: Callable[[Any], object] = show) -> None:
                show(decode(shape, json.loads(data)))

            yield Reader(
                f"answer {shape.__name__}", _after_json(read), [json_of(example(shape))], "value", (Malformed,)
            )


def _after_json(read: Callable[[bytes], object]) -> Callable[[bytes], object]:
    def careful(data: bytes) -> object:
        try:
            json.loads(data)
        except (ValueError, RecursionError):
            return None  # refused before, as what is no frame
        return read(data)

    return careful


def near_readers(folder: Path) -> Iterator[Reader]:
    yield Reader("journal", _read_journal, [JOURNAL], "lines")
    yield Reader("metrics", in_file(folder / "m", "7-a.jsonl", _read_metrics), [METRICS], "lines")
    yield Reader("samples", in_file(folder / "s", "gpu.jsonl", _read_samples), [SAMPLES], "lines")
    record = (HoldfastError,)
    for name, content in (
        ("submission.json", SUBMISSION),
        ("plan.json", {"format": 1, "environment": {"spec": "a", "exact": True}, "secrets": ["A"]}),
        ("configuration.json", {"run": {"Framework": "Python", "Args": [1, "a", {"b": None}]}}),
        ("host.json", {"machine": "m", "folder": "f", "node": "n", "clock_offset": 2.5, "uncertainty": 0.1}),
        ("collected.json", {"format": 1, "notes": [], "outputs_left": True}),
        ("abandoned.json", {"format": 1, "t": T, "why": "no answer"}),
    ):
        yield Reader(name, _read_record(folder / f"r-{name}", name), [json_of(content)], "json", record)
    yield Reader("contact", _read_contact(folder / "c"), [json_of(CONTACT)], "json")
    link = {"run_id": "iris_1", "artifact": "outputs/a", "sha256": "a" * 64, "size": 1, "project_id": "p", "format": 1}
    yield Reader("link", in_file(folder / "l", "a.link", read_link), [json_of(link)], "json", record)
    entries = [("a.py", "f", "b" * 64, 3), ("d/l", "l", "../a.py", 0), ("d/x", "x", "c" * 64, 1)]
    yield Reader("manifest", manifest.decode, [manifest.encode_rows(entries)], "json", record)
    yield Reader(
        "snapshot cache",
        in_file(folder / "k", cache._NAME, lambda path: cache.load_cache(path.parent).unchanged(str(path.parent))),
        [_cache()],
    )
    locks = make_lock("s", "linux-x86_64-glibc2.36", "3.11.2", "a==1\n", conda=[{"url": "u", "sha256": "s"}])
    yield Reader("lock", _after_json(lambda data: is_lock(json.loads(data))), [json_of(locks)])
    yield Reader(
        "frames", _read_frames, [frames.encode({"id": 1, "ok": {"a": 1}}, b"body" * 9)], "bytes", (frames.FrameError,)
    )
    push = _after_json(lambda data: _json(Push("whole", "r", "f", 0, data)))
    yield Reader("end of a file", push, [json_of(PUSHES)], "json", record)
    yield Reader("compressed piece", inflated, [__import__("zlib").compress(b"a" * 99)], "bytes", record)
    yield Reader("diagnostics", _Hiding(("secret",)).in_json, [JOURNAL, json_of({"environment": {"A": "b"}})], "bytes")
    yield from _answers()


def _cache() -> bytes:
    known = [["a.py"], [1], [2], [3], [4], ["f"], ["b" * 64]]
    about = {"manifest": "m", "listing": "l", "bytes": 3, "pointers": ["p"], "warnings": [["a", "b", "c"]]}
    return json_of({"format": cache._FORMAT, **about, "folders": {"a": [1, 2]}, "known": known})
