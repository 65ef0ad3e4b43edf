"""Cutting every shard into equal chunks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import gcd
from typing import ClassVar

import attrs
import numpy as np

from collc.ir.collective import Collective
from collc.ir.diagnostic import error
from collc.ir.schedule import Schedule
from collc.ir.spec import Problem
from collc.ir.symmetric import SymmetricSchedule

from .base import Pass, remark
from .rounding import best_rounding, round_parts, time_per_byte, time_with_messages

__all__ = ["MOST_CHUNKS", "Discretize", "chunks_needed", "round_parts"]


#: what is done chunk by chunk after this pass takes seconds then, and rounding costs 1/4096
MOST_CHUNKS = 4096
#: numbers of chunks for which breadth first is solved anew
_SOLVED = 6
#: transfers up to which that is done
_SOLVABLE = 1 << 18


@attrs.frozen
class Discretize(Pass):
    """Make intervals whole chunks: as many a shard as the intervals' denominators need (their LCM), where that is few.

    How many there may be is the less of ``max-chunks`` (else 4096) and what gives no chunk of a rank's buffer a number
    above ``max-number``. Where that is enough nothing is lost. Else the number of least bandwidth time is taken, of
    equals the fewest chunks, and where the collective has a size none that leaves a chunk no element; where messages of
    more than ``max-message`` chunks are several, each costs a latency at the collective's size. Every interval's ends
    are rounded down to whole chunks, by one rule for all rows of a shard, so data that was there before is there after:
    the schedule stays correct whatever it is, and no link carries a chunk more per piece than its share (the rounding
    of section E.2 of the direct-connect paper, with the bound of Theorem 20). A schedule of ``bfb`` is solved for whole
    chunks besides, by integer program (13), one of ``flow`` for fewer pieces. The remark says the number, why, and
    exactly what is lost.

    Raises C0507 (an impossible number of chunks) and C0598 (a vector that cannot be cut in so few chunks).
    """

    name: ClassVar[str] = "discretize"
    summary: ClassVar[str] = "cut every shard into equal chunks"
    takes: ClassVar[type] = Schedule
    gives: ClassVar[type] = Schedule
    establishes: ClassVar[tuple[str, ...]] = ("discrete",)
    takes_templates: ClassVar[bool] = True

    max_chunks: int | None = attrs.field(
        default=None, metadata={"help": "the most chunks a shard may be cut in; 4096 unless given"}
    )
    max_number: int | None = attrs.field(
        default=None, metadata={"help": "the largest number that a chunk of a buffer may have"}
    )
    max_message: int | None = attrs.field(
        default=None, metadata={"help": "the most chunks of a message; larger ones are taken to be several"}
    )

    def run(self, ir: Schedule | SymmetricSchedule) -> Schedule | SymmetricSchedule:
        for name, least in (("max_chunks", 1), ("max_number", 0), ("max_message", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                option = name.replace("_", "-")
                raise error("C0507", f"discretize needs {option} of at least {least}, found {value}")
        most, why = self.most(ir.collective)
        if isinstance(ir, SymmetricSchedule):
            seed = _reduced(ir.seed)
            if seed.parts <= most:
                return SymmetricSchedule(attrs.evolve(seed, discrete=True))
            ir = ir.unfold()  # what is rounded differs from shard to shard
        exact = _reduced(ir)
        if exact.parts <= most:
            return attrs.evolve(exact, discrete=True)
        most, why = _with_elements(ir.collective, most, why)
        best, tried = best_rounding(exact, most, self.max_message)
        solved = _solved(exact, best, most, self.max_message)
        among = f"the best of 1 to {most}" if tried == most else f"the best of {tried} numbers up to {most}"
        remark(
            f"discretize: {solved.parts} chunks a shard, {among}, where {exact.parts} would be exact: {why}; "
            f"{_loss(exact, solved)}" + ("" if solved is best else "; solved anew for whole chunks")
        )
        return solved

    def most(self, collective: Collective) -> tuple[int, str]:
        """Return how many chunks a shard may have, and why no more."""
        most, why = MOST_CHUNKS, f"{MOST_CHUNKS} are the most unless `max-chunks` says more"
        if self.max_chunks is not None:
            most, why = self.max_chunks, f"`max-chunks` is {self.max_chunks}"
        shards = max(collective.input_shards, collective.output_shards)
        if self.max_number is not None and (self.max_number + 1) // shards < most:
            most, why = (self.max_number + 1) // shards, f"chunks of a buffer have numbers up to {self.max_number}"
            if not most:
                raise error(
                    "C0598", f"a buffer of {shards} shards has more chunks than can be numbered, however few a shard "
                    f"has: {why}", hint="use a target without such a limit, as `mpi-c` is, or fewer ranks",
                    exit_status=3,
                )  # fmt: skip
        return most, why


def _with_elements(collective: Collective, most: int, why: str) -> tuple[int, str]:
    """Return the most chunks, and why, of which each still has an element at the collective's size."""
    if collective.size:
        elements = collective.size // (collective.num_ranks * _element(collective.dtype))
        if elements < most:
            return max(elements, 1), f"a shard of a vector of {collective.size} bytes has no more elements"
    return most, why


