"""A project whose target is a box: the bench of local runs, with the host's part on the box."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from integration.runs.conftest import Bench
from kit.boxes import Box
from kit.flows import Way
from kit.homes import furnish_account, recall
from kit.link import Link
from kit.waiting import wait_for

SHARE_LINE = (
    'open(os.environ["AZUREML_NATIVE_SHARE_DIRECTORY"] + "starts", "a").write(os.environ["HOLDFAST_RUN_ID"] + "\\n")'
)
"""Python for the beginning of a script: the number of these lines is how often it was started."""


@dataclass(frozen=True)
class FarBench(Bench):
    """One project on one box, whose name is the name of target and run configuration."""

    box: Box

    def run(self, *arguments: str, **options: Any) -> Any:
        options["env"] = {**self.box.environment, **options.get("env", {})}
        return super().run(*arguments, **options)

    def submit(self, *arguments: str, **options: Any) -> Any:
        return self.run("submit", "-c", self.box.name, *arguments, **options)

    def start(self, *arguments: str, **options: Any) -> str:
        return super().start("-c", self.box.name, *arguments, **options)

    def popen(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        given = options.pop("env", {})
        return super().popen(*arguments, env={**os.environ, **self.box.environment, **given}, **options)

    def submitting(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        """A submit that is under way."""
        return self.popen("submit", "-c", self.box.name, *arguments, **options)

    def attach(self, box: Box, compute: str = "", runconfig: str = "") -> None:
        """Write both files of a target by hand; the texts are further lines of them."""
        folder = self.root / "aml_config"
        folder.mkdir(exist_ok=True)
        (folder / f"{box.name}.compute").write_text(box.compute + textwrap.dedent(compute))
        (folder / f"{box.name}.runconfig").write_text(
            f"Target: {box.name}\nFramework: Python\n" + textwrap.dedent(runconfig)
        )

    def starts(self) -> list[str]:
        """The runs whose script was started, one entry for each time; of scripts that have SHARE_LINE."""
        return [line for path in self.home.glob("share/*/starts") for line in path.read_text().splitlines()]

    @property
    def incoming(self) -> Path:
        """Where the box keeps incomplete transfers."""
        return self.home / "objects" / ".incoming"

    def near_ids(self) -> list[str]:
        folder = self.root / ".holdfast" / "runs"
        return sorted(each.name for each in folder.iterdir() if "." not in each.name) if folder.is_dir() else []


@pytest.fixture
def far_bench(
    tmp_path: Path, holdfast: Callable[..., Any], box: Callable[..., Box]
) -> Iterator[Callable[..., FarBench]]:
    """A function that makes a bench; what it is given goes to `box`. All benches of a test are one project.

    A `fresh` box has never used Holdfast.
    """
    root = tmp_path / "project"
    root.mkdir()
    recall(Path(os.environ["HOLDFAST_HOME"]))

    def make(name: str = "gpu1", fresh: bool = False, **options: Any) -> FarBench:
        made = box(name, **options)
        if not fresh:
            furnish_account(made.account)
        bench = FarBench(root, made.home, holdfast, made)
        bench.attach(made)
        return bench

    yield make


@contextlib.contextmanager
def watched(process: subprocess.Popen[bytes], seconds: float = 120.0) -> Iterator[subprocess.Popen[bytes]]:
    """A process that does not outlive the block."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.communicate(timeout=seconds)


@contextlib.contextmanager
def cut_once_there(link: Link, count: int, way: Way, arrived: Callable[[], bool]) -> Iterator[None]:
    """The link breaks after `count` bytes, once `arrived` is true of them. Data in flight is lost with the connection;
    how much depends only on how busy the machine is."""

    def cut() -> None:
        try:
            wait_for(lambda: link.is_stalled and arrived(), what="what was sent has arrived")
        finally:
            link.cut()
            link.resume()

    link.stall_after(count, way)
    with ThreadPoolExecutor(1) as beside:
        cutting = beside.submit(cut)
        yield
        cutting.result()


def largest(folder: Path) -> int:
    """The size of the largest file below a folder."""
    return max(each.stat().st_size for each in folder.rglob("*") if each.is_file())
