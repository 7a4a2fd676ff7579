"""What the sampler writes and all others read: a line for each look at the GPUs. Pure, but for
`Following`, which reads the file while it grows.

    {"format": 1, "began": T, "source": "nvml"}                 before the driver is asked anything
    {"devices": [{"number": 0, "uuid": …, "name": …, "total": BYTES, "mig": false}]}
    {"t": T, "d": [[number, utilisation, memory, power, temperature, own memory, own utilisation, [own pids],
                    [others' pids], unmatched, [[pid, memory, utilisation], …]], …]}
    {"t": T, "lost": 0, "problem": "GPU is lost"}               once; {"t": T, "found": 0} where it answers again
    {"t": T, "skipped": 2}                                       late looks that were left out, before the next one
    {"t": T, "problem": "Driver Not Loaded"}                    last: nothing can be watched here

What is not known is null. Memory, power and temperature are asked for in turn; reading carries them on. `unmatched` is
the number of processes that the driver names and this machine does not know. What each process has is written for
readers of the file; nothing here is judged by it, and reading leaves it out.
"""

import json
import os
from itertools import product
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from holdfast.farside.gpu.devices import GpuDevice
from holdfast.farside.system.nofollow import open_plain
from holdfast.farside.system.whole_lines import WholeLines

FORMAT = 1
_PERIODS = ((600.0, 1.0), (3600.0, 2.0), (21600.0, 5.0), (86400.0, 10.0))
_LONGEST_PERIOD = 60.0
_LONGEST_LINE = 1 << 20
MOST_ROWS, MOST_LOSSES = 1 << 20, 1000
"""That are kept of a file: sixteen devices for a month. What comes after them is not read."""
_MOST = 1 << 63
"""Numbers are smaller: what is larger is damage, and could not be counted with."""


class Row(NamedTuple):
    """One device at one time. Per cent, bytes, watts, degrees; None is unknown."""

    number: int
    utilisation: Optional[int]
    memory: Optional[int]
    power: Optional[float]
    temperature: Optional[int]
    own_memory: Optional[int]
    own_utilisation: Optional[int]
    own: Tuple[int, ...]
    others: Tuple[int, ...]
    unmatched: int
    processes: Tuple[Tuple[int, Optional[int], Optional[int]], ...] = ()


class Tick(NamedTuple):
    time: float
    rows: Tuple[Row, ...]


class Loss(NamedTuple):
    """A device that answered no more. `until`: when it did again."""

    time: float
    number: int
    problem: str
    until: Optional[float]


class Samples(NamedTuple):
    """`began` None: the run was not watched. `problem`: why nothing could be watched, in the driver's words."""

    began: Optional[float] = None
    source: str = ""
    devices: Tuple[GpuDevice, ...] = ()
    ticks: Tuple[Tick, ...] = ()
    losses: Tuple[Loss, ...] = ()
    skipped: int = 0
    problem: str = ""


def period(age: float) -> float:
    """Seconds between two looks at a run of this age: the longer it has run, the less a second counts. One for ten
    minutes, two to the end of the first hour, five to that of the sixth, ten to that of the first day, then sixty: two
    weeks are 31,000 looks."""
    return next((seconds for until, seconds in _PERIODS if age < until), _LONGEST_PERIOD)


def read(data: bytes) -> Samples:
    fold = Fold()
    fold.feed(data)
    return fold.samples()


class Fold:
    """What the lines say together; a file that grows is fed in portions. A line that is not whole waits for its rest,
    one that makes no sense is left out, and so is one that has another kind of value than it should."""

    def __init__(self) -> None:
        self._lines = WholeLines(_LONGEST_LINE)
        self._count = 0
        self._known = Samples()
        self._ticks: List[Tick] = []
        self._losses: List[Loss] = []
        self._open: Dict[int, int] = {}
        """Of devices that are lost: where in the losses."""
        self._last: Dict[int, Row] = {}

    def feed(self, data: bytes) -> None:
        for line in self._lines.feed(data):
            self._take_line(line)

    def samples(self) -> Samples:
        return self._known._replace(ticks=tuple(self._ticks), losses=tuple(self._losses))

    def forget(self, before: float) -> None:
        """Looks of an earlier time are not needed any more. What is carried on from them is."""
        self._ticks = [each for each in self._ticks if each.time >= before]
        self._count = sum(1 + len(each.rows) for each in self._ticks)

    def _take_line(self, line: bytes) -> None:
        try:
            found = _DECODER.decode(line.decode("utf-8"))
            if isinstance(found, dict):
                self._take(found)
        except (ValueError, TypeError, LookupError, OverflowError, RecursionError):
            return

    def _take(self, found: Dict[str, Any]) -> None:
        """Whatever raises does so before anything is changed."""
        if "began" in found:
            began, source = _number(found["began"]), _text(found.get("source", ""))
            self._known = self._known._replace(began=began, source=source)
        elif "devices" in found:
            self._known = self._known._replace(devices=tuple(_device(each) for each in _list(found["devices"])))
        elif "d" in found:
            time = _number(found["t"])
            self._take_tick(time, tuple(_row(each, self._last) for each in _list(found["d"])))
        elif "lost" in found:
            self._lose(Loss(_number(found["t"]), _whole(found["lost"]), _text(found.get("problem", "")), None))
        elif "found" in found:
            self._find(_whole(found["found"]), _number(found["t"]))
        elif "skipped" in found:
            self._known = self._known._replace(skipped=self._known.skipped + _whole(found["skipped"]))
        elif "problem" in found:
            self._known = self._known._replace(problem=_text(found["problem"]))

    def _take_tick(self, time: float, rows: Tuple[Row, ...]) -> None:
        self._count += 1 + len(rows)
        if self._count > MOST_ROWS:
            return
        for row in rows:
            self._last[row.number] = row
            if self._open:
                self._find(row.number, time)  # the line that said so may have had no room on the disk
        self._ticks.append(Tick(time, rows))

    def _lose(self, loss: Loss) -> None:
        if loss.number not in self._open and len(self._losses) < MOST_LOSSES:
            self._open[loss.number] = len(self._losses)
            self._losses.append(loss)

    def _find(self, number: int, time: float) -> None:
        place = self._open.pop(number, None)
        if place is not None:
            self._losses[place] = self._losses[place]._replace(until=time)


