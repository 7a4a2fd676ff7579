from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.project import compute
from holdfast.project.compute import BUILTIN_LOCAL, ComputeTarget, compute_names, read_compute, render_compute
from holdfast.project.configuration_folders import ConfigurationFolders
from holdfast.project.problems import Mistake, Problem


def read_any(tmp_path: Path, text: str, name: str = "x") -> tuple[ComputeTarget | None, list[Problem]]:
    (tmp_path / "aml_config").mkdir(exist_ok=True)
    (tmp_path / "aml_config" / f"{name}.compute").write_text(text, encoding="utf-8")
    return read_compute(ConfigurationFolders(tmp_path), name)


def read(tmp_path: Path, text: str, name: str = "x") -> ComputeTarget:
    target, problems = read_any(tmp_path, text, name)
    assert target is not None, problems
    return target


def test_a_bare_folder_has_the_built_in_local_target(tmp_path):
    assert read_compute(ConfigurationFolders(tmp_path), "local") == (BUILTIN_LOCAL, [])
    assert compute_names(ConfigurationFolders(tmp_path)) == ["local"]
    assert BUILTIN_LOCAL.user_managed_environment and BUILTIN_LOCAL.file is None


def test_a_file_for_local_takes_the_place_of_the_built_in(tmp_path):
    target = read(tmp_path, "type: local\nuserManagedEnvironment: false\n", "local")
    assert not target.user_managed_environment
    assert target.file == "aml_config/local.compute"


@pytest.mark.parametrize(
    ("text", "managed_by_user"),
    [("type: local", True), ("type: docker", False), ("type: localdocker", False)]
    + [(f"type: {kind}\naddress: a\nusername: b", kind == "remote") for kind in ("remote", "remotedocker", "cluster")],
)
def test_who_manages_the_environment_depends_on_the_type(tmp_path, text, managed_by_user):
    assert read(tmp_path, text).user_managed_environment is managed_by_user


def test_both_spellings_of_docker_are_one_type(tmp_path):
    assert read(tmp_path, "type: localdocker").type == read(tmp_path, 'type: "Docker"').type == "docker"


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("gpu1", ("gpu1", None)),
        ("gpu1.example.com:2222", ("gpu1.example.com", 2222)),
        ("192.0.2.1:22", ("192.0.2.1", 22)),
        ("'::1'", ("::1", None)),
        ("'[2001:db8::1]:2222'", ("2001:db8::1", 2222)),
    ],
)
def test_an_address_may_hold_a_port(tmp_path, address, expected):
    target = read(tmp_path, f"type: remote\naddress: {address}\nusername: me\n")
    assert (target.address, target.port) == expected


BAD = {
    "address": ["-oProxyCommand=x", "a b", "ssh://a", "a:0", "a:65536", "a:x", "me@a", "a/b"],
    "username": [  # ssh's configuration may put it into a command
        *("-oProxyCommand=x", "me;id", "me`id`", "$(id)", "'a b'", "me@gpu1", "'me|id'", "me$x", "'me\\x'", "é")
    ],
    "holdfastHome": [
        *("scratch", "'~'", "'~you/x'", "$SCRATCH/x", "/", "//", "///.", "'~/'", "'~/.'", "'~/..'", "'~/x/..'"),
        "/home/me/../..",
    ],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in BAD.items() for value in values])
def test_what_is_no_host_no_name_of_a_user_or_no_folder_for_holdfast_alone_is_refused(tmp_path, key, value):
    others = {"address": "username: me"}.get(key, "address: a")
    target, problems = read_any(tmp_path, f"type: remote\n{others}\n{key}: {value}\n")
    assert target is None
    assert [(each.line, each.key) for each in problems] == [(3, key)]


def test_a_name_of_the_ssh_configuration_needs_no_user(tmp_path):
    target = read(tmp_path, "type: remote\naddress: gpu1\n")
    assert (target.address, target.username) == ("gpu1", None)


@pytest.mark.parametrize("user", ["me", "ada.lovelace", "_x-1", "box$", "0day"])
def test_a_user_name_is_made_of_few_letters(tmp_path, user):
    assert read(tmp_path, f"type: remote\naddress: gpu1\nusername: {user}\n").username == user


@pytest.mark.parametrize("home", ["/scratch/me", "~/hold fast", "//scratch/./me/", "~/.holdfast"])
def test_holdfasts_folder_there_may_be_another(tmp_path, home):
    assert read(tmp_path, f"type: remote\naddress: gpu1\nholdfastHome: {home}\n").home == home


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        *(("yes", True), ("On", True), ("TRUE", True), ('"true"', True), ("'Yes'", True)),
        *(("no", False), ("Off", False), ("FALSE", False), ('"false"', False)),
    ],
)
def test_every_spelling_of_true_and_false_is_understood(tmp_path, word, meant):
    target = read(tmp_path, f"type: docker\nnvidiaDocker: {word}\nuserManagedEnvironment: {word}\n")
    assert (target.nvidia_docker, target.user_managed_environment) == (meant, meant)


@pytest.mark.parametrize("password", ["hunter2", "AzureMlSecret=hunter2", "[hunter2]", "{hunter2: x}"])
def test_a_password_is_never_repeated(tmp_path, password):
    target, problems = read_any(tmp_path, f"type: remote\naddress: a\nusername: b\npassword: {password}\n")
    assert [each.key for each in problems] == ["password"]
    assert "hunter2" not in f"{target}{problems}"


def test_a_misspelt_required_key_is_said_once(tmp_path):
    _, problems = read_any(tmp_path, "Type: local\n")
    assert [str(each) for each in problems] == ["aml_config/x.compute:1: Type: unknown key. Write `type`."]


FILE = "aml_config/x.compute"


@pytest.mark.parametrize(
    "target",
    [
        ComputeTarget("x", "local", user_managed_environment=True, file=FILE),
        ComputeTarget("x", "cluster", "c", None, "me", yarn_deploy_mode="client", file=FILE),
        ComputeTarget("x", "remotedocker", "10.0.0.1", 22, "me", "~/.ssh/id", "img:1", True, True, file=FILE),
        ComputeTarget("x", "remote", "gpu1", home="/scratch/me/holdfast", user_managed_environment=True, file=FILE),
        ComputeTarget("x", "remote", "::1", 2222, "no", python_location="C:\\py thon", file=FILE),
        ComputeTarget("x", "local", native_shared_directory="~", spark_submit_location="/opt/s s", file=FILE),
    ],
)
def test_a_written_target_reads_as_the_same(tmp_path, target):
    assert read(tmp_path, render_compute(target)) == target


@pytest.mark.parametrize(
    ("written", "host"),
    [("ssh://gpu1", "gpu1"), ("ssh://me@gpu1:2222/", "gpu1:2222"), ("https://[::1]/x", "[::1]"), ("ssh://", "gpu1 or")],
)
def test_an_address_that_is_a_url_is_said_to_be_one_with_what_to_write(written, host):
    mistake = compute.parse_address(written)
    assert isinstance(mistake, Mistake)
    assert mistake.message == f"`{written}` is a URL"
    assert f"Write the host alone: {host}" in mistake.remedy


def test_what_a_file_says_has_the_names_of_the_file():
    target = compute.ComputeTarget("gpu1", "remote", "gpu1", 2222, home="/scratch/me", user_managed_environment=True)
    assert compute.written_keys(target) == {
        "type": "remote",
        "address": "gpu1:2222",
        "holdfastHome": "/scratch/me",
        "userManagedEnvironment": True,
    }
