"""How old a container is that belongs to no run. Docker knows by the machine's clock, which may have been set since."""

import calendar
import re
import time

from holdfast.farside.system import kernel
from holdfast.farside.system.clock import seconds_since_boot

LABEL = "holdfast.begun"
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:\.\d+)?(?:Z| ?([+-])(\d\d):?(\d\d))?")


def begun() -> str:
    """The value of `LABEL` for a container that begins now: which start of the machine, and how long after it."""
    return "%s %d" % (kernel.boot_id(), seconds_since_boot())


def age(label: str, created: str) -> float:
    """Seconds. `created`, as Docker says it, counts for containers without the label, of earlier versions."""
    boot, _, seconds = label.rpartition(" ")
    if not boot or not re.match(r"[0-9]{1,12}\Z", seconds):
        return time.time() - _seconds(created)
    since = seconds_since_boot() - int(seconds)
    return since if boot == kernel.boot_id() and since >= -1.0 else float("inf")


def _seconds(created: str) -> float:
    """Docker says when in UTC, Podman in the machine's own time with its distance. What cannot be read is now."""
    found = _MOMENT.match(created)
    if found is None:
        return time.time()
    moment, sign, hours, minutes = found.groups()
    distance = int(sign + "1") * (int(hours) * 3600 + int(minutes) * 60) if sign else 0
    try:
        return float(calendar.timegm(time.strptime(moment.replace(" ", "T"), "%Y-%m-%dT%H:%M:%S")) - distance)
    except ValueError:  # a thirteenth month
        return time.time()
