"""The hosts of runs and of compute targets: a run's record names its target."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.errors import ConfigurationError
from holdfast.history.run_folder import RunFolders
from holdfast.hosts.connection import Carrier, Connection
from holdfast.hosts.host import Host
from holdfast.project.compute import BUILTIN_LOCAL, REMOTE_TYPES, ComputeTarget, read_compute
from holdfast.project.folder import Project
from holdfast.workbench.reach.context import Context
from holdfast.workbench.reach.targets import host_of


class DetachedHost:
    """The host of a target that is not attached any more: what is at home can be read, and nothing can be asked."""

    is_here = False

    def __init__(self, name: str, problems: Sequence[object]) -> None:
        self.name, self._problems = name, problems

    def connect(self, may_ask: bool = True) -> Connection:
        raise ConfigurationError(self._problems)

    def in_terminal(self, words: Sequence[str]) -> list[str]:
        raise ConfigurationError(self._problems)

    def carrier(self, port: int) -> Carrier | None:
        raise ConfigurationError(self._problems)

    def alone(self) -> DetachedHost:
        return self


class RunHosts:
    """Of one project. The file of each target is read once, however many runs it has."""

    def __init__(self, project: Project, context: Context) -> None:
        self._project, self._context = project, context
        self._folders = RunFolders(project.state_directory)
        self._known: dict[str, tuple[ComputeTarget, Host]] = {}

    def of_run(self, run_id: str) -> Host:
        submission = self._folders.submission(run_id)
        if submission.target_type not in REMOTE_TYPES:  # this machine needs no file to be found again
            return host_of(BUILTIN_LOCAL, self._context)
        return self.of_target(submission.target)[1]

    def of_target(self, name: str) -> tuple[ComputeTarget, Host]:
        if name not in self._known:
            target, problems = read_compute(self._project.configuration_folders, name)
            if target is None:
                raise ConfigurationError(problems)
            self._known[name] = target, host_of(target, self._context)
        return self._known[name]
