"""`holdfast computetarget`: attach, list, show, detach."""

from __future__ import annotations

from dataclasses import asdict

import click

from holdfast.cli import terminal
from holdfast.cli.here import current_project
from holdfast.cli.options import target_names, target_types
from holdfast.cli.output import Column, Group, Output, output_options
from holdfast.errors import UnknownName, UsageError

group = Group("computetarget", help="Attach, list and detach compute targets.")

_NAME = click.option(
    "-n", "--name", required=True, metavar="NAME", shell_complete=target_names, help="The stem of NAME.compute."
)


@group.command("attach")
@click.argument("type", required=False, metavar="[TYPE]", shell_complete=target_types)
@click.option(
    "--type",
    "typed",
    metavar="TYPE",
    shell_complete=target_types,
    help="The same as TYPE, as older versions wrote it.",
)
@_NAME
@click.option("-a", "--address", metavar="HOST[:PORT]", help="Host name, IP address, or a name of ~/.ssh/config.")
@click.option("-u", "--username", metavar="USER", help="Account on that machine.")
@click.option("-w", "--password", metavar="P", help="Used once to put a key there, never stored. Better: be asked.")
@click.option("-k", "--use-azureml-ssh-key", is_flag=True, help="Print a public key to append on the machine instead.")
@click.option("--private-key-file", metavar="F", help="A private key that already opens the account.")
@click.option("--private-key-passphrase", metavar="P", help="Its passphrase. Better: use ssh-agent.")
def attach_command(
    type: str | None,  # noqa: A002 - the word users type
    typed: str | None,
    name: str,
    address: str | None,
    username: str | None,
    password: str | None,
    use_azureml_ssh_key: bool,
    private_key_file: str | None,
    private_key_passphrase: str | None,
) -> None:
    """Attach a machine as the compute target NAME.

    TYPE is one of local, docker, remote, remotedocker, cluster. Looks at the machine first, and writes
    aml_config/NAME.compute and NAME.runconfig only when runs will work there.
    """
    from holdfast.workbench.configuring import Attachment, attach

    kind = type or typed
    if kind is None or (type and typed and type != typed):
        raise UsageError("Say which type of machine, once.", "holdfast computetarget attach local -n NAME")
    del password, use_azureml_ssh_key, private_key_file, private_key_passphrase  # for types that are reached over SSH
    for file in attach(current_project(), Attachment(name, kind, address, username)):
        click.echo(file)
    terminal.hint(f"Run on it: holdfast submit -c {name} SCRIPT")


@group.command("list")
@output_options
def list_command(output: Output) -> None:
    """List the compute targets; a file with problems is named, with them."""
    from holdfast.workbench.configuring import list_targets

    rows = []
    for each in list_targets(current_project()):
        target = each.target
        rows.append(
            {
                "name": each.name,
                "type": target.type if target else None,
                "address": target.address if target else None,
                "username": target.username if target else None,
                "file": each.file or "(built in)",
            }
        )
        for problem in each.problems:
            terminal.warning(str(problem))
    titles = {"name": "Name", "type": "Type", "address": "Address", "username": "User", "file": "File"}
    output.show(rows, [Column(key, title) for key, title in titles.items()])


@group.command("show")
@click.argument("target", required=False, metavar="[NAME]", shell_complete=target_names)
@click.option("-n", "--name", metavar="NAME", help="The same as NAME.")
@output_options
def show_command(target: str | None, name: str | None, output: Output) -> None:
    """Show one compute target: every setting, defaults included."""
    from holdfast.errors import ConfigurationError
    from holdfast.workbench.configuring import list_targets

    wanted = target or name
    if wanted is None:
        raise UsageError("Say which compute target.", "holdfast computetarget list")
    listed = {each.name: each for each in list_targets(current_project())}
    if wanted not in listed:
        raise UnknownName("compute target", wanted, listed)
    found = listed[wanted]
    if found.target is None:
        raise ConfigurationError(found.problems)
    for problem in found.problems:
        terminal.warning(str(problem))
    output.show({**asdict(found.target), "file": found.file or "(built in)"})


@group.command("detach")
@_NAME
def detach_command(name: str) -> None:
    """Remove NAME.compute, and NAME.runconfig if it points there. The machine and past runs stay as they are."""
    from holdfast.workbench.configuring import detach

    removed, others = detach(current_project(), name)
    for file in removed:
        terminal.notice(f"removed aml_config/{file}")
    if others:
        terminal.warning(f"Run configurations that still name `{name}`: {', '.join(others)}")
