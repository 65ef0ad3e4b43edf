"""What two tuners read from a table and choose for a call, as their sources do it.

* The example plugin of NCCL (``plugins/tuner/example/plugin.c``, NCCL 2.28 to 2.30) cuts lines at 255 bytes and fields
  at runs of commas, takes unknown names for defaults, and sets one channel before it looks for a row.
* The tuner in NCCLX (torchcomms, ``meta/tuner``) refuses a file with any mistake, and divides sizes by the number of
  ranks.

Both take the first row that matches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from .names import ALGORITHMS, COLLECTIVES, PROTOCOLS

__all__ = ["Call", "Choice", "ExamplePlugin", "NcclxTuner", "Tuner"]

_LINE = 255
_FIELDS = (8, 10)
_LARGEST = 2**64 - 1


class Call(NamedTuple):
    """A call: NCCL's name of the collective, the bytes of the whole vector, the communicator."""

    collective: str
    size: int
    nodes: int
    ranks: int
    pipe_ops: int = 1
    registered: int = 0


class Choice(NamedTuple):
    """What a tuner chooses; ``channels`` 0 leaves the number to NCCL."""

    algorithm: str
    protocol: str
    channels: int


class Tuner(Protocol):
    """A tuner that has read a table."""

    def choose(self, call: Call) -> Choice | None:
        """Return what the first row that matches a call says; None without one."""


# ---- the example plugin


def _whole(text: str) -> int:
    """Return a number as C's ``atoi`` reads it."""
    found = re.match(r"[ \t\n\v\f\r]*([+-]?\d+)", text)
    return int(found[1]) if found else 0


def _unsigned(text: str) -> int:
    """Return a number as C's ``strtoull`` reads it: negative ones wrap, larger ones become the largest."""
    value = _whole(text)
    return _LARGEST if abs(value) > _LARGEST else value % (_LARGEST + 1)


class _Row(NamedTuple):
    collective: str
    low: int
    high: int
    choice: Choice
    nodes: int
    ranks: int
    pipe_ops: int
    registered: int

    def matches(self, call: Call) -> bool:
        pairs = (
            (self.nodes, call.nodes), (self.ranks, call.ranks), (self.pipe_ops, call.pipe_ops),
            (self.registered, call.registered),
        )  # fmt: skip
        sized = self.collective == call.collective and self.low <= call.size <= self.high
        return sized and all(own in (-1, other) for own, other in pairs)


class ExamplePlugin:
    """The rows that the example plugin reads from a text."""

    def __init__(self, text: str) -> None:
        self.rows = list(self._read(text))

    def _read(self, text: str) -> Iterator[_Row]:
        for line in self._lines(text):
            if line[:1] in ("#", "\n"):
                continue
            fields = [one.strip(" \t") for one in line.split("\n")[0].split(",") if one][: _FIELDS[1]]
            if len(fields) >= _FIELDS[0]:
                yield self._row(fields)

    def _lines(self, text: str) -> Iterator[str]:
        """Yield what ``fgets`` returns: lines of at most 255 bytes, longer ones in parts."""
        for line in re.findall(r"[^\n]*\n|[^\n]+", text):
            data = line.encode("utf-8", "surrogateescape")
            for at in range(0, len(data), _LINE):
                yield data[at : at + _LINE].decode("utf-8", "surrogateescape")

    def _row(self, fields: Sequence[str]) -> _Row:
        collective = fields[0] if fields[0] in COLLECTIVES.values() else "allreduce"
        algorithm = fields[3] if fields[3] in ALGORITHMS else "ring"
        protocol = fields[4] if fields[4] in PROTOCOLS else "simple"
        choice = Choice(algorithm, protocol, _whole(fields[5]))
        optional = [_whole(one) for one in fields[8:]] + [-1, -1]
        return _Row(
            collective, _unsigned(fields[1]), _unsigned(fields[2]), choice, _whole(fields[6]), _whole(fields[7]),
            optional[0], optional[1],
        )  # fmt: skip

    def choose(self, call: Call) -> Choice | None:
        """Return what the first row that matches a call says; None: NCCL chooses, with one channel."""
        found = next((row.choice for row in self.rows if row.matches(call)), None)
        return found._replace(channels=1) if found is not None and found.channels == -1 else found


# ---- the tuner in NCCLX


class _Interval(NamedTuple):
    low: int
    high: int | None

    def holds(self, number: int) -> bool:
        return self.low <= number and (self.high is None or number <= self.high)


class _NcclxRow(NamedTuple):
    collective: str
    shard: _Interval
    choice: Choice
    nodes: _Interval
    local: _Interval

    def matches(self, call: Call) -> bool:
        pairs = (
            (self.shard, call.size // call.ranks), (self.nodes, call.nodes), (self.local, call.ranks // call.nodes),
        )  # fmt: skip
        return self.collective == call.collective and all(own.holds(number) for own, number in pairs)


class NcclxTuner:
    """The rows that the tuner in NCCLX reads from a text; raises ValueError for a text that it refuses."""

    def __init__(self, text: str) -> None:
        lines = [line.strip() for line in text.splitlines()]
        self.rows = [self._row(line) for line in lines if line and not line.startswith("#")]

    def _row(self, line: str) -> _NcclxRow:
        fields = [one.strip() for one in re.split(r",(?![^\[(]*[\])])", line)]
        if len(fields) != 7:
            raise ValueError(f"found {len(fields)} fields, needed 7")
        collective, shard, algorithm, protocol, channels, nodes, local = fields
        known = collective in COLLECTIVES.values() and algorithm in ALGORITHMS and protocol in PROTOCOLS
        if not known or not re.fullmatch(r"-?\d+", channels):
            raise ValueError(f"found a name or number that NCCL does not have in `{line}`")
        choice = Choice(algorithm, protocol, max(int(channels), 0))
        return _NcclxRow(collective, *(_interval(shard), choice, _interval(nodes), _interval(local)))

    def choose(self, call: Call) -> Choice | None:
        """Return what the first row that matches a call says; None: NCCL chooses."""
        return next((row.choice for row in self.rows if row.matches(call)), None)


def _interval(text: str) -> _Interval:
    """Return an interval of whole numbers: ``*``, ``5``, ``[0,4)``, ``(1,)``; raise ValueError for another text."""
    if text == "*":
        return _Interval(0, None)
    if re.fullmatch(r"\d+", text):
        return _Interval(int(text), int(text))
    found = re.fullmatch(r"([\[(])\s*(\d*)\s*,\s*(\d*)\s*([\])])", text)
    if found is None:
        raise ValueError(f"found `{text}`, needed an interval")
    low = int(found[2] or 0) + (found[1] == "(" and bool(found[2]))
    high = int(found[3]) - (found[4] == ")") if found[3] else None
    if high is not None and low > high:
        raise ValueError(f"found an empty interval `{text}`")
    return _Interval(low, high)
