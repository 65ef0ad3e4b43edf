"""Divide every shard into equal chunks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import gcd
from typing import ClassVar

import attrs
import numpy as np

from collc.ir.collective import Collective
from collc.ir.diagnostic import error
from collc.ir.frozen import frozen
from collc.ir.schedule import Schedule
from collc.ir.shown import counted
from collc.ir.symmetric import AnySchedule, SymmetricSchedule

from ..base import Pass, Solver, remark, solver
from ..knobs import Knob
from ..ranges import Range
from .rounding import best_rounding, round_parts
from .step_times import seed_of, time_per_byte, time_with_messages

__all__ = ["MOST_CHUNKS", "Discretize", "chunks_needed", "round_parts"]


#: later work per chunk takes seconds at this number, and rounding loses at most 1/4096 of a shard per transfer
MOST_CHUNKS = 4096
#: numbers of chunks for which the scheduler runs again
_SOLVED = 6
#: transfers up to which it does; of a template's own if it runs once
_SOLVABLE = 1 << 18
#: transfers of all ranks up to which the shards of a template are also rounded one by one
_LISTED = 1 << 21


@frozen
class Discretize(Pass):
    """Turn parts into whole chunks: the LCM of their denominators per shard, if that is not too many.

    At most ``max-chunks`` (default 4096) are allowed, and no chunk of a rank's buffer may have a number above
    ``max-number``. If the LCM is allowed, the result is exact. Otherwise the pass takes the number with the least
    bandwidth time; of equals, the fewest chunks. If the collective has a size, each chunk of the largest shard has at
    least one element. If ``max-message`` is given, longer messages are several, and each further one costs a latency at
    the collective's size.

    The ends of all parts are rounded down to whole chunks, by one rule for all rows of a shard. So data that were there
    before are there after, and every schedule stays correct. No link carries more than one chunk above its share per
    transfer (the rounding of section E.2 of the direct-connect paper, with the bound of Theorem 20). If the scheduler
    has an option for the number of chunks, it also runs again for whole chunks, with all its other options. The remark
    states the number, the reason, and the exact loss.

    All images of a template's shard are rounded alike, so a template remains one. If there are at most 2^21 transfers,
    the shards of all ranks are also rounded one by one. The pass lists all ranks if that takes less time.

    Raises C0507 (an impossible number of chunks) and C0598 (a vector that needs more chunks than can be numbered).
    """

    name: ClassVar[str] = "discretize"
    summary: ClassVar[str] = "divide every shard into equal chunks"
    takes: ClassVar[type] = Schedule
    gives: ClassVar[type] = Schedule
    establishes: ClassVar[tuple[str, ...]] = ("discrete",)
    takes_templates: ClassVar[bool] = True
    resolves: ClassVar[bool] = True
    varies: ClassVar[tuple[Knob, ...]] = (
        Knob(
            "max_chunks", "chunks", "chunks per shard", lambda this, given, make: make().parts,
            free=True, upper=True, lossy=True, kept_by=("chunks", "trees"), word="chunk per shard",
        ),
    )  # fmt: skip

    max_chunks: int | None = attrs.field(
        default=None, metadata={"help": "the most chunks of a shard; default 4096", "range": Range(1, code="C0507")}
    )
    max_number: int | None = attrs.field(
        default=None, metadata={"help": "the largest number of a chunk in a buffer", "range": Range(0, code="C0507")}
    )
    max_message: int | None = attrs.field(
        default=None,
        metadata={
            "help": "the most chunks of a message; a longer one counts as several",
            "range": Range(1, code="C0507"),
        },
    )

    templates: bool = attrs.field(
        default=False, metadata={"help": "programs of one rank: only the chunks of a shard are limited"}
    )

    def of_all_ranks(self) -> Discretize:
        return attrs.evolve(self, templates=False)

    def run(self, ir: AnySchedule) -> AnySchedule:
        exact = _reduced(ir)
        whole = self.templates and isinstance(exact, SymmetricSchedule) and exact.movable
        if exact.parts <= self.most(ir.collective, exactly=True, whole=whole)[0]:
            return _discrete(exact)
        most, why = _with_elements(ir.collective, *self.most(ir.collective, whole=whole))
        roundings = [best_rounding(exact, most, self.max_message)]
        if isinstance(exact, SymmetricSchedule) and len(exact) <= _LISTED:
            most_listed = min(most, self.most(ir.collective)[0])
            roundings.append(best_rounding(exact.unfold(), most_listed, self.max_message))
        best, tried = min(roundings, key=lambda found: time_with_messages(found[0], self.max_message))
        solved = _solved(exact, best, most, self.max_message, solver())
        among = f"the best of 1 to {most}" if tried == most else f"the best of {tried} numbers up to {most}"
        remark(
            f"discretize: {counted(solved.parts, 'chunk')} per shard, {among}; {exact.parts} would be "
            f"exact, but {why}; "
            f"{_loss(exact, solved)}" + ("" if solved is best else "; scheduled again for whole chunks")
        )
        return solved

    @property
    def _most(self) -> tuple[int, str]:
        if self.max_chunks is not None:
            return self.max_chunks, f"`max-chunks` is {self.max_chunks}"
        return MOST_CHUNKS, f"`max-chunks` is {MOST_CHUNKS} by default"

    def within(self, given: AnySchedule, limits: Mapping[str, int]) -> Discretize:
        """Return the pass limited to the chunks that a target can number, if the schedule needs more; it then counts
        messages too.
        """
        if "max_offset" not in limits:
            return self
        tight = attrs.evolve(self, max_number=limits["max_offset"], max_message=limits.get("max_count"))
        return self if chunks_needed(given) <= tight.most(given.collective, exactly=True)[0] else tight

    def most(self, collective: Collective, exactly: bool = False, whole: bool = False) -> tuple[int, str]:
        """Return the most chunks that a shard may have, and the reason.

        ``exactly``: if they are those of all parts. These may be twice as many, so that ranks that do alike things do
        so in whole chunks too. ``whole``: if the program is a template, of which all chunks are never listed.
        """
        from collc.ir.verify.program import MAX_CHUNKS, MAX_IN_WAVES

        total = MAX_IN_WAVES if exactly else MAX_CHUNKS
        most, why = self._most
        shards = max(collective.input_shards, collective.output_shards)
        held = _held(collective)
        if not whole and MAX_CHUNKS >= held and total // held < most:  # larger programs are templates, or not executed
            most, why = total // held, f"programs have at most {total} chunks in all buffers"
        if self.max_number is not None and (self.max_number + 1) // shards < most:
            most, why = (self.max_number + 1) // shards, f"chunks of a buffer have numbers up to {self.max_number}"
            if not most:
                raise error(
                    "C0598", f"a buffer of {shards} shards needs at least {shards} chunks, but {why}",
                    hint="use a target without this limit, such as `mpi-c`, or fewer ranks", exit_status=3,
                )  # fmt: skip
        return most, why


def _held(collective: Collective) -> int:
    """Return the most shards that all ranks have in input, output and scratch."""
    shards = max(collective.input_shards, collective.output_shards)
    return collective.num_ranks * (collective.input_shards + collective.output_shards + collective.reduces * shards)


def _with_elements(collective: Collective, most: int, why: str) -> tuple[int, str]:
    """Return the most chunks with at least one element each at the collective's size, and the reason."""
    if collective.size:
        largest = int(collective.weight.max())
        elements = collective.size * largest // (collective.whole * _element_bytes(collective.dtype))
        if elements < most:
            shard = "a shard" if collective.weights is None else "the largest shard"
            return max(elements, 1), f"{shard} of a vector of {collective.size} bytes has only {elements} elements"
    return most, why


