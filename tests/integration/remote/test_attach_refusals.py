"""What `computetarget attach remote` refuses, each with its own sentence, and without writing anything."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.attaching import PASSWORD, attach, authorized, own_keys, written
from kit.boxes import Box, Boxes
from kit.sshd import Client, Options
from kit.suite.missing_parts import leave_out

Run = Callable[..., Any]
Make = Callable[..., Box]
BY_PASSWORD = {"HOLDFAST_PASSWORD": PASSWORD}


@pytest.fixture
def unwritten(tmp_path: Path, isolated: Path) -> Iterator[None]:
    """No Holdfast file is left on this side when the test ends."""
    yield
    assert written(tmp_path) == []
    assert own_keys(isolated) == []


@pytest.mark.usefixtures("unwritten")
class TestGettingIn:
    def test_a_wrong_password_is_said_to_be_wrong(self, holdfast: Run, box: Make) -> None:
        gpu1 = box(password="another", key=False)
        result = attach(holdfast, gpu1, env=BY_PASSWORD)
        assert result.code == 245
        assert result.err.splitlines()[0].endswith("did not accept the password.")
        assert authorized(gpu1) == ""

    def test_a_server_without_passwords_says_what_it_takes(self, holdfast: Run, box: Make) -> None:
        gpu1 = box(password=PASSWORD, key=False, options=Options(password=False))
        result = attach(holdfast, gpu1, env=BY_PASSWORD)
        assert result.code == 245
        assert "does not take passwords. It takes: publickey." in result.err
        assert "-k" in result.err

    def test_without_a_terminal_the_error_says_where_a_password_can_be_given(self, holdfast: Run, box: Make) -> None:
        result = attach(holdfast, box(password=PASSWORD, key=False))
        assert result.code == 245
        assert "Your own keys do not open" in result.err
        assert "HOLDFAST_PASSWORD" in result.err

    def test_a_server_that_forbids_keys_gets_a_sentence_and_keeps_none(self, holdfast: Run, box: Make) -> None:
        gpu1 = box(password=PASSWORD, key=False, options=Options(keys=False))
        gpu1.account.write(".ssh/authorized_keys", "# mine", 0o600)
        result = attach(holdfast, gpu1, env=BY_PASSWORD)
        assert result.code == 245
        assert "does not take keys, which Holdfast needs after the first login; it takes: password." in result.err
        assert "PubkeyAuthentication yes" in result.err
        assert authorized(gpu1).rstrip("\n") == "# mine"

    def test_a_server_that_looks_for_keys_elsewhere_gets_a_sentence(self, holdfast: Run, box: Make) -> None:
        options = Options(extra=["AuthorizedKeysFile /etc/ssh/keys-of-%u"])
        gpu1 = box(password=PASSWORD, key=False, options=options)
        result = attach(holdfast, gpu1, env=BY_PASSWORD)
        assert result.code == 245
        assert "AuthorizedKeysFile" in result.err
        assert "ssh-ed25519" not in authorized(gpu1)

    def test_a_configuration_of_my_own_that_forbids_keys_is_thought_of(self, holdfast: Run, box: Make) -> None:
        gpu1 = box(password=PASSWORD, key=False)
        config = gpu1.client.folder / "config"
        config.write_text(f"PubkeyAuthentication no\n{config.read_text()}")
        result = attach(holdfast, gpu1, env=BY_PASSWORD)
        assert result.code == 245
        assert "~/.ssh/config forbid keys" in result.err

    def test_where_ssh_cannot_say_which_machine_asks_the_password_is_given_to_none(
        self, holdfast: Run, box: Make, tmp_path: Path
    ) -> None:
        """A program without `-G` stands in for an old ssh."""
        gpu1 = box(password=PASSWORD, key=False)
        ssh = tmp_path / "ssh"
        real = gpu1.environment["HOLDFAST_SSH"]
        ssh.write_text(f'#!/bin/sh\nfor word; do [ "$word" = -G ] && exit 255; done\nexec {real} "$@"\n')
        ssh.chmod(0o755)
        result = attach(holdfast, gpu1, env={**BY_PASSWORD, "HOLDFAST_SSH": str(ssh)})
        assert result.code == 245
        assert "The password was not given to" in result.err
        assert authorized(gpu1) == ""

    def test_a_home_that_others_may_write_to_is_named(self, holdfast: Run, box: Make) -> None:
        gpu1 = box(password=PASSWORD, key=False)
        gpu1.account.home.chmod(0o777)
        result = attach(holdfast, gpu1, env=BY_PASSWORD)
        assert result.code == 245
        assert f"chmod go-w {gpu1.account.home}" in result.err

    def test_an_unknown_host_key_is_shown_and_no_other_is_accepted(self, holdfast: Run, box: Make) -> None:
        gpu1 = box("gpu1")
        gpu1.client.known_hosts.write_text("")
        unknown = attach(holdfast, gpu1)
        assert unknown.code == 245
        assert f"is not known here: {gpu1.server.fingerprint}." in unknown.err
        assert f"--accept-host-key {gpu1.server.fingerprint}" in unknown.err
        wrong = attach(holdfast, gpu1, "--accept-host-key", "SHA256:" + "A" * 43)
        assert wrong.code == 245
        assert gpu1.client.known_hosts.read_text() == ""

    def test_a_changed_host_key_is_refused_with_the_reason(self, holdfast: Run, box: Make) -> None:
        gpu1 = box("gpu1")
        gpu1.server.rotate_host_key()
        result = attach(holdfast, gpu1, "--accept-host-key", gpu1.server.fingerprint)
        assert result.code == 245
        assert f"(now {gpu1.server.fingerprint})" in result.err and "sed -i " in result.err

    def test_a_machine_that_does_not_answer_is_unreachable(self, holdfast: Run, box: Make) -> None:
        gpu1 = box("gpu1")
        gpu1.server.stop()
        assert attach(holdfast, gpu1).code == 245


@pytest.mark.usefixtures("unwritten")
@pytest.mark.parametrize(
    "words",
    [
        ["--address", "me@gpu1"],
        ["--address", "gpu1:0"],
        ["--address", "gpu1", "--username", "-oProxyCommand=x"],
        ["--address", "gpu1", "--home", "scratch"],
        ["--address", "gpu1", "-k", "--password", "x"],
        ["--address", "gpu1", "--private-key-file", "nowhere"],
        ["--address", "gpu1", "--private-key-passphrase", "x"],
        ["--address", "gpu1", "--accept-host-key", "yes"],
        ["--address", ""],
        [],
    ],
)
def test_what_makes_no_sense_is_said_before_anything_is_tried(holdfast: Run, words: list[str]) -> None:
    environment = {"HOLDFAST_SSH": "/nowhere/ssh"}
    assert holdfast("computetarget", "attach", "remote", "-n", "gpu1", *words, env=environment).code == 240


def test_a_name_that_is_taken_is_said_before_anything_is_asked(holdfast: Run, tmp_path: Path) -> None:
    assert holdfast("computetarget", "attach", "local", "-n", "gpu1").code == 0
    words = ["attach", "remote", "-n", "gpu1", "-a", "gpu1"]
    taken = holdfast("computetarget", *words, env={"HOLDFAST_SSH": "/nowhere/ssh"})
    assert taken.code == 242
    assert "computetarget detach -n gpu1" in taken.err


@pytest.mark.usefixtures("unwritten")
class TestTheMachine:
    def test_a_python_that_is_too_old_is_named(self, holdfast: Run, box_with_programs: Make) -> None:
        """A program named python3 stands in, which says that it is 3.4 and runs its arguments."""
        old = (
            "#!/usr/bin/python3 -S\nimport sys\nsys.version_info = (3, 4, 2)\n"
            "at = sys.argv.index('-c')\nsys.argv[:] = ['-c'] + sys.argv[at + 2:]\nexec(sys.orig_argv[at + 3])\n"
        )
        result = attach(holdfast, box_with_programs({"python3": old}))
        assert result.code == 245
        assert "is 3.4; Holdfast needs 3.6 or newer there." in result.err

    def test_a_machine_without_python_is_told_so(self, holdfast: Run, box: Make) -> None:
        result = attach(holdfast, box("gpu1", options=Options(environment={"PATH": "/nowhere"})))
        assert result.code == 245
        assert "has no `python3`" in result.err

    def test_a_read_only_home_gets_its_own_sentence(self, holdfast: Run, box: Make) -> None:
        gpu1 = box("gpu1")
        with mounted(gpu1.account.home / ".holdfast", f"ro,size=1m,mode=700,uid={gpu1.account.uid}"):
            result = attach(holdfast, gpu1)
        assert result.code == 244
        assert "read-only file system" in result.err
        assert "--home" in result.err

    def test_a_full_home_gets_its_own_sentence(self, holdfast: Run, box: Make) -> None:
        gpu1 = box("gpu1")
        with mounted(gpu1.account.home / ".holdfast", f"size=32k,mode=700,uid={gpu1.account.uid}"):
            result = attach(holdfast, gpu1)
        assert result.code == 244
        assert f"`{gpu1.account.home}/.holdfast" in result.err and "Make room" in result.err

    def test_a_machine_that_ends_processes_at_logout_needs_lingering(
        self, holdfast: Run, box_with_programs: Make
    ) -> None:
        """No systemd runs here: the server ends what a connection leaves, and programs named loginctl and systemd-run
        stand in on the account's PATH."""
        programs = {"loginctl": "#!/bin/sh\necho Linger=no\n", "systemd-run": "#!/bin/sh\nexit 1\n"}
        gpu1 = box_with_programs(programs, kills_at_logout=True)
        result = attach(holdfast, gpu1)
        assert result.code == 245
        assert "ends a user's processes at logout" in result.err
        assert f"sudo loginctl enable-linger {gpu1.account.name}" in result.err

    def test_a_machine_that_ends_processes_and_knows_no_lingering_is_refused(self, holdfast: Run, box: Make) -> None:
        result = attach(holdfast, box("gpu1", options=Options(kills_at_logout=True)))
        assert result.code == 245
        assert "Ask its administrator" in result.err

    def test_a_key_that_was_put_there_is_taken_back_when_runs_would_not_work(self, holdfast: Run, box: Make) -> None:
        gpu1 = box(password=PASSWORD, key=False, options=Options(kills_at_logout=True))
        assert attach(holdfast, gpu1, env=BY_PASSWORD).code == 245
        assert "ssh-ed25519" not in authorized(gpu1)


