"""Devices, processes, amounts of memory and times as a person says them. Pure."""

from typing import Optional, Sequence, Tuple

from holdfast.farside.gpu.devices import NAMELESS, GpuDevice

_MOST_NAMES = 4
GB, MB = 10**9, 10**6
GIB, _MIB = float(1 << 30), float(1 << 20)


def device(each: GpuDevice) -> str:
    return named(each.name, each.uuid, each.number)


def devices(found: Sequence[GpuDevice]) -> str:
    return listed([device(each) for each in found])


def states(found: Sequence[GpuDevice]) -> str:
    return listed(["%s is %s" % (device(each), each.state) for each in found])


def named(name: str, uuid: str, number: int) -> str:
    """`Tesla K80 (GPU-8932f937)`: a UUID is unique by its beginning, and CUDA takes it so. A device that is lost may
    have lost its name too."""
    mark = short(uuid) or "GPU %d" % number
    return mark if name in ("", NAMELESS) else "%s (%s)" % (name, mark)


def short(uuid: str) -> str:
    return "-".join(uuid.split("-")[:2])


def listed(names: Sequence[str]) -> str:
    shown = list(names[:_MOST_NAMES])
    if len(names) > _MOST_NAMES:
        shown.append("%d more" % (len(names) - _MOST_NAMES))
    return shown[0] if len(shown) == 1 else " and ".join([", ".join(shown[:-1]), shown[-1]]) if shown else ""


def processes(pids: Sequence[int]) -> str:
    known = sorted(pids)
    if not known:
        return "processes that are not named"
    return ("process %s" if len(known) == 1 else "processes %s") % listed([str(each) for each in known])


def memory(count: Optional[int]) -> str:
    if count is None:
        return "an unknown amount"
    return "%.1f GiB" % (count / GIB) if count >= GIB else "%.0f MiB" % (count / _MIB)


def asked_memory(count: int) -> str:
    """As it was written too, where that was not in powers of two: `74.5 GiB (80 GB)`."""
    for unit, name in ((GB, "GB"), (MB, "MB")):
        if count and count % unit == 0:
            return "%s (%d %s)" % (memory(count), count // unit, name)
    return memory(count)


def counted(number: int, name: str) -> str:
    return "%d %s%s" % (number, name, "" if number == 1 else "s")


def share(part: float) -> str:
    """Of a part of 1."""
    return "under 1 %" if 0 < part < 0.01 else "%.0f %%" % (100 * part)


def seconds(count: float) -> str:
    whole = round(max(0.0, count))
    if whole < 120:
        return "%d s" % whole
    if whole < 7200:
        return _two((whole // 60, "min"), (whole % 60, "s"))
    return _two((whole // 3600, "h"), (whole % 3600 // 60, "min"))


def capital(text: str) -> str:
    """At the beginning of a sentence."""
    return text[:1].upper() + text[1:]


def continued(text: str) -> str:
    """Behind a colon: names and code keep their first letter."""
    return text[:1].lower() + text[1:] if text.split(" ")[0] in ("The", "No", "Other") else text


def _two(first: Tuple[int, str], second: Tuple[int, str]) -> str:
    return "%d %s" % first + (" %d %s" % second if second[0] else "")
