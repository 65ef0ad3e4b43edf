"""A scheduler with the options that determine its schedule, and the algorithms to compare for a collective."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import attrs

from collc.ir.shown import brief_fields
from collc.ir.spec import Option, OptionValue, Problem
from collc.ir.topology import Topology
from collc.passes.schedulers import SCHEDULERS, Candidate

from ..registry.classes import pass_class

if TYPE_CHECKING:
    from collc.passes.base import Pass

__all__ = ["Algorithm", "candidate_of", "planned_sizes", "variants_of"]

#: ratio of neighboring sizes at which size-dependent schedules are planned
_RATIO = 4
#: largest planned size (bytes) of an unbounded range
_LARGEST_SIZE = 1 << 30


@attrs.frozen
class Algorithm:
    """A scheduler and its options, which give one schedule for all sizes.

    Of a collective among members, ``apart`` is whether no rank relays though that may take less time.

    >>> Algorithm("swing", (("variant", "latency"),)).name, Algorithm("forest", apart=True).text
    ('swing-latency', 'forest { relays: never }')
    >>> Algorithm("forest", (("k", 4), ("pieces", 9))).name
    'forest-k4-9'
    """

    scheduler: str
    options: tuple[tuple[str, OptionValue], ...] = ()
    apart: bool = False

    __repr__ = brief_fields

    @property
    def name(self) -> str:
        """Its name in reports and in names of files."""
        values = [f"k{value}" if name == "k" else str(value) for name, value in self.options]
        return "-".join([self.scheduler, *values, *["apart"] * self.apart])

    @property
    def text(self) -> str:
        """Its text after ``using`` in a specification."""
        given = (*self.options, ("relays", "never")) if self.apart else self.options
        inside = ", ".join(f"{name}: {value}" for name, value in given)
        return f"{self.scheduler} {{ {inside} }}" if inside else self.scheduler

    def requested(self) -> tuple[Option, ...]:
        """Return the scheduler's options as a specification gives them."""
        return tuple(Option(name, value) for name, value in self.options)

    def scheduler_pass(self) -> Pass:
        """Return the pass that computes its schedule."""
        return pass_class(self.scheduler)(**{name.replace("-", "_"): value for name, value in self.options})

    def with_options(self, **options: OptionValue) -> Algorithm:
        """Return the same with more options."""
        return attrs.evolve(self, options=(*self.options, *options.items()))


def variants_of(scheduler: str, problem: Problem, sizes: Sequence[int]) -> Iterator[Algorithm]:
    """Yield the algorithms of a scheduler to compare; :class:`.selector.Selector` adds numbers of pieces.

    ``sizes`` (bytes) are the sizes to plan for if a schedule depends on the size; without any, the scheduler's default.
    """
    how = candidate_of(scheduler)
    if how.varied is None or problem.collective.kind in how.varied:
        yield from (Algorithm(scheduler, options) for options in how.variants)
    else:
        yield Algorithm(scheduler)
    if how.planned == "size" and _plans_by_size(problem.topology):
        own = problem.collective.size
        yield from (Algorithm(scheduler, (("size", size),)) for size in sizes if size > 0 and size != own)


def candidate_of(scheduler: str) -> Candidate:
    """Return how ``auto`` compares a scheduler."""
    found = SCHEDULERS[scheduler].candidate
    assert found is not None
    return found


def _plans_by_size(topology: Topology) -> bool:
    """Return whether links differ in latency; then the best balance depends on the size."""
    return len({kind.latency for kind in topology.classes}) > 1


def planned_sizes(low: int, high: int | None) -> list[int]:
    """Return the sizes (bytes) to plan schedules for, given a range of sizes."""
    end = max(low, _LARGEST_SIZE) if high is None else high
    found = [size := max(low, 1)]
    while size < end:
        size = min(size * _RATIO, end)
        found.append(size)
    return found
