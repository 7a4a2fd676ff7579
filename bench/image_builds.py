"""`docker build` with `pip install`, as a person does to get packages into an image.

There are two ways to keep pip's cache warm. The classic builder cannot mount a folder while it builds, so the cache is
in a layer of the base image, as if an earlier build had left it. BuildKit, if engine and client have it, mounts a cache
that it keeps.
"""

from __future__ import annotations

import ensurepip
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import children
from children import Place
from package_places import index_variables

from kit.docker.images import PYTHON

BASE, WARM, MADE = "bench/pip", "bench/pip-warm", "bench/made"
_CERTIFICATES = "/base/certificates"
_BASE = """\
FROM {python}
COPY . /base/
{variables}
RUN rm -f /usr/lib/python3*/EXTERNALLY-MANAGED
ENV PIP_CACHE_DIR=/var/cache/pip
RUN python3 /base/{wheel}/pip install -q --no-index /base/{wheel}
"""
_WARM = f"""\
FROM {BASE}
COPY requirements.txt /
RUN pip download -q -d /wheels -r /requirements.txt && rm -r /wheels
"""
_INSTALL = """\
FROM {base}
COPY requirements.txt /
RUN {mount}pip install -q -r /requirements.txt
{more}
"""
_MOUNT = "--mount=type=cache,target=/var/cache/pip "


@dataclass(frozen=True)
class Builder:
    """`docker build` with pip's cache kept warm in one of the two ways."""

    with_buildkit: bool = False

    def write(self, folder: Path, packages: Sequence[str], unlike: str = "", more: str = "") -> None:
        """What to build. A layer of an earlier build is not reused if `unlike` differs; `more` goes to the end of the
        Dockerfile."""
        base, mount = (BASE, _MOUNT) if self.with_buildkit else (WARM, "")
        (folder / "Dockerfile").write_text(_INSTALL.format(base=base, mount=mount, more=more))
        write_requirements(folder, [*packages, f"# {unlike}"])

    def seconds(self, place: Place) -> float:
        """Build it, and run the script s.py of the same folder in what was built."""
        build = f"DOCKER_BUILDKIT={self.with_buildkit:d} {self._client} build -q --network host -t {MADE} ."
        return children.seconds(place, ["sh", "-c", f"{build} && {run_line('s.py')}"], "hi")

    @property
    def _client(self) -> str:
        """For BuildKit, the engine's own client: a newer client without its builder beside it can only build the
        classic way."""
        own = Path("/usr/bin/docker")
        return str(own) if self.with_buildkit and own.exists() else "docker"


def run_line(script: str) -> str:
    return f'docker run --rm --network host -v "$PWD":/work -w /work {MADE} python3 {script}'


def forget_image(place: Place) -> None:
    children.run(place, ["sh", "-c", f"docker rmi -f {MADE} || true"])


def make_bases(place: Place, packages: Sequence[str]) -> None:
    """`BASE` has Python and the pip that comes with this machine's, `WARM` the packages in pip's cache too."""
    folder = place.root / "tmp" / "base"
    folder.mkdir()
    (wheel,) = (Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl")
    shutil.copy(wheel, folder)
    variables = index_variables()
    if "SSL_CERT_FILE" in variables:
        shutil.copy(variables["SSL_CERT_FILE"], folder / Path(_CERTIFICATES).name)
    text = _BASE.format(python=PYTHON, wheel=wheel.name, variables=variable_lines(variables))
    (folder / "Dockerfile").write_text(text)
    _build(place, folder, BASE)
    (folder / "Dockerfile").write_text(_WARM)
    write_requirements(folder, packages)
    _build(place, folder, WARM)


def write_requirements(folder: Path, lines: Sequence[str]) -> None:
    (folder / "requirements.txt").write_text("".join(f"{line}\n" for line in lines))


def variable_lines(variables: Mapping[str, str]) -> str:
    """How this machine's pip reaches packages, as lines for a Dockerfile."""
    kept = {name: value for name, value in variables.items() if not name.startswith(("SSL_", "UV_"))}
    if "SSL_CERT_FILE" in variables:
        kept["PIP_CERT"] = _CERTIFICATES
    return "\n".join("ENV {}={}".format(name, json.dumps(value).replace("$", "\\$")) for name, value in kept.items())


def _build(place: Place, folder: Path, name: str) -> None:
    children.run(place, ["docker", "build", "-q", "--network", "host", "-t", name, str(folder)])
