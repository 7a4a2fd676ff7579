"""What a container is given in which a program of the user's runs, a script or a shell: who one is there, folders of
the machine at the paths that they have on it, and bytecode that is kept; and what a compute target asks of machine and
image, checked before, since Docker's own words for it name neither file nor key."""

import os
from typing import Dict, List, NamedTuple, Tuple

from holdfast.farside.containers import docker_options
from holdfast.farside.containers.daemon import Daemon
from holdfast.farside.containers.docker_errors import DOCKER
from holdfast.farside.containers.docker_options import Account, Volume, WantedContainer
from holdfast.farside.containers.images import Image
from holdfast.farside.environments.built_environment import bytecode
from holdfast.farside.machine import gpus as machine_gpus
from holdfast.farside.system.files import write_whole
from holdfast.farside.system.layout import Home
from holdfast.farside.system.real_paths import real_path
from holdfast.farside.system.refusal import Refused

PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy", "ftp_proxy")

Variables = List[Tuple[str, str]]


class Furniture(NamedTuple):
    """For one container. `prefix` is the folder of a managed environment, empty for none."""

    home: Home
    daemon: Daemon
    account: Account
    prefix: str

    def variables(self) -> Variables:
        found = [("HOME", self.home.container_home()), ("USER", self.account.name), ("LOGNAME", self.account.name)]
        if self._keeps_bytecode():
            found.append(("PYTHONPYCACHEPREFIX", bytecode(self.prefix)))
        return found

    def folders(self) -> List[Volume]:
        """Runs outside containers may use the same environment, and its files are the package cache's too: nothing in a
        container writes to it. Python keeps bytecode in a folder that is for containers alone."""
        found = [_same(self.home.container_home(), True)]
        if self.prefix:
            found.append(_same(self.prefix, False))
            if self._keeps_bytecode():
                found.append(_same(bytecode(self.prefix), True))
            if os.path.isdir(self.home.pythons()):
                found.append(_same(self.home.pythons(), False))
        return found

    def accounts(self, image: Image, folder: str) -> List[Volume]:
        """The image's accounts with the user's own in front, written to `folder`."""
        uid = docker_options.inner_uid(self.daemon, self.account.uid)
        gid = self.account.gid if uid == self.account.uid else 0
        texts = {
            "passwd": docker_options.passwd_text(image.passwd, self.account, uid, self.home.container_home()),
            "group": docker_options.group_text(image.group, self.account, gid, _group(self.account)),
        }
        for name, text in texts.items():
            write_whole(os.path.join(folder, name), text, 0o644)
        return [Volume(os.path.join(folder, name), "/etc/" + name, False) for name in sorted(texts)]

    def _keeps_bytecode(self) -> bool:
        return bool(self.prefix) and os.path.isdir(bytecode(self.prefix))


def under_real_names(volumes: List[Volume]) -> List[Volume]:
    """Also where links lead to: what was made on the machine may name its own files so."""
    found = list(volumes)
    for each in volumes:
        real = real_path(each.source)
        if each.target == each.source and real not in [other.target for other in found]:
            found.append(Volume(real, real, each.is_writable))
    return found


def data_volumes(data: List[Dict[str, str]], work: str) -> Tuple[Volume, ...]:
    """Each folder of data at its place in the working folder, read-only."""
    tops = [work] if real_path(work) == work else [work, real_path(work)]
    return tuple(Volume(each["source"], os.path.join(top, each["target"]), False) for each in data for top in tops)


def shm(wanted: WantedContainer) -> str:
    return wanted.shm or docker_options.default_shm(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def proxies(environment: Dict[str, str], image: Dict[str, str]) -> Dict[str, str]:
    """The machine's way to the network, where the image has none of its own."""
    names = [name for each in PROXIES for name in (each, each.upper())]
    return {name: environment[name] for name in names if environment.get(name) and name not in image}


def own_account() -> Account:
    import pwd

    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = "user%d" % uid
    return Account(name, uid, os.getgid(), tuple(os.getgroups()))


def _same(path: str, is_writable: bool) -> Volume:
    return Volume(path, path, is_writable)


def _group(account: Account) -> str:
    import grp

    try:
        return grp.getgrgid(account.gid).gr_name
    except KeyError:
        return account.name


def require_sources(wanted: WantedContainer) -> None:
    """An old Docker makes a folder that is missing, as root."""
    for place, volume in enumerate(wanted.volumes):
        if not os.path.exists(volume.source):
            raise Refused(
                DOCKER,
                "`volumes[%d]` in %s names `%s`, which is not on the machine `%s`."
                % (place, wanted.file, volume.source, os.uname().nodename),
                "Make the folder there, or correct the line.",
            )


def require_gpus(wanted: WantedContainer, environment: Dict[str, str], asked_by: str = "") -> None:
    """`asked_by` says where GPUs are asked for, if it is not the target."""
    if wanted.gpus and not machine_gpus.is_present(environment):
        raise Refused(
            DOCKER,
            "%s asks for GPUs, and the machine `%s` has no NVIDIA driver."
            % (asked_by or "`nvidiaDocker: true` in %s" % wanted.file, os.uname().nodename),
            "%s, or have the driver installed."
            % ("Submit without it" if asked_by else "Write `nvidiaDocker: false` there"),
        )


def require_python(wanted: WantedContainer, found: str) -> None:
    """`found`: what the image has of it, empty for nothing."""
    if not found:
        raise Refused(
            DOCKER,
            "The image `%s` has no Python `%s`, and `userManagedEnvironment: true` in %s wants the image's own."
            % (wanted.known_as, wanted.python or "python3", wanted.file),
            "Name it under `pythonLocation`, choose another `baseDockerImage`, or write "
            "`userManagedEnvironment: false`.",
        )


def traced(refusal: Refused, wanted: WantedContainer) -> Refused:
    """Of what Docker itself refused: with the file and the key where the cause is written."""
    for place, volume in enumerate(wanted.volumes):
        if "`%s`" % volume.source in refusal.message:
            return Refused(
                refusal.kind, "`volumes[%d]` in %s: %s" % (place, wanted.file, refusal.message), refusal.hint
            )
    return Refused(refusal.kind, refusal.message, refusal.hint.replace("the compute target", wanted.file))
