"""The options of ssh, whatever the user's own configuration says."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.hosts.ssh import Destination, Login, Near, Ssh


@pytest.fixture
def host(tmp_path: Path) -> Ssh:
    """Behind a jump host, by a configuration that would check no key."""
    (tmp_path / "config").write_text("StrictHostKeyChecking no\nHost gpu1\n  ProxyJump gate\n")
    near = Near(tmp_path, {"HOLDFAST_PASSWORD": "geheim", "LANG": "C"}, None, ("ssh", "-F", str(tmp_path / "config")))
    return Ssh(Destination("gpu1"), near)


@pytest.mark.parametrize("login", [Login(), Login(shares=False), Login(only_key=True), Login(only_password=True)])
def test_a_host_key_is_checked_by_a_person_for_every_login(host: Ssh, login: Login) -> None:
    words = Ssh(host.destination, host.near, login=login).argv(["true"], ["-T"], [])
    checks = [word for word in words if "hostkey" in word.lower() or "known" in word.lower()]
    assert checks == ["StrictHostKeyChecking=ask"]
    assert words[words.index(checks[0]) - 1] == "-o"


def test_keys_of_jump_hosts_are_checked_before_the_users_configuration_is_read(host: Ssh) -> None:
    words = host._checked_jumps({"proxyjump": "gate"})
    lines = Path(words[1]).read_text().splitlines()
    assert words[0] == "-F"
    assert lines == ["StrictHostKeyChecking ask", f'Include "{host.near.program[2]}"']  # ssh takes the first word on it


def test_no_program_is_given_the_password(host: Ssh) -> None:
    assert host.child_environment() == {"LANG": "C"}
    assert "geheim" not in repr(host.carrier(80).environment)
