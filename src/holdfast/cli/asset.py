"""`holdfast asset`: fetch what was promoted from a run."""

from __future__ import annotations

from pathlib import Path

import click

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
@click.option(
    "-d",
    "--directory",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Where to put it.",
)
@click.option("--overwrite", is_flag=True, help="Replace a file that is there.")
def download_command(link_file: Path, directory: Path, overwrite: bool) -> None:
    """Copy the file that a link leads to, checked against the digest in the link."""
    from holdfast.project.folder import find_project
    from holdfast.workbench.promotion import download_asset

    project = find_project(Path.cwd())
    click.echo(download_asset(project, link_file, directory, overwrite))
