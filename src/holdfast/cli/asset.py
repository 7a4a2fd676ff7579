"""`holdfast asset`: fetch what was promoted from a run."""

from __future__ import annotations

from pathlib import Path

import click

from holdfast.cli.here import current_project
from holdfast.cli.options import download_options
from holdfast.cli.output import Group

group = Group("asset", help="Download what was promoted from a run.")


@group.command("download")
@click.option(
    "-l",
    "--link-file",
    required=True,
    metavar="LINK",
    type=click.Path(path_type=Path),
    help="The link that `history promote` wrote: assets/NAME.link.",
)
@download_options
def download_command(link_file: Path, directory: Path, overwrite: bool) -> None:
    """Copy the file that a link leads to, checked against the digest in the link."""
    from holdfast.workbench.records.promotion import download_asset

    click.echo(download_asset(current_project(), link_file, directory, overwrite))
