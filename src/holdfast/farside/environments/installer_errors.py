"""What the installer said when it failed: its own reason, the line of the spec that asked for it, and a remedy."""

import re
from typing import Any, List, NamedTuple, Optional

_LONGEST = 400
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_CROSS = "\u00d7"  # how older versions of uv begin an error
NETWORK = ("failed to fetch", "error sending request", "dns error", "connection refused", "timed out", "tls", "proxy")
_BUILD = ("failed to build", "build backend", "call to `setuptools", "failed building")
_DENIED = ("401 unauthorized", "403 forbidden", "lack of valid authentication")
_OFFLINE = ("network was disabled", "was not found in the cache", "offline")
_OTHER_PLATFORM = (
    "incompatible with the current platform",
    "no wheels with a matching platform",
    "is not compatible with",
)
_KILLED = (
    "Memory may have run out, or a person killed it: the machine's administrator can see that in the kernel's log."
)
_DISK = ("no space left", "disk quota exceeded", "read-only file system")


def plain(output: str) -> str:
    return _COLOUR.sub("", output)


class Complaint(NamedTuple):
    reason: str
    where: str
    remedy: str

    def sentence(self) -> str:
        place = " (asked for in %s)" % self.where if self.where else ""
        return ("%s%s. %s" % (self.reason.rstrip(". "), place, self.remedy)).strip()


def explain(output: str, requirements: List[List[str]], signal: Optional[int] = None) -> Complaint:
    """`requirements`: `[text, where]` of each line of the spec; `signal`: what ended the installer, if anything did."""
    if signal is not None:
        return Complaint("the installer was ended by signal %d" % signal, "", _KILLED if signal == 9 else "")
    reason = reason_of(output)
    culprit = _culprit(reason, requirements)
    where = culprit[1] if culprit else ""
    return Complaint(reason, where, _remedy(plain(output).lower(), culprit))


def reason_of(output: str) -> str:
    """The first `error:` with its causes, as one sentence."""
    lines = [line.rstrip() for line in plain(output).splitlines()]
    for number, line in enumerate(lines):
        if line.lstrip().startswith(("error:", _CROSS)):
            return _short(_joined(lines[number : number + 12]))
    return _short(" ".join(line.strip() for line in lines[-3:] if line.strip())) or "the installer gave no reason"


def _joined(lines: List[str]) -> str:
    parts: List[str] = []
    for line in lines:
        text = re.sub(r"^(error|cause|caused by):\s*", "", line.strip().lstrip(_CROSS + "╰─▶│ "), flags=re.IGNORECASE)
        if line.strip().lower().startswith("hint:"):
            break
        if text and text not in parts:
            parts.append(text)
    return ": ".join(parts[:1] + [" ".join(parts[1:])]) if len(parts) > 1 else "".join(parts)


def _culprit(reason: str, requirements: List[List[str]]) -> Optional[List[str]]:
    """The line whose package the reason names, the one that is named with its version before others."""
    named: List[Any] = []
    for text, where in requirements:
        name = package_name(text)
        loose = "[-_.]+".join(re.escape(part) for part in re.split(r"[-_.]+", name))
        if name and re.search(r"(?<![\w.-])%s(?![\w-])" % loose, reason, re.IGNORECASE):
            exact = text.replace(" ", "") in reason.replace(" ", "")
            named.append((not exact, len(named), [text, where]))
    return min(named)[2] if named else None


def package_name(text: str) -> str:
    """Of a requirement as written, `` if it has none."""
    found = re.match(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:[\[<>=!~;@ ]|$)", text)
    if found and not text.lstrip().startswith("-"):
        return found.group(1)
    wheel = re.search(r"/([A-Za-z0-9_.]+)-\d[^/]*\.whl", text)
    return wheel.group(1).replace("_", "-") if wheel else ""


def _remedy(output: str, culprit: Optional[List[str]]) -> str:
    name = package_name(culprit[0]) if culprit else ""
    if any(word in output for word in _DISK):
        return "Make room on the machine: holdfast experiment clean --environments"
    if "git executable not found" in output:
        return "It comes from a Git repository: install git where it is built, or choose a base image that has it."
    if any(word in output for word in _DENIED):
        return "The index refuses the login, or wants one: check the password in its address, or the variable there."
    if any(word in output for word in _OTHER_PLATFORM):
        return "It was built for another system or Python: holdfast environment check tells which, and what to write."
    if any(word in output for word in _OFFLINE):
        return "The machine's own settings keep it from asking an index: submit with --ship-packages"
    if "http status client error (404" in output or "404 not found" in output:
        return "There is nothing at that address (any more): check it."
    if "was not found in the package registry" in output or "not found in the registry" in output:
        return "Check the spelling of `%s`; a package of a private index needs its `--extra-index-url`." % (
            name or "it"
        )
    if any(word in output for word in _BUILD):
        return "No ready-made wheel fits this Python, and building it failed. Pin a Python that it has wheels for."
    if any(word in output for word in NETWORK):
        return "The machine does not reach the package index. If it has no internet: submit with --ship-packages"
    if "no solution found" in output or "unsatisfiable" in output:
        return "Change the versions that contradict each other, or pin another Python in the spec."
    if "hash mismatch" in output:
        return "The index has another file than the lock names. To resolve anew: submit with --upgrade"
    return ""


def _short(text: str) -> str:
    """A sentence for the record; control_log has all of it."""
    return text if len(text) <= _LONGEST else text[:_LONGEST].rsplit(" ", 1)[0] + " …"
