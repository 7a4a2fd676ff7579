"""A box gets nothing of the laptop but what a run needs: not its keys, its display or its tickets."""

import os
import subprocess

import pytest

from kit.waiting import wait_for

SCRIPT = """
    import os
    print("agent:", os.environ.get("SSH_AUTH_SOCK", "none"), flush=True)
    print("display:", os.environ.get("DISPLAY", "none"), flush=True)
"""


@pytest.fixture
def agent(tmp_path):
    """The socket of a real ssh-agent."""
    path = tmp_path / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL)
    wait_for(path.exists, what="the agent listens")
    yield path
    process.terminate()
    process.wait()


def test_a_box_does_not_get_the_agent_that_the_users_configuration_forwards(far_bench, agent):
    bench = far_bench()
    config = bench.box.client.config
    config.write_text(f"ForwardAgent yes\nIdentityAgent {agent}\n{config.read_text()}")
    by_hand = bench.box.client.run(
        bench.box.name, "--", "echo agent: $SSH_AUTH_SOCK", env={"SSH_AUTH_SOCK": str(agent)}
    )
    assert "agent: /tmp/ssh-" in by_hand.stdout  # this configuration does forward it
    bench.write("t.py", SCRIPT)
    result = bench.submit("t.py", env={"SSH_AUTH_SOCK": str(agent), "DISPLAY": ":99"})
    assert result.code == 0, result.err
    assert "agent: none\ndisplay: none\n" in result.out


def test_no_process_on_the_box_finds_the_agent_while_a_run_is_followed(far_bench, agent):
    bench = far_bench()
    config = bench.box.client.config
    config.write_text(f"ForwardAgent yes\nIdentityAgent {agent}\n{config.read_text()}")
    before = set(os.listdir("/tmp"))
    bench.begin("import time\nprint('up', flush=True)\ntime.sleep(60)\n", env={"SSH_AUTH_SOCK": str(agent)})
    with bench.popen("logs", "-f", env={"SSH_AUTH_SOCK": str(agent)}) as follower:
        assert follower.stdout.read(1) == b"u"
        new = [name for name in os.listdir("/tmp") if name.startswith("ssh-") and name not in before]
        found = [name for name in new if _owner(name) == _uid(bench)]
        follower.kill()
    assert found == []


def test_a_shell_does_not_get_the_agent_either(far_bench, agent, tmp_path):
    """Over a connection of the user's own, which would forward it; Holdfast's own would not."""
    bench = far_bench()
    ssh = bench.box.client
    shared = f"ControlMaster auto\nControlPath {tmp_path}/shared\n"
    ssh.config.write_text(f"ForwardAgent yes\nIdentityAgent {agent}\n{shared}{ssh.config.read_text()}")
    bench.write("t.py", "print(1)\n")
    ssh.run("-MNf", bench.box.name, env={"SSH_AUTH_SOCK": str(agent)})
    try:
        assert bench.submit("t.py", env={"SSH_AUTH_SOCK": str(agent)}).code == 0
        words = ("sh", "-c", "echo agent: ${SSH_AUTH_SOCK:-none}")
        done = bench.run("experiment", "shell", "-r", "last", "--", *words, env={"SSH_AUTH_SOCK": str(agent)})
        by_hand = ssh.run(bench.box.name, "--", "echo agent: $SSH_AUTH_SOCK", env={"SSH_AUTH_SOCK": str(agent)})
    finally:
        ssh.run("-O", "exit", bench.box.name)
    assert done.out == "agent: none\n"
    assert "agent: /tmp/ssh-" in by_hand.stdout


def _owner(name):
    try:
        return os.stat(f"/tmp/{name}").st_uid
    except FileNotFoundError:
        return None


def _uid(bench):
    return bench.home.parent.stat().st_uid
