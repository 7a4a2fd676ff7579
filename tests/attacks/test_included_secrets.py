"""A clone whose run configuration names ignored files: what is secret stays here all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.project.configuration import load_configuration
from holdfast.snapshots.ignore import begin_listing
from holdfast.snapshots.include_globs import Include
from kit.projects import project_at

SECRETS = (".env", ".env.local", "id_rsa", "certs/a.pem", ".aws/credentials", "kaggle.json", ".netrc", ".git/config")


@pytest.mark.parametrize(
    "globs", [("'*'", "'**'"), SECRETS, ("'.env*'", "'*.pem'", ".aws/", "certs/a.*")], ids=range(3)
)
def test_no_glob_of_a_clone_takes_a_secret_along(tmp_path: Path, globs: tuple[str, ...]) -> None:
    for name in (*SECRETS, "data.bin", "train.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / ".gitignore").write_text("".join(f"/{name}\n" for name in (*SECRETS, "data.bin")))
    (tmp_path / "aml_config").mkdir()
    lines = "".join(f"  - {glob}\n" for glob in globs)
    configuration = f"Target: local\nFramework: Python\nInclude:\n{lines}"
    (tmp_path / "aml_config" / "local.runconfig").write_text(configuration)
    run = load_configuration(project_at(tmp_path), "local", None).run
    listing = begin_listing(tmp_path, {"PATH": ""}, include=Include(written=run.include)).finish()
    assert not set(SECRETS) & set(listing.paths)
    assert ("data.bin" in listing.paths) == ("'*'" in globs)
