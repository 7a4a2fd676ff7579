"""What the cells of a notebook put out, and the notebook with it on disk: whole files only."""

import base64
import binascii
import os
import time
from typing import Any, Callable, Dict, Iterator, List, Tuple

from holdfast.farside.system.files import whole

_PICTURES = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/svg+xml": ".svg"}
_BETWEEN_WRITES = 10.0
"""Seconds between two writes of the notebook during a cell; longer if a write takes long."""
_MOST_TEXT = 4 << 20
"""Characters of printed text that the executed notebook keeps of one cell. The run's output has all of it."""
_CUT = "\n… The rest is in the output of the run.\n"


class ExecutedNotebook:
    """On disk, with its pictures. `tell` gets a sentence if they cannot be written."""

    def __init__(self, notebook: Any, path: str, outputs: str, writes: Any, tell: Callable[[str], None]) -> None:
        self.notebook = notebook
        self._writes, self._tell = writes, tell
        self._stem = os.path.splitext(os.path.basename(path))[0]
        self._folder = outputs
        self._due = 0.0
        self._is_writing = False
        self._pictures: Dict[str, Any] = {}
        """What was written, by name."""
        os.makedirs(outputs, exist_ok=True)

    def write_if_due(self) -> None:
        if time.monotonic() >= self._due:
            self.write()

    def write(self) -> None:
        """A signal may ask for it while it happens: once is enough."""
        if self._is_writing:
            return
        self._is_writing = True
        begun = time.monotonic()
        try:
            for name, data in self._found():
                if self._pictures.get(name) != data:
                    _write(os.path.join(self._folder, name), _decoded(data))
                    self._pictures[name] = data
            text = self._writes(self.notebook) + "\n"
            _write(os.path.join(self._folder, self._stem + ".ipynb"), text.encode("utf-8", "replace"))
        except OSError as error:  # a full disk: the cells go on, and may have their own way to notice
            self._tell("The executed notebook cannot be written: %s" % error)
        finally:
            self._is_writing = False
            self._due = time.monotonic() + max(_BETWEEN_WRITES, 20 * (time.monotonic() - begun))

    def _found(self) -> Iterator[Tuple[str, Any]]:
        """Names of pictures, and what cells say they are."""
        number = 0
        for cell in self.notebook.cells:
            if not is_code(cell):
                continue
            number += 1
            count = 0
            for data in [output.get("data") or {} for output in cell["outputs"]]:
                for kind in pictures_in(data):
                    count += 1
                    which = "" if count == 1 else "-%d" % count
                    yield "%s-%d%s%s" % (self._stem, number, which, _PICTURES[kind]), (kind, data[kind])


def is_code(cell: Any) -> bool:
    """Whether it is executed, and counts."""
    return bool(cell.get("cell_type") == "code" and "".join(cell.get("source", "")).strip())


def _decoded(picture: Tuple[str, Any]) -> bytes:
    kind, data = picture
    text = data if isinstance(data, str) else "".join(data)
    if kind == "image/svg+xml":
        return text.encode("utf-8", "replace")
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return b""


def _write(path: str, data: bytes) -> None:
    with whole(path) as file:
        file.write(data)


def pictures_in(data: Dict[str, Any]) -> List[str]:
    """Their kinds."""
    return [kind for kind in _PICTURES if kind in data]


def join_text(outputs: List[Any]) -> None:
    """Print by print, a cell may have thousands of outputs, and any amount of text."""
    if not outputs or outputs[-1].get("output_type") != "stream":
        return
    last = outputs[-1]
    if len(outputs) > 1 and outputs[-2].get("name") == last["name"] and outputs[-2].get("output_type") == "stream":
        outputs.pop()
        if not outputs[-1]["text"].endswith(_CUT):
            outputs[-1]["text"] += last["text"]
        last = outputs[-1]
    if len(last["text"]) > _MOST_TEXT:
        last["text"] = last["text"][:_MOST_TEXT] + _CUT
