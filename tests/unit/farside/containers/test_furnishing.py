"""What containers get from the machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.farside.containers.docker_options import Account, Volume
from holdfast.farside.containers.images import Image
from holdfast.farside.containers.outfit import Furniture, proxies, under_real_names
from holdfast.farside.environments.built_environment import bytecode
from holdfast.farside.system.layout import Home
from unit.farside.containers.recorded import daemon


def furniture(folder: Path, engine: str = "debian-20.10", uid: int = 1000) -> Furniture:
    home = Home(str(folder / "home"))
    prefix = home.environment("abc")
    os.makedirs(bytecode(prefix))
    return Furniture(home, daemon(engine), Account("me", uid, 100, ()), prefix)


@pytest.mark.recorded
@pytest.mark.parametrize("engine", ["debian-20.10", "podman-rootless"])
@pytest.mark.parametrize("uid", [1000, 0])
def test_nothing_in_a_container_writes_to_an_environment_but_bytecode(tmp_path, engine, uid):
    given = furniture(tmp_path, engine, uid)

    found = {each.target: each.is_writable for each in given.folders()}

    assert found[given.prefix] is False
    assert found[bytecode(given.prefix)] is True
    assert dict(given.variables())["PYTHONPYCACHEPREFIX"] == bytecode(given.prefix)


def test_folders_behind_a_link_have_both_names(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    link, real, data = str(tmp_path / "link"), str(tmp_path / "real"), Volume(str(tmp_path / "link"), "/data", True)

    assert under_real_names([Volume(link, link, False)]) == [Volume(link, link, False), Volume(real, real, False)]
    assert under_real_names([Volume(real, real, True)]) == [Volume(real, real, True)]
    assert under_real_names([data]) == [data]


def test_the_accounts_are_the_images_and_ones_own(tmp_path):
    image = Image("sha256:a", "x", "x86_64", "p", {}, (), "root:x:0:0::/root:/bin/sh\n", "root:x:0:\n")

    mounts = furniture(tmp_path).accounts(image, str(tmp_path))

    assert [(each.target, each.is_writable) for each in mounts] == [("/etc/group", False), ("/etc/passwd", False)]
    names = [line.split(":")[0] for line in Path(mounts[1].source).read_text().splitlines()]
    assert names == ["me", "root"]


def test_proxies_of_the_machine_are_given_where_the_image_has_none():
    own = {"HTTPS_PROXY": "http://a", "no_proxy": "b", "http_proxy": "", "OTHER": "c"}

    assert proxies(own, {"no_proxy": "d"}) == {"HTTPS_PROXY": "http://a"}
