"""A connection that is begun before the rest of a command is loaded: a login takes longer than everything that the
client has to do before it needs one."""

from __future__ import annotations

from holdfast.errors import HoldfastError
from holdfast.hosts.connection import Connection
from holdfast.hosts.host import Host
from holdfast.project.configuration import load_configuration
from holdfast.project.packages_wish import NONE, PackagesWish
from holdfast.workbench.reach.context import Context, project_of
from holdfast.workbench.reach.targets import host_of


class Ahead:
    """A connection to `host` that is not used yet."""

    def __init__(self, host: Host, connection: Connection) -> None:
        self._host = host
        self._connection: Connection | None = connection

    def take(self, host: Host) -> Connection | None:
        """The connection, if that is where it leads; it is the caller's then."""
        if host != self._host:
            return None
        found, self._connection = self._connection, None
        return found

    def close(self) -> None:
        """What was not taken is not needed. A repeat changes nothing."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def connect_to_run(run: str, context: Context) -> Ahead | None:
    """To the host of a run that has not come home as a whole."""
    from holdfast.history.run_folder import RunFolders
    from holdfast.project.compute import REMOTE_TYPES, read_compute

    try:
        project = project_of(context)
        folders = RunFolders(project.state_directory)
        run_id = folders.resolve(run)
        submission = folders.submission(run_id)
        if submission.target_type not in REMOTE_TYPES or folders.is_collected(run_id):
            return None
        target, _ = read_compute(project.configuration_folders, submission.target)
        host = host_of(target, context) if target is not None else None
        return None if host is None or host.is_here else Ahead(host, host.connect())
    except HoldfastError:
        return None


def connect_ahead(run_configuration: str | None, target: str | None, context: Context) -> Ahead | None:
    """To the host of this target, if it is another machine. Whatever is wrong is said by the command itself, later."""
    try:
        project = project_of(context)
        configuration = load_configuration(project, run_configuration, target, PackagesWish(NONE))
        host = host_of(configuration.target, context)
        return None if host.is_here else Ahead(host, host.connect())
    except HoldfastError:
        return None
