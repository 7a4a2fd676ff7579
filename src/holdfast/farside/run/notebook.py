"""Runs a notebook, cell by cell: `python notebook.py NOTEBOOK OUTPUTS [ASSIGNMENT …]`, in the notebook's folder.

The kernel is this same Python, whatever kernel the notebook names. What cells print is the output, as they print it.
The executed notebook and its pictures are written to the folder OUTPUTS after each cell and now and then during a long
one. The assignments become a cell after the one that is tagged `parameters`, or the first one.

The run's Python needs nbclient and ipykernel; apart from these, this is the standard library alone.
"""

import asyncio
import os
import queue
import re
import resource
import shutil
import signal
import sys
import tempfile
from importlib import import_module
from typing import Any, Callable, Dict, List, Optional

sys.path[:] = [each for each in sys.path if os.path.abspath(each or ".") != os.path.dirname(os.path.abspath(__file__))]

from holdfast.farside.run.executed_notebook import ExecutedNotebook, is_code, join_text, pictures_in  # noqa: E402
from holdfast.farside.run.notebook_kernel import NotebookKernel  # noqa: E402

NEEDED = ("nbclient", "ipykernel")
PARAMETERS, INJECTED = "parameters", "injected-parameters"
_LONGEST_ERROR = 300
_COLOUR = re.compile(r"\x1b\[[0-9;?]{0,32}[ -/]?[@-~]")
_NO_INPUT = "StdinNotImplementedError"
_SILENCE = 0.5
"""Seconds without output after the last cell. A kernel sends five times a second what it has."""
_OUTPUT_TIMEOUT = 60
"""Seconds for the last output of a cell: a machine may be busy."""


def main(arguments: List[str]) -> int:
    path, outputs, assignments = arguments[0], arguments[1], arguments[2:]
    missing = _missing()
    if missing:
        _say("A notebook needs %s in the Python that runs it (%s)." % (" and ".join(NEEDED), sys.executable))
        _say("Install both there, or build an environment, which gets both: submit -d FILE")
        _say("ModuleNotFoundError: No module named '%s'" % missing)
        return 1
    nbformat = import_module("nbformat")
    try:
        notebook = nbformat.read(path, as_version=4)
    except Exception as error:  # noqa: BLE001 - whatever a damaged file makes of it
        _say("`%s` cannot be read as a notebook: %s" % (path, _first_line(str(error))))
        return 1
    inject(notebook, assignments, nbformat.v4.new_code_cell)
    forget_outputs(notebook.cells)
    return _run(ExecutedNotebook(notebook, path, outputs, nbformat.writes, _say))


def _missing() -> str:
    """The first of what is needed that this Python has not; empty for none."""
    for name in NEEDED:
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            return error.name or name
    return ""


def inject(notebook: Any, assignments: List[str], new_cell: Any) -> None:
    """The assignments as a cell of their own, in place of one that an earlier run put there."""
    if not assignments:
        return
    cells = notebook["cells"]
    tags = [each.get("metadata", {}).get("tags", []) for each in cells]
    for index in reversed([index for index, each in enumerate(tags) if INJECTED in each]):
        del cells[index], tags[index]
    place = next((index + 1 for index, each in enumerate(tags) if PARAMETERS in each), 0)
    cell = new_cell("\n".join(assignments), metadata={"tags": [INJECTED]})
    if notebook.get("nbformat_minor", 0) < 5:  # before cells had ids
        cell.pop("id", None)
    cells.insert(place, cell)


def forget_outputs(cells: List[Any]) -> None:
    """Those of an earlier execution must not stand for cells that are not reached."""
    for cell in cells:
        if cell.get("cell_type") == "code":
            cell["outputs"], cell["execution_count"] = [], None


