"""Collectives with several roots: the orbits of the roots, the best and the worst root at every size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from collc.ir.frozen import frozen
from collc.ir.ranges import runs
from collc.ir.roots import Roots
from collc.ir.spec import CollectiveRequest

from ..tables.columns import Cell

__all__ = ["Orbits", "orbit_rows", "orbits_of", "root_rows"]


@frozen(eq=False)
class Orbits:
    """The orbits of the roots of one declaration: for each planned root the time (seconds) at each size (bytes)."""

    roots: Roots
    times: Mapping[int, Mapping[int, Fraction]]

    def extremes(self, size: int) -> tuple[int, int]:
        """Return the planned roots with the least time at a size, and with the most; the first of equals."""
        at = {root: times[size] for root, times in self.times.items()}
        return min(at, key=lambda root: at[root]), max(at, key=lambda root: at[root])

    @property
    def sizes(self) -> Sequence[int]:
        """The sizes at which all orbits have a time."""
        first, *others = self.times.values()
        return [size for size in first if all(size in times for times in others)]


def orbits_of(times: Iterable[tuple[CollectiveRequest, Mapping[int, Fraction]]]) -> list[Orbits]:
    """Return the declarations with several roots, given the times of every collective by size."""
    found: dict[str, tuple[Roots, dict[int, Mapping[int, Fraction]]]] = {}
    for request, of_sizes in times:
        root = request.problem.collective.root
        if request.roots is not None and root is not None:
            found.setdefault(request.roots.name, (request.roots, {}))[1][root] = of_sizes
    return [Orbits(roots, at) for roots, at in found.values()]


def root_rows(one: Orbits) -> Iterator[dict[str, Cell]]:
    """Yield the best and the worst root of a declaration at every size; times are in microseconds."""
    for size in one.sizes:
        best, worst = one.extremes(size)
        yield {
            "name": one.roots.name, "size_bytes": size, "best": best,
            "best_time_us": float(one.times[best][size] * 10**6), "worst": worst,
            "worst_time_us": float(one.times[worst][size] * 10**6),
        }  # fmt: skip


def orbit_rows(one: Orbits) -> Iterator[dict[str, Cell]]:
    """Yield the planned roots of a declaration, and the roots that each plan serves, as ranges."""
    for root in one.times:
        yield {"name": one.roots.name, "planned": root, "served": ", ".join(runs(one.roots.orbit(root)))}
