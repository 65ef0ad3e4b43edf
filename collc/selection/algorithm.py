"""A scheduler with the options that fix its schedule, and the algorithms worth comparing for a collective."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from collc.ir.spec import Option, OptionValue, Problem
from collc.ir.topology import Topology

from ..registry import pass_class

__all__ = ["Algorithm", "plain", "planned_sizes", "varied"]

#: the options that a name mentions by value alone
_MIRRORED = ((), (("mirrored", "neg"),), (("mirrored", "reflect"),))
_VARIANTS = ((("variant", "bandwidth"),), (("variant", "latency"),))
_VARIED: dict[str, Sequence[tuple[tuple[str, OptionValue], ...]]] = {
    "swing": _VARIANTS, "bine": _VARIANTS, "trivance": _VARIANTS,
    "recursive-doubling": _MIRRORED, "rabenseifner": _MIRRORED,
}  # fmt: skip

#: sizes at which schedules that depend on the size are planned lie so far apart, from the least to the greatest
_STRIDE = 4
#: schedules are planned for no larger sizes where a range has no end
_LARGE = 1 << 30


@attrs.frozen
class Algorithm:
    """A scheduler and its options: one schedule, whatever the size.

    >>> Algorithm("swing", (("variant", "latency"),)).name
    'swing-latency'
    """

    scheduler: str
    options: tuple[tuple[str, OptionValue], ...] = ()

    @property
    def name(self) -> str:
        """What it is called in reports and names of files."""
        return "-".join([self.scheduler, *(str(value) for _, value in self.options)])

    @property
    def text(self) -> str:
        """What would be written after ``using``."""
        inside = ", ".join(f"{name}: {value}" for name, value in self.options)
        return f"{self.scheduler} {{ {inside} }}" if inside else self.scheduler

    def requested(self) -> tuple[Option, ...]:
        """Return the options as a specification gives them."""
        return tuple(Option(name, value) for name, value in self.options)

    def made(self) -> Any:
        """Return its pass."""
        return pass_class(self.scheduler)(**{name.replace("-", "_"): value for name, value in self.options})

    def such(self, **options: OptionValue) -> Algorithm:
        """Return the same with more options."""
        return attrs.evolve(self, options=(*self.options, *options.items()))


def plain(scheduler: str) -> Algorithm:
    """Return a scheduler without options."""
    return Algorithm(scheduler)


def varied(scheduler: str, problem: Problem, sizes: Sequence[int]) -> Iterator[Algorithm]:
    """Yield the algorithms of a scheduler that are worth comparing; pieces of trees are added by who grows them.

    ``sizes`` are those to plan for where a schedule depends on the size; none: what the scheduler does without one.
    """
    kind = problem.collective.kind
    if scheduler in _VARIED and (kind == "allreduce" or _VARIED[scheduler] is _MIRRORED):
        yield from (Algorithm(scheduler, options) for options in _VARIED[scheduler])
    elif scheduler == "bfb" and _plans_by_size(problem.topology):
        yield Algorithm("bfb")
        own = problem.collective.size
        yield from (Algorithm("bfb", (("size", size),)) for size in sizes if size > 0 and size != own)
    else:
        yield Algorithm(scheduler)


def _plans_by_size(topology: Topology) -> bool:
    """Return whether links differ in latency, so that how they are balanced depends on the size."""
    return len({kind.latency for kind in topology.classes}) > 1


def planned_sizes(low: int, high: int | None) -> list[int]:
    """Return the sizes that trees are cut for and links balanced for, where a schedule serves a range of sizes."""
    end = max(low, _LARGE) if high is None else high
    found = [size := max(low, 1)]
    while size < end:
        size = min(size * _STRIDE, end)
        found.append(size)
    return found
