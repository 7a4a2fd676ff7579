"""Links among a run's files at home."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.workbench.following.kept_links import LeavingLink, remove_leaving


def test_links_that_lead_out_are_removed_and_other_files_are_not_looked_at(tmp_path, monkeypatch):
    top = tmp_path / "outputs"
    (top / "d").mkdir(parents=True)
    for number in range(50):
        (top / "d" / f"{number}.txt").write_text("mine")
    (top / "d" / "out").symlink_to("../../private")
    (top / "folder").symlink_to(tmp_path)
    (top / "latest").symlink_to("d/1.txt")
    real, looked = os.lstat, []

    def look(path, **options):
        looked.append(os.fspath(path))
        return real(path, **options)

    def is_link(path):
        return os.path.islink(path)

    monkeypatch.setattr(os, "lstat", look)
    monkeypatch.setattr(Path, "is_symlink", is_link)

    found = list(remove_leaving(top))

    assert found == [LeavingLink("folder", str(tmp_path)), LeavingLink("d/out", "../../private")]
    assert sorted(os.listdir(top)) == ["d", "latest"] and len(os.listdir(top / "d")) == 50
    assert [each for each in looked if each.endswith(".txt")] == []
