"""A notebook's cells before and after they are executed: what is put in, and what is kept of what they put out."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.farside.run import executed_notebook, notebook
from holdfast.farside.run.executed_notebook import ExecutedNotebook, join_text
from holdfast.farside.run.notebook import forget_outputs, inject

PNG = b"\x89PNG\r\n"


class Book(dict[str, Any]):
    @property
    def cells(self) -> Any:
        return self["cells"]


def code(source: str, *tags: str, outputs: tuple[Any, ...] = ()) -> dict[str, Any]:
    metadata = {"tags": list(tags)} if tags else {}
    return {"cell_type": "code", "source": source, "metadata": metadata, "outputs": list(outputs)}


def new_cell(source: str, metadata: dict[str, Any]) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "metadata": metadata, "id": "new"}


def stream(text: str, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def shown(**data: str) -> dict[str, Any]:
    return {"output_type": "display_data", "data": {name.replace("_", "/"): value for name, value in data.items()}}


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([code("a"), code("p", "parameters"), code("b")], ["a", "p", "x = 1\ny = 2", "b"]),
        ([code("a"), code("b")], ["x = 1\ny = 2", "a", "b"]),
        ([code("p", "parameters"), code("x = 9", "injected-parameters"), code("b")], ["p", "x = 1\ny = 2", "b"]),
    ],
    ids=["after the tagged cell", "at the top", "in place of earlier ones"],
)
def test_parameters_become_a_cell(cells, expected):
    book = Book(cells=cells, nbformat_minor=2)
    inject(book, ["x = 1", "y = 2"], new_cell)
    assert [each["source"] for each in book.cells] == expected
    assert all("id" not in each for each in book.cells)


def test_without_parameters_no_cell_is_put_in():
    book = Book(cells=[code("a", "injected-parameters")])
    inject(book, [], new_cell)
    assert [each["source"] for each in book.cells] == ["a"]


def test_outputs_of_an_earlier_execution_are_forgotten():
    cells = [{"cell_type": "markdown", "source": ""}, code("a", outputs=(stream("old"),)) | {"execution_count": 7}]
    forget_outputs(cells)
    assert cells[0] == {"cell_type": "markdown", "source": ""}
    assert (cells[1]["outputs"], cells[1]["execution_count"]) == ([], None)


def test_prints_of_a_cell_are_one_output_and_not_endless(monkeypatch):
    monkeypatch.setattr(executed_notebook, "_MOST_TEXT", 10)
    outputs: list[Any] = []
    for each in (stream("ab"), stream("cd"), stream("e", "stderr"), stream("x" * 8), stream("y" * 8), stream("z")):
        outputs.append(each)
        join_text(outputs)
    assert [each["text"][:10] for each in outputs] == ["abcd", "e", "x" * 8 + "yy"]
    assert outputs[-1]["text"].endswith("run.\n") and "z" not in outputs[-1]["text"]


def test_pictures_are_named_by_notebook_and_cell(tmp_path):
    png = base64.b64encode(PNG).decode()
    cells = [
        {"cell_type": "markdown", "source": "text"},
        code("a", outputs=(stream("no picture"),)),
        code("  "),
        code("b", outputs=(shown(image_png=png), shown(**{"image_svg+xml": "<svg/>"}), shown(image_png="not base64"))),
    ]
    book = ExecutedNotebook(Book(cells=cells), "deep/train.ipynb", str(tmp_path / "outputs"), json.dumps, print)
    book.write()
    found = {each.name: each.read_bytes() for each in (tmp_path / "outputs").iterdir()}
    assert json.loads(found.pop("train.ipynb"))["cells"] == cells
    assert found == {"train-2.png": PNG, "train-2-2.svg": b"<svg/>", "train-2-3.png": b""}


def test_a_picture_that_cannot_be_written_is_told_and_ends_nothing(tmp_path):
    said: list[str] = []
    book = ExecutedNotebook(Book(cells=[]), "train.ipynb", str(tmp_path / "outputs"), json.dumps, said.append)
    (tmp_path / "outputs").rmdir()
    book.write()
    assert len(said) == 1 and "train.ipynb" in said[0]


def test_a_python_that_cannot_run_notebooks_is_named(tmp_path):
    (tmp_path / "t.ipynb").write_text("{}")
    source = Path(notebook.__file__).parents[3]
    line = [sys.executable, "-S", notebook.__file__, "t.ipynb", str(tmp_path / "outputs")]
    variables = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=tmp_path, env=variables)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        f"A notebook needs nbclient and ipykernel in the Python that runs it ({sys.executable}).",
        "Install both there, or build an environment, which gets both: submit -d FILE",
        "ModuleNotFoundError: No module named 'nbclient'",
    ]
