"""Holdfast's keys, and secrets that are never shown."""

from __future__ import annotations

import os
import pickle

import pytest

from holdfast.errors import HostError
from holdfast.hosts.keys import ensure_key, is_ours, key_path, read_key, remove_key
from holdfast.hosts.ssh_questions import Secret


def test_a_key_is_made_once_and_only_its_owner_can_read_it(tmp_path):
    path = key_path(tmp_path, "gpu1", "0" * 32, "me@gpu1")
    key = ensure_key(path, "holdfast gpu1 me@laptop", os.environ)
    assert key.line == f"ssh-ed25519 {key.body} holdfast gpu1 me@laptop"
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert ensure_key(path, "another comment", os.environ) == key
    assert sorted(each.name for each in path.parent.iterdir()) == [path.name, f"{path.name}.pub"]
    path.with_name(f"{path.name}.pub").unlink()
    assert ensure_key(path, "", os.environ).body == key.body, "the public half can be made again"
    remove_key(path)
    remove_key(path)
    assert read_key(path, os.environ) is None


def test_a_key_belongs_to_a_project_and_an_account(tmp_path):
    paths = {
        key_path(tmp_path, "gpu1", project, account) for project in ("a", "b") for account in ("me@h", "me@h:2222")
    }
    assert len(paths) == 4
    assert all(is_ours(path, tmp_path) and path.name.startswith("gpu1-") for path in paths)
    assert not is_ours(tmp_path / ".ssh" / "id_ed25519", tmp_path)


def test_without_ssh_keygen_it_is_said(tmp_path):
    with pytest.raises(HostError, match="`ssh-keygen` is not installed"):
        ensure_key(tmp_path / "keys" / "x", "", {"PATH": "/nowhere"})


def test_a_secret_shows_nothing_of_itself():
    secret = Secret("hunter2")
    assert f"{secret} {secret!r} {[secret]} {secret.__dict__.keys()}".count("hunter2") == 0
    assert secret.reveal() == "hunter2"
    with pytest.raises(TypeError):
        pickle.dumps(secret)