def chunks_needed(schedule: Schedule | SymmetricSchedule) -> int:
    """Return how many chunks a shard needs so that every interval is some of them."""
    return _reduced(schedule.seed if isinstance(schedule, SymmetricSchedule) else schedule).parts


def _element(dtype: str) -> int:
    """Return the bytes of an element, by the bits in the name of its type; 1 where it names none."""
    bits = re.search(r"\d+", dtype)
    return max(int(bits[0]) // 8, 1) if bits else 1


def _loss(exact: Schedule, found: Schedule) -> str:
    """Return what a schedule takes longer than another, exactly and in percent of that."""
    topology = exact.topology
    total = topology.node_bandwidth if topology.is_direct else None
    least = time_per_byte(exact)
    more = time_per_byte(found) - least
    unit = "M/B" if total else "s/B" if topology.unit == "B/s" else "per link unit"
    stated = more * total if total else more
    part = f" ({float(more / least):.3%})" if least else ""
    return f"{stated} {unit}{part} more than exactly" if more >= 0 else f"{-stated} {unit} less than exactly"


def _solved(exact: Schedule, rounded: Schedule, most: int, longest: int | None) -> Schedule:
    """Return a better schedule of whole chunks than one that was rounded, where its scheduler has one."""
    least, best = time_per_byte(exact), time_with_messages(rounded, longest)
    alike = len({kind.latency for kind in exact.topology.classes}) == 1  # else bandwidth is not all that counts
    if exact.scheduler not in ("bfb", "flow") or best <= least or not alike or len(exact) > _SOLVABLE:
        return rounded
    found = rounded
    for made in _solutions(exact, rounded.parts, most):
        made = made.unfold() if isinstance(made, SymmetricSchedule) else made
        time = time_with_messages(made, longest)
        if made.num_steps <= exact.num_steps and (time, made.parts) < (best, found.parts):
            best, found = time, _reduced(made)
        if best <= least:
            break
    return found if found is rounded else attrs.evolve(found, discrete=True)


def _solutions(exact: Schedule, rounded: int, most: int) -> Iterator[Schedule | SymmetricSchedule]:
    """Yield what the scheduler of a schedule finds for numbers of chunks up to ``most``."""
    problem = Problem(exact.topology, exact.collective)
    if exact.scheduler == "flow":  # which finds the best number itself
        from .synthesis.flow.scheduler import Flow

        yield Flow(chunks=min(most, exact.parts)).run(problem)
        return
    from .synthesis.bfb import BFB

    for chunks in _numbers(exact.parts, rounded, most):
        yield BFB(chunks=chunks).run(problem)


def _numbers(parts: int, rounded: int, most: int) -> list[int]:
    """Return the numbers of chunks worth solving for: all of few, else the rounded one's and those that round least."""
    if most <= _SOLVED:
        return list(range(1, most + 1))
    divisors = [k for k in range(1, most + 1) if parts % k == 0]
    return sorted({rounded, most, most - 1, *divisors[-3:]})


def _reduced(schedule: Schedule) -> Schedule:
    """Divide all intervals by what they have in common, so that ``parts`` is the LCM of their denominators."""
    common = schedule.parts
    for column in (schedule.lo, schedule.hi):
        common = gcd(common, int(np.gcd.reduce(column.astype(np.int64), initial=0)))
    if common == 1:
        return schedule
    scaled = {c: getattr(schedule, c) // np.int64(common) for c in ("lo", "hi")}
    return attrs.evolve(schedule, parts=schedule.parts // common, **scaled)
