"""`holdfast computetarget`: attach, list, show, check, gpus, detach."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from holdfast.cli import terminal
from holdfast.cli.command_context import any_project, current_context, read_target
from holdfast.cli.options import named_target, target_names, target_types
from holdfast.cli.output_format import CliCommand, Output, output_options
from holdfast.cli.screen import show_until
from holdfast.cli.tables import draw_page
from holdfast.errors import ExitCode, HoldfastError, UsageError
from holdfast.frozen import asdict
from holdfast.hosts.replies import Inventory
from holdfast.hosts.ssh_questions import Secret
from holdfast.presenting.machine_page import rows
from holdfast.project.compute import ComputeTarget, written_keys
from holdfast.project.quantities import format_size
from holdfast.shown_text import pasted
from holdfast.workbench.machines import detach
from holdfast.workbench.machines.answers import Ways
from holdfast.workbench.machines.attach import Attached, AttachRequest, attach_docker, attach_remote
from holdfast.workbench.machines.named_python import start_here
from holdfast.workbench.machines.target_files import attach_local, owner_of, target_type
from holdfast.workbench.machines.target_owners import TargetOwner, owner_of_new
from holdfast.workbench.reach.context import Context

OVER_SSH, IN_CONTAINERS = ("remote", "remotedocker"), ("docker", "remotedocker")


@click.command("attach", cls=CliCommand)
@click.argument("type", required=False, metavar="[TYPE]", shell_complete=target_types)
@click.option(
    "--type",
    "typed",
    metavar="TYPE",
    shell_complete=target_types,
    help="The same as TYPE, as older versions wrote it.",
)
@click.option("-n", "--name", metavar="NAME", shell_complete=target_names, help="The stem of NAME.compute.")
@click.option("--user", "of_account", is_flag=True, help="For all your projects, not only for this one.")
@click.option("-a", "--address", metavar="HOST[:PORT]", help="Host name, IP address, or a name of ~/.ssh/config.")
@click.option("-u", "--username", metavar="USER", help="Account on that machine. [default: what ssh would use]")
@click.option(
    "-w",
    "--password",
    metavar="P",
    help="Used once to put a key there, never stored. The shell's history keeps it: better be asked, or set "
    "HOLDFAST_PASSWORD.",
)
@click.option(
    "-k",
    "--use-azureml-ssh-key",
    is_flag=True,
    help="Print a public key for you to append on the machine; the same command again then uses it.",
)
@click.option("--private-key-file", metavar="F", help="A private key that already opens the account.")
@click.option(
    "--private-key-passphrase", metavar="P", help="Its passphrase, used once as a password is. Better: use ssh-agent."
)
@click.option(
    "--home",
    metavar="DIR",
    help="Folder for all that Holdfast puts on the machine, such as one on a scratch disk. [default: ~/.holdfast]",
)
@click.option(
    "--image",
    metavar="IMAGE",
    help="What containers are made from (`baseDockerImage`). For docker and remotedocker. [default: ubuntu:24.04]",
)
@click.option(
    "--python",
    metavar="PATH",
    help="Runs use this Python, such as that of a venv: its path on the machine or, in containers, in the image.",
)
@click.option(
    "--accept-host-key",
    "accepted",
    multiple=True,
    metavar="FINGERPRINT",
    help="The machine's key, if it is not known here: SHA256:… For scripts; once for each machine on the way.",
)
def attach_command(
    type: str | None,  # noqa: A002 - the word users type
    typed: str | None,
    name: str | None,
    of_account: bool,
    address: str | None,
    username: str | None,
    password: str | None,
    use_azureml_ssh_key: bool,
    private_key_file: str | None,
    private_key_passphrase: str | None,
    home: str | None,
    image: str | None,
    python: str | None,
    accepted: tuple[str, ...],
) -> None:
    """Attach a machine as the compute target NAME.

    TYPE is one of local, docker, remote, remotedocker, cluster. `remote` is any Linux machine with sshd and python3 3.6
    or newer; `remotedocker` the same, with Docker, and scripts run in containers there; `docker` (or `localdocker`) is
    Docker on this machine. Looks at the machine first, tries a container, with its GPUs if it has some, and writes
    aml_config/NAME.compute and NAME.runconfig only when runs will work there. With `--user` both go to your own
    settings folder, and every project sees the target. A project's own target of the same name comes first.

    It gets in as `ssh` does: your keys, agent, ~/.ssh/config and jump hosts. Where those do not suffice it asks for the
    password once, puts a key of its own there, and forgets the password.

    \b
    holdfast computetarget attach remote --name gpu1 --address gpu1.example.com --username me
    holdfast computetarget attach remote -n gpu1 -a gpu1 --home /scratch/me/holdfast
    holdfast computetarget attach remotedocker -n my_dsvm -a dsvm.example.com -u me
    holdfast computetarget attach remote --user -n gpu1 -a gpu1 --python '~/venvs/torch/bin/python'
    holdfast computetarget attach docker -n box --image nvcr.io/nvidia/pytorch:24.10-py3
    """
    if type and typed and type != typed:
        raise UsageError("Say which type of machine, once.", f"Leave out {typed} or {type}.")
    written = type or typed
    kind = target_type(written) if written else None
    if kind is None or not name or (kind in OVER_SSH and not address):
        raise _missing(kind, name, address)
    if image is not None and kind not in IN_CONTAINERS:
        other = f"holdfast computetarget attach {'remotedocker' if kind in OVER_SSH else 'docker'} …"
        raise UsageError(f"A `{kind}` target runs no containers.", f"Leave out --image, or: {other}")
    context = current_context()
    owner = owner_of_new(name, of_account, context)
    ways = _ways(password, private_key_file, private_key_passphrase, use_azureml_ssh_key, accepted)
    if kind in OVER_SSH and address:
        _attach_remote(owner, AttachRequest(name, address, username, home, ways, kind, image, python), context)
        return
    if address or username or home:
        message = f"A `{kind}` target is this machine: it has no address, user or folder of its own."
        raise UsageError(message, _beside_this_machine(kind, home))
    _attach_here(owner, ComputeTarget(name, kind, base_docker_image=image, python_location=python), context)


@click.command("show", cls=CliCommand)
@named_target
@output_options
def show_command(name: str, output: Output) -> None:
    """Show one compute target as its file has it, and what Holdfast has on the machine, with sizes.

    As JSON: every setting, defaults included. Never asks for a password: a machine that would, or that cannot be
    reached, is said to be so.
    """
    context = current_context()
    found = read_target(any_project(context), name)
    file = found.file or "(built in)"
    if output.query is not None or output.chosen_format() != "table":
        output.show({**asdict(found), "file": file, "stored": _as_dict(_inventory(found, context))})
        return
    output.show({"name": found.name, "file": file, **written_keys(found)})
    there = _inventory(found, context)
    if there is not None:
        for line in ("", *_page(there), _how_many_runs(there)):
            terminal.data(line)


@click.command("detach", cls=CliCommand)
@named_target
@click.option(
    "--force",
    is_flag=True,
    help="Also while runs on it have not ended, or their outputs are not at home. A purge has to wait for them.",
)
@click.option(
    "--purge",
    is_flag=True,
    help="Remove everything of Holdfast's from the machine too. Other projects and laptops that use the account lose "
    "their runs there.",
)
@click.option(
    "--user", "of_account", is_flag=True, help="Detach your own target, even if the project has one of that name."
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask before a purge.")
def detach_command(name: str, force: bool, purge: bool, of_account: bool, yes: bool) -> int:
    """Remove NAME.compute, and NAME.runconfig if it points there; past runs stay in the history.

    A key that `attach` put on the machine is taken away. With `--purge` all of Holdfast's folder there goes: runs,
    environments, shared folders, and containers of ours; images stay. It is refused while a run lives there, shows what
    would go, and asks first.
    """
    context = current_context()
    project = any_project(context)
    owner = owner_of(project, name, of_account, context)
    if purge:
        checked, there = detach.before_purge(owner, project, name, context, force)
        if not _confirm_purge(checked.name, there, yes):
            return ExitCode.DECLINED
    how = detach.HowToDetach(force, purge)
    ended = show_until(detach.detach(owner, project, name, context, how), detach.TargetDetached)
    for file in ended.removed:
        terminal.notice(f"removed {file}")
    if ended.others:
        terminal.warning(f"Run configurations that still name `{name}`: {', '.join(ended.others)}")
    return 0


def _missing(kind: str | None, name: str | None, address: str | None) -> UsageError:
    """All that is missing at once, and a line that has it."""
    lacking = [
        *(["TYPE (`local` or `docker` here, `remote` or `remotedocker` over SSH)"] if kind is None else []),
        *(["--name NAME"] if not name else []),
        *(["--address HOST[:PORT], or a name of ~/.ssh/config"] if kind in OVER_SSH and not address else []),
    ]
    whole = f"holdfast computetarget attach {kind or 'remote'} --name {pasted(name or 'NAME')}"
    more = f" --address {pasted(address or 'HOST')}" if kind is None or kind in OVER_SSH else ""
    return UsageError(f"What is missing: {'; '.join(lacking)}.", whole + more)


def _beside_this_machine(kind: str, home: str | None) -> str:
    other = "remotedocker" if kind in IN_CONTAINERS else "remote"
    if home is not None:
        return (
            f"Leave out --home, and name the folder of all that is on this machine: export HOLDFAST_HOME={pasted(home)}"
        )
    return f"Leave out --address and the like. For another machine: holdfast computetarget attach {other} …"


def _attach_here(owner: TargetOwner, wanted: ComputeTarget, context: Context) -> None:
    if wanted.type == "docker":
        _show_attached(show_until(attach_docker(owner, wanted, context), Attached))
        return
    python = wanted.python_location
    if python is not None:
        python, done = start_here(python, context)
        terminal.notice(done.text)
    for file in attach_local(owner, wanted.name, python):
        terminal.data(file)
    terminal.hint(f"Run on it: holdfast submit -c {pasted(wanted.name)} SCRIPT")


def _ways(
    password: str | None, key_file: str | None, passphrase: str | None, shows_key: bool, accepted: tuple[str, ...]
) -> Ways:
    return Ways(
        Secret(password) if password is not None else None,
        Path(key_file) if key_file is not None else None,
        Secret(passphrase) if passphrase is not None else None,
        shows_key,
        accepted,
    )


def _attach_remote(owner: TargetOwner, wanted: AttachRequest, context: Context) -> None:
    ways = wanted.ways
    if ways.password is not None or ways.passphrase is not None:
        terminal.warning("What was typed on the command line stays in the shell's history.")
        terminal.hint("Leave it out to be asked, or set HOLDFAST_PASSWORD.")
    _show_attached(show_until(attach_remote(owner, wanted, context), Attached))


def _show_attached(attached: Attached) -> None:
    draw_page(rows(attached.facts, attached.findings, attached.engine), sys.stderr)
    for file in attached.files:
        terminal.data(file)
    terminal.hint(f"Run on it: holdfast submit -c {pasted(attached.target.name)} SCRIPT")


def _inventory(target: ComputeTarget, context: Context) -> Inventory | None:
    """What is on the machine; None, and a word why, where it cannot be asked."""
    try:
        return detach.inventory(target, context, may_ask=False)
    except HoldfastError as error:
        terminal.warning(f"What is on the machine is not known: {error.message}")
        terminal.hint(error.hint)
        return None


def _as_dict(there: Inventory | None) -> dict[str, Any] | None:
    """With lists, as queries do not look into tuples."""
    if there is None:
        return None
    return {
        "home": there.home,
        "size": there.size,
        "folders": [each._asdict() for each in there.stored],
        "runs": [each._asdict() for each in there.runs],
    }


def _page(there: Inventory) -> list[str]:
    rows = [*((each.name, each.size) for each in there.stored), ("together", there.size)]
    return [f"{there.home} on the machine:", *(f"  {name:<16} {format_size(size):>10}" for name, size in rows)]


def _confirm_purge(name: str, there: Inventory, sure: bool) -> bool:
    terminal.notices(_page(there))
    terminal.notice(
        f"{_how_many_runs(there)} Other projects and laptops that use this account there use this folder too."
    )
    place = f"{there.home} on `{name}`"
    return sure or terminal.agreed(f"Remove all that Holdfast has in {place}?", "A purge needs confirmation.")


def _how_many_runs(there: Inventory) -> str:
    runs, projects = sum(each.runs for each in there.runs), len(there.runs)
    what = "No run is" if not runs else "1 run is" if runs == 1 else f"{runs} runs are"
    of = f", of {projects} projects" if projects > 1 else ""
    alive = f"; {there.living or 'none'} alive" if runs else ""
    return f"{what} there{of}{alive}."
