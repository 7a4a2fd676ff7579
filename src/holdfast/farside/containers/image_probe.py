"""One look inside an image, with its own shell and nothing else: which C library, which Pythons, which accounts."""

import os
import re
from typing import Dict, List, NamedTuple

from holdfast.farside.containers import container_age, docker_options
from holdfast.farside.containers.daemon import Daemon, DockerClient
from holdfast.farside.containers.docker_errors import explain
from holdfast.farside.containers.pull import UNFIT
from holdfast.farside.system.layout import Home
from holdfast.farside.system.programs import Finished
from holdfast.farside.system.refusal import Refused

PATIENCE = 120.0
SHELL = "/bin/sh"
_QUESTION = (
    "import os, sys; print('\\t'.join(['python', sys.argv[1], '%d.%d.%d' % sys.version_info[:3], "
    "os.path.realpath(sys.executable)]))"
)
_SCRIPT = """
mark=$1 question=$2
section() { printf '\\n%s %s\\n' "$mark" "$1"; }
shown() { [ -r "$1" ] && while IFS= read -r line || [ -n "$line" ]; do printf '%s\\n' "$line"; done < "$1"; }
section libc
getconf GNU_LIBC_VERSION 2>/dev/null
for loader in /lib64/ld-linux-*.so* /lib/ld-linux-*.so* /lib64/ld64.so* /lib/ld64.so* /lib/ld-linux.so*; do
  [ -e "$loader" ] || continue
  for library in /lib64/libc.so.6 /lib/*-linux-gnu*/libc.so.6 /lib/libc.so.6 /usr/lib/*-linux-gnu*/libc.so.6; do
    [ -e "$library" ] && "$loader" "$library" 2>/dev/null
  done
done
for loader in /lib/ld-musl-*.so.1; do [ -e "$loader" ] && printf 'musl\\n'; done
section passwd
shown /etc/passwd
section group
shown /etc/group
section pythons
IFS=:
all=$PATH:/usr/local/bin:/usr/bin:/opt/conda/bin:/opt/conda/envs/*/bin:/opt/venv/bin:/opt/python/*/bin
started=0
for folder in $all; do
  case $folder in */shims) continue ;; /*) ;; *) continue ;; esac
  for each in "$folder"/python3 "$folder"/python3.[0-9] "$folder"/python3.[0-9][0-9] "$folder"/python; do
    [ -f "$each" ] && [ -x "$each" ] && [ $started -lt 20 ] || continue
    started=$((started + 1))
    "$each" -I -S -c "$question" "$each" 2>/dev/null </dev/null
  done
done
section end
"""
_GLIBC = re.compile(r"glibc (\d+\.\d+)|release version (\d+\.\d+)")


class Probed(NamedTuple):
    """`libc` as `glibc2.36` or `musl`; `pythons` are `[path, version, real path]`, in the order of its PATH."""

    libc: str
    pythons: List[List[str]]
    passwd: str
    group: str


def look(docker: DockerClient, image: str, home: Home) -> Probed:
    """Raises Refused where there is no shell or no C library that is known."""
    mark = "holdfast-" + os.urandom(8).hex()
    name = "holdfast-look-" + os.urandom(6).hex()
    words = ["run", "--rm", "--name", name, "--network", "none"] + common_words(docker, home)
    words += ["--entrypoint", SHELL, image, "-c", _SCRIPT, "holdfast", mark, _QUESTION]
    answer = Finished(None, "", "")
    try:
        answer = docker.call(words, PATIENCE)
    finally:
        if answer.code is None:  # it is late, or the run is to end: the container lives on without the client
            docker.attended_by(None).call(["rm", "-f", name], PATIENCE)
    found = _sections(answer.output, mark)
    if not found.keys() >= {"libc", "pythons", "passwd", "group", "end"}:
        raise _explained(image, answer)
    return _probed(image, found)


def common_words(docker: DockerClient, home: Home) -> List[str]:
    """Of every container beside the run's own: who it is, whose it is, and no GPU."""
    return whose_words(docker.daemon(home), home) + docker_options.gpus("")


def whose_words(daemon: Daemon, home: Home) -> List[str]:
    words = docker_options.identity(daemon, os.getuid(), os.getgid(), os.getgroups()) + docker_options.security(daemon)
    words += ["--label", "%s=%s" % (docker_options.HOME_LABEL, home.path)]
    words += ["--label", "%s=%s" % (container_age.LABEL, container_age.begun())]
    return words + ["--label", "%s=%d" % (docker_options.USER_LABEL, os.getuid())]


def _sections(said: str, mark: str) -> Dict[str, str]:
    parts = re.split(r"^%s (\w+)\r?\n" % re.escape(mark), said, flags=re.MULTILINE)
    return {parts[place]: parts[place + 1] for place in range(1, len(parts) - 1, 2)}


def _probed(image: str, found: Dict[str, str]) -> Probed:
    versions = [first or second for first, second in _GLIBC.findall(found["libc"])]
    if versions:
        libc = "glibc" + versions[0]
    elif "musl" in found["libc"]:
        libc = "musl"
    else:
        message = "The image `%s` has no C library that Holdfast knows (glibc or musl), so no Python runs in it."
        raise Refused(UNFIT, message % image, "Choose one with a whole system, such as ubuntu:24.04.")
    texts = [found[each].strip("\n") + "\n" for each in ("passwd", "group")]
    return Probed(libc, _pythons(found["pythons"]), texts[0].lstrip("\n"), texts[1].lstrip("\n"))


def _pythons(text: str) -> List[List[str]]:
    """One entry for all names that link to the same Python; in an environment, one per folder and version."""
    found: Dict[str, List[str]] = {}
    for line in text.splitlines():
        row = line.split("\t")
        if len(row) == 4 and row[0] == "python" and row[2].startswith("3."):
            found.setdefault(os.path.dirname(row[1]) + row[2] if is_of_environment(row[1]) else row[3], row[1:])
    return list(found.values())


def is_of_environment(path: str) -> bool:
    """Judged by its path, links not resolved: an environment's Python differs from the one it links to."""
    return path.startswith(("/opt/venv/", "/opt/conda/envs/"))


def _explained(image: str, answer: Finished) -> Refused:
    low = (answer.errors + answer.output).lower()
    if "exec format error" in low:
        return Refused(UNFIT, "The image `%s` is for another kind of processor than the machine's." % image)
    if SHELL in low and ("no such file" in low or "not found" in low or "executable file" in low):
        remedy = "Choose one with a whole system, such as ubuntu:24.04: Holdfast needs its shell, and nothing else."
        return Refused(UNFIT, "The image `%s` has no %s." % (image, SHELL), remedy)
    return explain(answer)
