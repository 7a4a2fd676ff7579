"""What the sampler writes and everybody else reads: a line for each look at the GPUs. Pure.

    {"format": 1, "began": T, "source": "nvml"}                 before the driver is asked anything
    {"devices": [{"number": 0, "uuid": …, "name": …, "total": BYTES, "mig": false}]}
    {"t": T, "d": [[number, utilisation, memory, power, temperature, own memory, own utilisation, [own pids],
                    [others' pids], unmatched], …]}
    {"t": T, "lost": 0, "problem": "GPU is lost"}               once; {"t": T, "found": 0} where it answers again
    {"t": T, "skipped": 2}                                       late looks that were left out, before the next one
    {"t": T, "problem": "Driver Not Loaded"}                    last: nothing can be watched here

What is not known is null. Memory, power and temperature are asked for in turn; reading carries them on. `unmatched` is
the number of processes that the driver names and this machine does not know.
"""

import json
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

FORMAT = 1
_PERIODS = ((600.0, 1.0), (3600.0, 2.0), (21600.0, 5.0))
_LONGEST_PERIOD = 10.0


class Watched(NamedTuple):
    """A device. `total` is its memory in bytes."""

    number: int
    uuid: str
    name: str
    total: Optional[int]
    mig: bool


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
    """`began` None: nobody has watched. `problem`: why nothing could be watched, in the driver's words."""

    began: Optional[float] = None
    source: str = ""
    devices: Tuple[Watched, ...] = ()
    ticks: Tuple[Tick, ...] = ()
    losses: Tuple[Loss, ...] = ()
    skipped: int = 0
    problem: str = ""


def period(age: float) -> float:
    """Seconds between two looks at a run of this age: the longer it has run, the less a second counts."""
    return next((seconds for until, seconds in _PERIODS if age < until), _LONGEST_PERIOD)


def read(data: bytes) -> Samples:
    fold = Fold()
    fold.feed(data)
    return fold.samples()


class Fold:
    """What the lines say together; a file that grows is fed in portions. A line that is not whole waits for its rest,
    one that makes no sense is left out."""

    def __init__(self) -> None:
        self._rest = b""
        self._known = Samples()
        self._ticks: List[Tick] = []
        self._losses: List[Loss] = []
        self._last: Dict[int, Row] = {}

    def feed(self, data: bytes) -> None:
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            try:
                found = json.loads(line.decode("utf-8"))
                if isinstance(found, dict):
                    self._take(found)
            except (ValueError, TypeError, LookupError):
                continue

    def samples(self) -> Samples:
        return self._known._replace(ticks=tuple(self._ticks), losses=tuple(self._losses))

    def _take(self, found: Dict[str, Any]) -> None:
        if "began" in found:
            self._known = self._known._replace(began=float(found["began"]), source=str(found.get("source", "")))
        elif "devices" in found:
            self._known = self._known._replace(devices=tuple(_watched(each) for each in found["devices"]))
        elif "d" in found:
            self._take_tick(float(found["t"]), [_row(each) for each in found["d"]])
        elif "lost" in found:
            self._lose(Loss(float(found["t"]), int(found["lost"]), str(found.get("problem", "")), None))
        elif "found" in found:
            self._find(int(found["found"]), float(found["t"]))
        elif "skipped" in found:
            self._known = self._known._replace(skipped=self._known.skipped + int(found["skipped"]))
        elif "problem" in found:
            self._known = self._known._replace(problem=str(found["problem"]))

    def _take_tick(self, time: float, rows: List[Row]) -> None:
        carried = tuple(_carried(row, self._last.get(row.number)) for row in rows)
        self._last.update({row.number: row for row in carried})
        for row in carried:
            self._find(row.number, time)  # the line that said so may have had no room on the disk
        self._ticks.append(Tick(time, carried))

    def _lose(self, loss: Loss) -> None:
        if not any(each.number == loss.number and each.until is None for each in self._losses):
            self._losses.append(loss)

    def _find(self, number: int, time: float) -> None:
        if self._losses:
            self._losses = [
                each._replace(until=time) if each.number == number and each.until is None else each
                for each in self._losses
            ]


def encode_start(began: float, source: str) -> bytes:
    return _line({"format": FORMAT, "began": _rounded(began), "source": source})


def encode_devices(devices: Sequence[Watched]) -> bytes:
    return _line({"devices": [dict(each._asdict()) for each in devices]})


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


def _watched(found: Dict[str, Any]) -> Watched:
    return Watched(
        number=int(found["number"]),
        uuid=str(found["uuid"]),
        name=str(found["name"]),
        total=found.get("total"),
        mig=bool(found.get("mig")),
    )


def _row(found: List[Any]) -> Row:
    row = Row(*found[: len(Row._fields)])  # what a later version adds stands at the end
    return row._replace(number=int(row.number), own=tuple(row.own), others=tuple(row.others))


def _carried(row: Row, last: Optional[Row]) -> Row:
    if last is None:
        return row
    return row._replace(
        memory=last.memory if row.memory is None else row.memory,
        power=last.power if row.power is None else row.power,
        temperature=last.temperature if row.temperature is None else row.temperature,
    )
