"""Shipped packages: requested until all have arrived, stored under their names, installed without a network."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

import pytest

from holdfast.farside.environments import shipped_packages
from holdfast.farside.system.layout import Home
from holdfast.farside.system.refusal import Refused


def store(home: Home, content: bytes) -> str:
    digest = hashlib.sha256(content).hexdigest()
    path = Path(home.objects(), digest[:2], digest[2:])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (1, 1))
    return digest


def manifest(home: Home, *rows: tuple[str, str, int]) -> str:
    files = [[name, "f", digest, size] for name, digest, size in rows]
    return store(home, json.dumps({"format": 1, "files": files}, separators=(",", ":")).encode())


def test_packages_that_are_not_all_here_are_asked_for(home):
    here, absent = store(home, b"six"), hashlib.sha256(b"absent").hexdigest()
    for sent in (
        "0" * 64,
        manifest(home, ("a.whl", here, 3), ("b.whl", absent, 6)),
        manifest(home, ("a.whl", here, 4)),
    ):
        with pytest.raises(Refused) as caught:
            shipped_packages.require_packages(home, sent)
        assert caught.value.kind == "packages"


def test_a_manifest_whose_packages_are_needed_is_young_again(home):
    sent = manifest(home, ("a.whl", store(home, b"six"), 3))
    shipped_packages.require_packages(home, sent)
    assert time.time() - os.stat(Path(home.objects(), sent[:2], sent[2:])).st_mtime < 60


def test_they_have_their_own_names_while_they_are_installed_and_leave_nothing(home, tmp_path):
    sent = manifest(home, ("six-1.whl", store(home, b"six"), 3))
    with shipped_packages.laid_out(home, sent, str(tmp_path)) as folder:
        assert {path.name: path.read_bytes() for path in Path(folder).iterdir()} == {"six-1.whl": b"six"}
    assert not os.path.exists(folder)
    assert os.path.exists(Path(home.objects(), store(home, b"six")[:2]))


@pytest.mark.parametrize(
    ("name", "words"),
    [("gone-1.whl", "gone-1"), *((name, "not the name of a package") for name in ("../x.whl", "a/b.whl", "", ".."))],
)
def test_one_that_is_gone_is_named_and_no_name_leads_out_of_the_folder(home, tmp_path, name, words):
    sent = manifest(home, (name, "0" * 64 if "gone" in name else store(home, b"six"), 3))
    with pytest.raises(Refused, match=words), shipped_packages.laid_out(home, sent, str(tmp_path)):
        pass
    assert not os.path.exists(tmp_path / shipped_packages.FOLDER)


def test_what_the_lock_has_by_an_address_is_named_by_its_file(tmp_path):
    (tmp_path / "torch-2+cu121-py3.whl").write_bytes(b"")
    lines = [
        "six==1.16.0 --hash=sha256:aa",
        "torch @ https://me:${HOLDFAST_INDEX_1}@index.example/whl/torch-2%2Bcu121-py3.whl#x \\",
        "    --hash=sha256:bb",
        "other @ https://index.example/other-1.whl",
        "${HOLDFAST_FILES}/own-1.whl",
    ]
    expected = list(lines)
    expected[1] = f"torch @ file://{tmp_path}/torch-2%2Bcu121-py3.whl \\"

    assert shipped_packages.from_folder("\n".join(lines), str(tmp_path)).splitlines() == expected


def test_the_installer_is_told_to_look_nowhere_else():
    assert shipped_packages.install_arguments("/x") == ["--offline", "--no-index", "--no-config", "--find-links", "/x"]
