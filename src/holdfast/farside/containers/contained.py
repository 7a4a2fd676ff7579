"""A run's container, for the supervisor: what is known before it is made, the process that stands for its script, and
its end."""

import json
import os
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple

from holdfast.farside.containers import docker_options, keeper, outfit
from holdfast.farside.containers.daemon import DockerClient, forget
from holdfast.farside.containers.docker_errors import DOCKER, NO_GPUS, NO_PROGRAM
from holdfast.farside.containers.docker_options import Around, Volume, WantedContainer
from holdfast.farside.containers.images import Image, find
from holdfast.farside.containers.launcher import EVENTS, IN
from holdfast.farside.containers.launcher_words import parse_event
from holdfast.farside.containers.outfit import Furniture, require_gpus, require_python, require_sources, traced
from holdfast.farside.containers.removal import LAST_WORDS, is_launcher_alive, remove_named, tidy, wait_for_launcher
from holdfast.farside.environments.built_environment import bytecode
from holdfast.farside.environments.user_python import path_of
from holdfast.farside.environments.workshop import Supervision
from holdfast.farside.machine import gpus as machine_gpus
from holdfast.farside.system import launcher_lock
from holdfast.farside.system.bound_plan import RunCommand
from holdfast.farside.system.children import CannotStart
from holdfast.farside.system.files import remove_below, write_whole
from holdfast.farside.system.layout import CONTAINER, ENTRY, FIFO, INSIDE, SHIPPED, STACKS, Home
from holdfast.farside.system.ownership import make_private
from holdfast.farside.system.refusal import Refused
from holdfast.farside.system.working_tree import tree_of

if TYPE_CHECKING:
    from holdfast.farside.containers.images import InImage
    from holdfast.farside.containers.room import RoomContainer
    from holdfast.farside.gpu.devices import GpuDevice

_SHOWN = ("work", "metrics", "uploads", STACKS, INSIDE, FIFO)
"""Of the run's folder, what the script and its launcher write to. All else there is out of their reach."""
_SHORTEST_GRACE, _LONGEST_GRACE = 2.0, 10.0
"""Seconds for what a script leaves behind when it ends by itself."""