def encode_start(began: float, source: str) -> bytes:
    return _line({"format": FORMAT, "began": _rounded(began), "source": source})


def encode_devices(devices: Sequence[GpuDevice]) -> bytes:
    rows = [
        {"number": each.number, "uuid": each.uuid, "name": each.name, "total": each.memory_total, "mig": each.mig}
        for each in devices
    ]
    return _line({"devices": rows})


def encode_tick(tick: Tick) -> bytes:
    return _line({"t": _rounded(tick.time), "d": tick.rows})


def encode_loss(time: float, number: int, problem: str) -> bytes:
    return _line({"t": _rounded(time), "lost": number, "problem": problem})


def encode_found(time: float, number: int) -> bytes:
    return _line({"t": _rounded(time), "found": number})


def encode_skipped(time: float, count: int) -> bytes:
    return _line({"t": _rounded(time), "skipped": count})


def encode_problem(time: float, problem: str) -> bytes:
    return _line({"t": _rounded(time), "problem": problem})


def _line(found: Dict[str, Any]) -> bytes:
    return json.dumps(found, separators=(",", ":")).encode("ascii") + b"\n"


def _rounded(time: float) -> float:
    return round(time, 4)


def _refused(name: str) -> None:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_refused)
"""NaN and Infinity are no numbers that are written."""


def _number(found: Any) -> float:
    if type(found) not in (int, float) or not -_MOST < found < _MOST:
        raise ValueError(found)
    return float(found)


def _whole(found: Any) -> int:
    """True is no number."""
    if type(found) is not int or not -_MOST < found < _MOST:
        raise ValueError(found)
    return int(found)


def _text(found: Any) -> str:
    if not isinstance(found, str):
        raise TypeError(found)
    return found


def _list(found: Any) -> List[Any]:
    if not isinstance(found, list):
        raise TypeError(found)
    return found


def _device(found: Any) -> GpuDevice:
    if not isinstance(found, dict) or not isinstance(found.get("mig", False), bool):
        raise TypeError(found)
    total = None if found.get("total") is None else _whole(found["total"])
    number, uuid, name = _whole(found["number"]), _text(found["uuid"]), _text(found["name"])
    return GpuDevice(number, uuid, name, total, mig=found.get("mig", False))


def _row(found: Any, known: Dict[int, Row]) -> Row:
    """With what is carried on from the last look at the device. A value that has not changed is the last one itself,
    and so is the row: weeks of looks have room then."""
    fields = _list(found)[:_FIELDS]  # what a later version adds stands at the end
    if tuple(map(type, fields)) not in _SHAPES:
        raise TypeError(found)
    number, utilisation, memory, power, temperature, own_memory, own_utilisation, own, others, unmatched = fields
    for value in (number, utilisation, memory, temperature, own_memory, own_utilisation, unmatched):
        if value is not None and not -_MOST < value < _MOST:
            raise ValueError(found)
    if power is not None:
        power = _number(power)
    last = known.get(number, _NOTHING)
    values = (
        number,
        utilisation,
        last.memory if memory is None or memory == last.memory else memory,
        last.power if power is None or power == last.power else power,
        last.temperature if temperature is None else temperature,
        last.own_memory if own_memory == last.own_memory else own_memory,
        own_utilisation,
        _pids(own, last.own),
        _pids(others, last.others),
        unmatched,
        (),
    )
    is_same = values == last
    return last if is_same else Row(*values)


_FIELDS = len(Row._fields) - 1
"""That are read."""
_NOTHING = Row(-1, None, None, None, None, None, None, (), (), 0)
_MAYBE = (int, type(None))
_SHAPES = frozenset(
    product((int,), _MAYBE, _MAYBE, (float, *_MAYBE), _MAYBE, _MAYBE, _MAYBE, (list,), (list,), (int,))  # as in a Row
)


def _pids(found: List[Any], last: Tuple[int, ...]) -> Tuple[int, ...]:
    pids = tuple(found)
    if pids == last:
        return last
    for each in pids:
        _whole(each)
    return pids


_PORTION = 1 << 20


class Following:
    """`samples` are what there was when it was last read on. `opener` returns a descriptor: a client has its own, as
    Windows opens no folders."""

    def __init__(self, path: str, opener: Callable[[str], int] = open_plain) -> None:
        self._path, self._opener, self._fold, self._read = path, opener, Fold(), 0

    def read_on(self) -> None:
        """What cannot be read now may be read the next time."""
        try:
            with os.fdopen(self._opener(self._path), "rb") as source:
                source.seek(self._read)
                while True:
                    data = source.read(_PORTION)
                    if not data:
                        return
                    self._read += len(data)
                    self._fold.feed(data)
        except OSError:
            return

    def samples(self) -> Samples:
        return self._fold.samples()

    def forget(self, before: float) -> None:
        """Looks of an earlier time are not asked for any more."""
        self._fold.forget(before)
