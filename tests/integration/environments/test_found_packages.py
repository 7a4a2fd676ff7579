"""A repository's own files of packages, with nothing configured: found, and folders and builds among them."""

from __future__ import annotations

import subprocess

from holdfast.workbench.submitting.tools import find_uv
from integration.environments.conftest import Managed


def test_a_lock_is_found_and_its_extra_is_installed(managed: Managed) -> None:
    managed.write("aml_config/local.compute", "type: local\nuserManagedEnvironment: auto\n")
    managed.write(
        "pyproject.toml", "[project]\nname='x'\nversion='1'\nrequires-python='>=3.10'\ndependencies=['six']\n"
    )
    with (managed.root / "pyproject.toml").open("a") as file:
        file.write("[project.optional-dependencies]\nmore = ['iniconfig']\n[dependency-groups]\ndev = ['toml']\n")
    subprocess.run([find_uv(), "lock", "-q"], cwd=managed.root, check=True)
    managed.write("t.py", "import iniconfig, six\n")

    result = managed.submit("--extra", "more", "t.py")
    assert result.code == 0, result.err
    assert managed.record()["properties"]["packages"] == "uv.lock[more]"
    assert [each.partition("==")[0] for each in managed.environment()["packages"]] == ["iniconfig", "six"]


def test_what_only_a_build_says_is_asked_where_the_environment_is_made(managed: Managed) -> None:
    managed.write(
        "lib/setup.py", "import setuptools\nsetuptools.setup(name='lib', install_requires=open('needs').read())\n"
    )
    managed.write("lib/needs", "six\n")
    managed.write("lib/lib.py", "import six\n")
    managed.write("requirements.txt", "-e ./lib\n")
    managed.write("t.py", "import lib\n")

    result = managed.submit("-d", "requirements.txt", "t.py")
    assert result.code == 0, result.err
    again = managed.submit("--environment-of", "last", "t.py")
    assert again.code == 0, again.err
    assert not list(managed.root.glob("lib/*.egg-info")), "the build ran in the project itself"
