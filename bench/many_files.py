"""A project of many source files, as large ones are."""

from __future__ import annotations

from children import Place

FOLDERS = 100


def write_files(place: Place, count: int) -> Place:
    """`count` files of about 1 kB in FOLDERS folders, and `s.py`, which says `hi`."""
    for number in range(FOLDERS):
        (place.project / f"part{number:03}").mkdir(exist_ok=True)
    for number in range(count):
        text = f"value = {number}\n" + "# a line of an ordinary length, as sources have them\n" * 20
        (place.project / f"part{number % FOLDERS:03}" / f"module{number:05}.py").write_text(text)
    (place.project / "s.py").write_text('print("hi")\n')
    return place