def _run(pages: ExecutedNotebook) -> int:
    folder = private_folder(os.environ.get("HOLDFAST_RUN_DIRECTORY", ""))
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        code = loop.run_until_complete(_execute(pages, NotebookKernel(folder)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return _end_as(code)


def private_folder(run: str) -> str:
    """In the run's folder. A container, where that is read-only, has a temporary folder of its own."""
    name = "kernel-%d" % os.getpid()
    try:
        folder = os.path.join(run or os.devnull, name)
        os.mkdir(folder, 0o700)
        return folder
    except OSError:
        return tempfile.mkdtemp(prefix=name + "-")


async def _execute(pages: ExecutedNotebook, kernel: NotebookKernel) -> int:
    execution = Execution(pages, kernel)
    client = _client(execution)
    try:
        await kernel.start(client)
    except Exception as error:  # noqa: BLE001 - whatever keeps it from starting
        _say("The kernel did not start: %s" % _first_line(str(error)))
        _say(kernel.last_words())
        return 1
    execution.take_signals()
    channel = client.kc.iopub_channel
    channel.get_msg = execution.catching_late(channel.get_msg)
    try:
        return await execution.all_cells(client)
    finally:
        await kernel.end()


def _client(execution: "Execution") -> Any:
    base: Any = import_module("nbclient").NotebookClient

    class Client(base):  # type: ignore[misc] # the project's own Python does not have nbclient
        def process_message(self, msg: Dict[str, Any], cell: Any, cell_index: int) -> Any:
            execution.hear(msg, cell)
            try:
                output = super().process_message(msg, cell, cell_index)
            finally:
                join_text(cell.outputs)
            execution.pages.write_if_due()
            return output

    return Client(
        execution.pages.notebook,
        km=execution.kernel.manager,
        timeout=None,
        startup_timeout=execution.kernel.PATIENCE,
        iopub_timeout=_OUTPUT_TIMEOUT,
        on_cell_executed=execution.note_exit,
    )


class Speech:
    """What cells print, and lines of our own between it."""

    def __init__(self) -> None:
        self._is_begun = False

    def print(self, text: str, is_error: bool = False) -> None:
        if not text:
            return
        stream = sys.stderr if is_error else sys.stdout
        stream.buffer.write(text.encode("utf-8", "replace"))
        stream.flush()
        self._is_begun = not text.endswith("\n")

    def line(self, text: str) -> None:
        """On a line of its own; nothing for an empty one."""
        if text:
            self.print(("\n" if self._is_begun else "") + text + "\n", is_error=True)


def _say(text: str) -> None:
    Speech().line(text)


def _first_line(text: str) -> str:
    """Short, and without colours."""
    lines = _COLOUR.sub("", text).strip().splitlines()
    return (lines[0] if lines else "")[:_LONGEST_ERROR]


class Execution:
    """The cells, one after the other."""

    def __init__(self, pages: ExecutedNotebook, kernel: NotebookKernel) -> None:
        self.pages, self.kernel = pages, kernel
        self._speech = Speech()
        self._stopped: Optional[int] = None
        self._has_exited = False
        self._cells: Dict[str, Any] = {}
        """By the request that executes each."""
        self._request = ""

    def take_signals(self) -> None:
        """From now on, a request to end interrupts the cell."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._stop)

    def _stop(self, number: int, _: Any) -> None:
        if self._stopped is None:
            self._stopped = number
            self.kernel.interrupt()
            self.pages.write()

    async def all_cells(self, client: Any) -> int:
        """Returns the exit code, negative for a signal."""
        number, code = 0, 0
        count = sum(map(is_code, self.pages.notebook.cells))
        for index, cell in enumerate(self.pages.notebook.cells):
            if not is_code(cell):
                continue
            if self._stopped is not None:
                return -self._stopped
            number += 1
            self._speech.line("Cell %d of %d" % (number, count))
            ended = await self._cell(client, cell, index, number)
            self.pages.write()
            if ended is not None:
                code = ended
                break
        else:
            await self._hear_the_rest(client.kc.iopub_channel)
        return code if self._stopped is None else -self._stopped

    async def _cell(self, client: Any, cell: Any, index: int, number: int) -> Optional[int]:
        """None: the next one may follow."""
        exceptions = import_module("nbclient.exceptions")
        try:
            await client.async_execute_cell(cell, index)
        except exceptions.CellExecutionError as error:
            await self._hear_the_rest(client.kc.iopub_channel)
            return self._failed(cell, number, error)
        except exceptions.DeadKernelError:
            await self._hear_the_rest(client.kc.iopub_channel)
            return self._dead(number)
        return self._exited(number, "") if self._has_exited else None

    def note_exit(self, execute_reply: Dict[str, Any], **_: Any) -> None:
        """`exit()` in a cell asks whoever shows the notebook to end the kernel."""
        payload = execute_reply["content"].get("payload") or []
        self._has_exited = self._has_exited or any(each.get("source") == "ask_exit" for each in payload)

    def _failed(self, cell: Any, number: int, error: Any) -> int:
        if self._stopped is not None:
            self._speech.line("Cell %d was interrupted." % number)
            return -self._stopped
        if error.ename == "SystemExit":
            return self._exited(number, error.evalue)
        errors = [each for each in cell["outputs"] if each.get("output_type") == "error"]
        name, value = (errors[-1]["ename"], errors[-1]["evalue"]) if errors else (error.ename, error.evalue)
        self._speech.line("Cell %d failed: %s" % (number, _first_line("%s: %s" % (name, value))))
        if error.ename == _NO_INPUT:
            self._speech.line("A run has no keyboard. Give the value as a parameter: -p NAME=VALUE")
            return 1
        self._speech.line(_COLOUR.sub("", "\n".join(errors[-1]["traceback"])) if errors else "")
        return 1

    def _exited(self, number: int, value: str) -> int:
        """As Python ends a script that calls `sys.exit`."""
        if value in ("", "None", "0"):
            self._speech.line("Cell %d ended the notebook." % number)
            return 0
        self._speech.line("Cell %d ended the notebook: sys.exit(%s)" % (number, _first_line(value)))
        return int(value) & 255 if re.match(r"-?\d{1,9}\Z", value) else 1

    def _dead(self, number: int) -> int:
        code = self.kernel.exit_code()
        if self._stopped is None and code:
            how = "signal %d" % -code if code < 0 else "exit code %d" % code
            self._speech.line("Cell %d failed: the kernel ended with %s" % (number, how))
            self._speech.line(self.kernel.last_words())
        elif self._stopped is None:
            self._speech.line("Cell %d ended the notebook." % number)
        return code

    def catching_late(self, get: Callable[..., Any]) -> Callable[..., Any]:
        """What programs print that a cell starts may arrive after its end. nbclient takes nothing that late."""

        async def get_and_look(*arguments: Any, **options: Any) -> Any:
            message = await get(*arguments, **options)
            request = message["parent_header"].get("msg_id", "")
            if message["msg_type"] == "stream" and request in self._cells and request != self._request:
                self._hear_late(message, self._cells[request])
            return message

        return get_and_look

    async def _hear_the_rest(self, channel: Any) -> None:
        """After the last cell."""
        self._request = ""
        try:
            while True:
                await channel.get_msg(timeout=_SILENCE)
        except queue.Empty:
            self.pages.write()

    def _hear_late(self, message: Dict[str, Any], cell: Any) -> None:
        content = message["content"]
        self._speech.print(content["text"], is_error=content["name"] == "stderr")
        cell["outputs"].append(import_module("nbformat.v4").output_from_msg(message))
        join_text(cell["outputs"])

    def hear(self, message: Dict[str, Any], cell: Any) -> None:
        """A message of the kernel. Errors are told at the end of their cell."""
        self._request = message["parent_header"]["msg_id"]
        self._cells[self._request] = cell
        content = message["content"]
        if message["msg_type"] == "stream":
            self._speech.print(content["text"], is_error=content["name"] == "stderr")
        elif message["msg_type"] in ("execute_result", "display_data"):
            data = content.get("data", {})
            if not pictures_in(data) and isinstance(data.get("text/plain"), str):
                self._speech.print(data["text/plain"] + "\n")


def _end_as(code: int) -> int:
    """A kernel that a signal ended, and a run that was asked to end: by that signal."""
    if code >= 0:
        return code
    sys.stdout.flush()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if -code != signal.SIGKILL:
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    return 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
