"""No test sees the machine it runs on, or another test."""

import os
from pathlib import Path

import pytest


def test_home_is_empty_and_everything_points_into_it(isolated):
    assert Path.home() == isolated
    assert list(isolated.iterdir()) == []
    for name in ("HOLDFAST_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        assert Path(os.environ[name]).is_relative_to(isolated)


def test_nothing_of_an_active_environment_or_run_is_seen():
    assert not {"VIRTUAL_ENV", "CONDA_PREFIX", "GIT_DIR", "AZUREML_RUN_ID", "PYTHONPATH"} & set(os.environ)


def test_a_missing_part_is_a_skip_here_and_a_failure_in_continuous_integration(needs, monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="needs no-such-program"):
        needs("sh", "no-such-program")

    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="needs no-such-program"):
        needs("sh", "no-such-program")
    needs("sh")
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    needs("sh")
    with pytest.raises(pytest.fail.Exception, match="needs root"):
        needs("sh", root=True)