class Contained:
    """One run's. `bound` is the plan's container with its holes filled."""

    def __init__(self, home: Home, folder: str, bound: Dict[str, Any], docker: DockerClient) -> None:
        self.home, self.folder, self.docker, self._bound = home, folder, docker, bound
        self.wanted: WantedContainer = docker_options.parse(bound)
        self.inside = os.path.join(folder, INSIDE)
        self.account = outfit.own_account()
        self.begun = 0.0
        self.way = self._prefix = ""
        self.devices: Optional[Tuple[GpuDevice, ...]] = None
        """Those that it gets, if it gets any; None: all."""
        self.said: List[Dict[str, Any]] = []
        self._told, self._rest = -1, b""
        self._is_made = self._has_started = False

    def find(self, owner: Supervision) -> None:
        """The daemon and the image, fetched if need be. Refused if the run could not work, with the remedy."""
        self.daemon = self.docker.daemon(self.home)
        require_sources(self.wanted)
        require_gpus(self.wanted, self.docker.environment, str(self._bound.get("asked_by") or ""))
        self.image: Image = find(self.docker, self._bound, self.home, owner)
        owner.tell(
            "container",
            image=self.image.id,
            image_name=self.wanted.known_as,
            name=self.wanted.name,
            gpus=self.wanted.gpus,
        )
        note = self._about_gpus()
        if note:
            owner.tell("note", text=note)

    def facts(self, python: Optional[str]) -> Dict[str, str]:
        """What the plan's holes are in the container. `python`: the image's own that is asked for."""
        modules, asked = self.image.environment.get("PYTHONPATH", ""), self.wanted.python or python
        found = self.image.python(asked) or ""
        return {
            "path": path_of(found, asked, self.image.path),
            "pythonpath": os.pathsep + modules if modules else "",
            "architecture": self.image.build_name,
            "python": found,
        }

    def require_python(self, found: str) -> None:
        require_python(self.wanted, found)

    def start(self, script: RunCommand) -> int:
        """Returns the pid of the process that stands for the script. `hear` tells what becomes of it."""
        self._make_folder()
        self._prefix = script.prefix
        self._is_made, self.begun = True, time.time()
        ways = self.daemon.gpu_ways() if self.wanted.gpus else [""]
        attempts = [keeper.Attempt(way, tuple(self._words(script, way))) for way in ways]
        first = json.dumps(self._task(script)).encode("ascii") + b"\n"
        pid, self._told = keeper.start(
            keeper.Task(self.docker, self.wanted.name, tuple(attempts), self.inside, first, self.daemon.root_dir)
        )
        return pid

    def gpu_way(self) -> str:
        """How it will be tried first to give it GPUs; empty for none."""
        return (self.daemon.gpu_ways() or [""])[0] if self.wanted.gpus else ""

    def pipes(self) -> List[int]:
        """What can be read when `hear` has something new."""
        return [self._told] if self._told >= 0 else []

    def hear(self) -> List[Dict[str, Any]]:
        """What was told since the last time."""
        while self._told >= 0:
            try:
                data = os.read(self._told, 65536)
            except BlockingIOError:
                break
            if not data:
                os.close(self._told)
                self._told = -1
            self._rest += data
        lines = self._rest.split(b"\n")
        self._rest = lines.pop()
        found = [event for event in map(parse_event, lines) if event is not None]
        self.said += found
        return found

    def is_started(self, event: Dict[str, Any], tell: Callable[..., None]) -> bool:
        """Whether this is the word that the script runs. Raises where it never will. What else is said goes to the
        journal."""
        if event["e"] == "trying":
            self.way = str(event["way"])
        if event["e"] == "python":
            packages = list(event["packages"])
            tell("environment", id="", python=event["version"], packages=packages, built=False, seconds=0)
        if event["e"] == "note":
            tell("note", text=str(event["text"]))
        if event["e"] == "refused":
            forget(self.home)
            self._is_made = bool(event["made"])
            raise self._refused(Refused(str(event["kind"]), str(event["message"]), str(event["hint"])))
        if event["e"] == "unfit":
            raise Refused("gpu", str(event["message"]), str(event["hint"]))
        if event["e"] == "cannot-start":
            raise CannotStart(str(event["text"]))
        if event["e"] == "failed":
            said = str(event["text"]).strip().splitlines()
            words = ": " + said[-1] if said else " and said nothing"
            raise Refused(
                DOCKER, "The container of `%s` ended before the script began%s." % (self.wanted.known_as, words)
            )
        if event["e"] == "started":
            self._has_started = True
            self._write_record()
            return True
        return False

    def require_keeper(self, is_gone: bool) -> None:
        """Of a process that ended before the script was started, after all that it had to say was heard."""
        if is_gone and self._told < 0:
            raise Refused(DOCKER, "The process that starts the container ended without a word; control_log has more.")

    def room(self) -> "RoomContainer":
        """Where the environment is built."""
        from holdfast.farside.containers.room import RoomContainer

        return RoomContainer(self.docker, self.image, self.wanted, self.home, self.folder)

    def place(self) -> "InImage":
        """What the environment is for."""
        from holdfast.farside.containers.images import InImage

        return InImage(self.image, self.home)

    def end(self) -> None:
        """Nothing runs in it when this returns. Of a container whose launcher has ended there is nothing to do."""
        if self._is_made and (not self._has_started or is_launcher_alive(self.inside)):
            wait_for_launcher(self.inside, LAST_WORDS, time.sleep, is_removed=self.remove())

    def remove(self, patience: float = 0.0) -> bool:
        """Remove the container and its volumes. Gone already is success. If Docker needs longer than `patience`
        seconds, `clean` removes it later. Returns whether it is gone."""
        tidy(self.folder)
        if self._is_made:
            self._is_made = not remove_named(self.docker, self.wanted.name, patience)
        return not self._is_made

    def drop_bytecode(self) -> None:
        """That of the run's own modules, which are not imported again."""
        if self._prefix:
            remove_below(bytecode(self._prefix), self.folder.lstrip("/"))

    def _write_record(self) -> None:
        """For people who look at the run's folder on this machine."""
        record = {
            "format": 1,
            "name": self.wanted.name,
            "image": self.image.id,
            "image_name": self.wanted.known_as,
            "gpus": self.way,
            "program": self.docker.program,
            "engine": "%s %s" % (self.daemon.kind, self.daemon.version),
        }
        write_whole(os.path.join(self.folder, CONTAINER), json.dumps(record))

    def _about_gpus(self) -> str:
        """A machine with GPUs, and a container without: said unless the user wrote that it is meant."""
        if self.wanted.gpus is not None or not machine_gpus.is_present(self.docker.environment):
            return ""
        if docker_options.is_for_gpus(self.image.environment):
            about = "The image `%s` is made for GPUs" % self.wanted.known_as
        else:
            about = "The machine has GPUs"
        remedy = "Write `nvidiaDocker: true` there, or `false` if the CPU is meant."
        return "%s, and the container gets none: %s has no `nvidiaDocker`. %s" % (about, self.wanted.file, remedy)

    def _refused(self, refusal: Refused) -> Refused:
        """With the file and the key where the cause is written."""
        file = self.wanted.file
        if refusal.kind == NO_GPUS:
            asked_by = str(self._bound.get("asked_by") or "")
            message = "%s: %s" % (asked_by or "`nvidiaDocker: true` in %s" % file, refusal.message)
            until = "without it" if asked_by else "`nvidiaDocker: false`"
            return Refused(DOCKER, message, "%s. Until then: %s." % (refusal.hint.rstrip("."), until))
        if refusal.kind == NO_PROGRAM and self.wanted.python:
            message = "`pythonLocation` in %s, in the image `%s`: %s" % (file, self.wanted.known_as, refusal.message)
            return Refused(DOCKER, message, "Name there a Python that the image has, by its whole path in the image.")
        found = traced(refusal, self.wanted)
        return Refused(DOCKER, found.message, found.hint)

    def _make_folder(self) -> None:
        os.mkdir(self.inside, 0o700)
        for name in (IN, EVENTS):
            os.mkfifo(os.path.join(self.inside, name), 0o600)
        launcher_lock.make(self.inside)
        make_private(self.home.container_home())

    def _words(self, script: RunCommand, way: str) -> List[str]:
        furniture = Furniture(self.home, self.daemon, self.account, script.prefix)
        entry = (script.python, "-I", "-S", ENTRY, "inside", self.inside)
        around = Around(
            daemon=self.daemon,
            account=self.account,
            image=self.image.id,
            mounts=self._mounts(script, furniture),
            variables=tuple(furniture.variables() + docker_options.capabilities(way, self.image.environment)),
            labels=((docker_options.HOME_LABEL, self.home.path), (docker_options.USER_LABEL, "%d" % self.account.uid)),
            shm=outfit.shm(self.wanted),
            way=way,
            grace=script.grace,
            directory=script.directory,
            entry=entry,
            gpus=self.devices,
        )
        return docker_options.run_words(self.wanted, around)

    def _mounts(self, script: RunCommand, furniture: Furniture) -> Tuple[Volume, ...]:
        own = [_at_its_path(os.path.join(self.folder, name), True) for name in _SHOWN]
        own += [_at_its_path(SHIPPED, False)] + furniture.folders()
        share = Volume(script.share, self.wanted.share.rstrip("/") or "/", True)
        accounts = furniture.accounts(self.image, self.inside)
        data = outfit.data_volumes(self._bound.get("data") or [], tree_of(self.folder).project)
        return tuple(outfit.under_real_names(own) + [share] + accounts) + self.wanted.volumes + data

    def _task(self, script: RunCommand) -> Dict[str, Any]:
        proxies = outfit.proxies(self.docker.environment, self.image.environment)
        mask = os.umask(0o077)
        os.umask(mask)
        return {
            "argv": script.argv,
            "environment": dict(proxies, **script.environment),
            "directory": script.directory,
            "grace": max(_SHORTEST_GRACE, min(script.grace, _LONGEST_GRACE)),
            "umask": mask,
            "looks": not script.prefix,
            "python": script.python,
            "gpus": script.gpus,
            "gets_gpus": script.gets_gpus,
            "must_use_gpu": script.must_use_gpu,
        }


def _at_its_path(path: str, is_writable: bool) -> Volume:
    return Volume(path, path, is_writable)