def chunks_needed(schedule: AnySchedule) -> int:
    """Return how many chunks per shard make every part a whole number of chunks."""
    return _reduced(schedule).parts


def _element_bytes(dtype: str) -> int:
    """Return the bytes of an element, from the bits in its type's name; 1 if the name has none."""
    bits = re.search(r"\d+", dtype)
    return max(int(bits[0]) // 8, 1) if bits else 1


def _loss(exact: AnySchedule, found: AnySchedule) -> str:
    """Return the additional bandwidth time of ``found`` over ``exact``, exactly and in percent."""
    topology = exact.topology
    total = topology.node_bandwidth if topology.is_direct else None
    least = time_per_byte(exact)
    more = time_per_byte(found) - least
    unit = "M/B" if total else "s/B" if topology.unit == "B/s" else "per link unit"
    stated = more * total if total else more
    part = f" ({float(more / least):.3%})" if least else ""
    return f"{stated} {unit}{part} more than exactly" if more >= 0 else f"{-stated} {unit} less than exactly"


def _solved(exact: AnySchedule, rounded: AnySchedule, most: int, longest: int | None, by: Solver | None) -> AnySchedule:
    """Return a better schedule of whole chunks than the rounded one, if its scheduler finds one.

    A template is compared with templates if the scheduler makes them.
    """
    least, best = time_per_byte(exact), time_with_messages(rounded, longest)
    equal_latency = len({kind.latency for kind in exact.topology.classes}) == 1  # else latency counts too
    if by is None or best <= least or not equal_latency:
        return rounded
    if len(seed_of(exact) if by.takes_fewer else exact) > _SOLVABLE:
        return rounded
    found = rounded
    for chunks in [min(most, exact.parts)] if by.takes_fewer else _numbers(exact.parts, rounded.parts, most):
        candidate = by.solve(chunks)
        if isinstance(candidate, SymmetricSchedule) and not isinstance(exact, SymmetricSchedule):
            candidate = candidate.unfold()
        time = time_with_messages(candidate, longest)
        if candidate.num_steps <= exact.num_steps and (time, candidate.parts) < (best, found.parts):
            best, found = time, _reduced(candidate)
        if best <= least:
            break
    return found if found is rounded else _discrete(found)


def _discrete(schedule: AnySchedule) -> AnySchedule:
    """Return a schedule with its parts as chunks."""
    if isinstance(schedule, SymmetricSchedule):
        return attrs.evolve(schedule, seed=attrs.evolve(schedule.seed, discrete=True))
    return attrs.evolve(schedule, discrete=True)


def _numbers(parts: int, rounded: int, most: int) -> list[int]:
    """Return the numbers of chunks to schedule for: all if there are few, otherwise those that round least."""
    if most <= _SOLVED:
        return list(range(1, most + 1))
    divisors = [k for k in range(1, most + 1) if parts % k == 0]
    return sorted({rounded, most, most - 1, *divisors[-3:]})


def _reduced(schedule: AnySchedule) -> AnySchedule:
    """Divide all intervals by what they have in common, so that ``parts`` is the LCM of their denominators."""
    if isinstance(schedule, SymmetricSchedule):
        return attrs.evolve(schedule, seed=_reduced_rows(schedule.seed))
    return _reduced_rows(schedule)


def _reduced_rows(schedule: Schedule) -> Schedule:
    common = schedule.parts
    for column in (schedule.lo, schedule.hi):
        common = gcd(common, int(np.gcd.reduce(column.astype(np.int64), initial=0)))
    if common == 1:
        return schedule
    scaled = {c: getattr(schedule, c) // np.int64(common) for c in ("lo", "hi")}
    return attrs.evolve(schedule, parts=schedule.parts // common, **scaled)