LINGERING = "#!/bin/sh\necho Linger=yes\n"
UNIT = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do echo "$1" >> ~/units; shift; done
echo "$@" >> ~/units
HOLDFAST_TEST_SPARED=1 exec "$@"
"""


def test_where_the_account_lingers_runs_start_as_units_of_its_own(
    holdfast: Run, box_with_programs: Make, tmp_path: Path
) -> None:
    """No systemd runs here: a program named systemd-run stands in, whose processes the server spares at logout."""
    gpu1 = box_with_programs({"loginctl": LINGERING, "systemd-run": UNIT}, kills_at_logout=True)
    result = attach(holdfast, gpu1)
    assert result.code == 0, result.err
    assert "so runs are started as units of its own" in result.err
    assert (gpu1.home / "settings.json").read_text() == '{"format": 1, "start": "user-unit"}'
    assert holdfast("computetarget", "check", "gpu1", env=gpu1.environment).code == 0

    (tmp_path / "t.py").write_text("import os; open('outputs/x', 'w').write(os.environ['API_KEY'][:3]); print('ran')")
    runconfig = tmp_path / "aml_config/gpu1.runconfig"
    runconfig.write_text(runconfig.read_text() + "Secrets:\n  - API_KEY\n")
    environment = {**gpu1.environment, "API_KEY": "tell-nobody"}
    ran = holdfast("submit", "-c", "gpu1", "t.py", env=environment)
    assert (ran.code, ran.out) == (0, "ran\n"), ran.err
    units = (gpu1.account.home / "units").read_text()
    assert "--user\n--scope\n--quiet\n--collect\n" in units
    assert "detached hf-guardian" in units
    assert "tell-nobody" not in units


@pytest.fixture
def box_with_programs(boxes: Boxes, client: Client) -> Callable[..., Box]:
    """A box whose logins find these programs first on PATH."""

    def make(programs: dict[str, str], kills_at_logout: bool = False) -> Box:
        account = boxes.account()
        for name, text in programs.items():
            account.write(f"programs/{name}", text, 0o755)
        path = f"{account.home}/programs:/usr/local/bin:/usr/bin:/bin"
        server = boxes.server(Options(environment={"PATH": path}, kills_at_logout=kills_at_logout))
        return boxes.box("gpu1", client, account, server)

    return make


class mounted:  # noqa: N801 - reads as the statement it is
    """A small file system at `path`, while the block runs."""

    def __init__(self, path: Path, options: str) -> None:
        self._path, self._options = path, options

    def __enter__(self) -> None:
        self._path.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", self._options, "tmpfs", str(self._path)], capture_output=True, text=True
        )
        if done.returncode != 0:
            leave_out("the right to mount")

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", "-l", str(self._path)], check=True)
