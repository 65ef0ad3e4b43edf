"""What ``collc cost`` and ``collc simulate`` say of collectives with several roots: orbits, best and worst root."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from collc.ir.frozen import frozen
from collc.ir.ranges import runs
from collc.ir.roots import Roots
from collc.ir.shown import counted
from collc.ir.spec import CollectiveRequest

from ..messages.quantities import show_size, show_time
from .table import table

__all__ = ["Orbits", "orbit_object", "orbits_object", "orbits_of", "orbits_text"]

#: the most runs of ranks in a line
_MOST_RUNS = 8


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


def orbits_text(one: Orbits) -> str:
    """Return the lines of a declaration: its orbits, and the best and the worst root at every size."""
    count = f"{counted(len(one.roots.listed), 'root')} in {counted(len(one.roots.planned), 'orbit')}"
    lines = [f"roots of {one.roots.name}: {count}\n"]
    for root in one.times:
        served = runs(one.roots.orbit(root))
        shown = ", ".join(served[:_MOST_RUNS]) + (", .." if len(served) > _MOST_RUNS else "")
        lines.append(f"  plan of rank {root}: {shown}\n")
    if len(one.times) < 2:
        return "".join(lines)
    rows = [("size", "best root", "time", "worst root", "time")]
    for size in one.sizes:
        best, worst = one.extremes(size)
        rows.append((
            show_size(size), str(best), show_time(float(one.times[best][size])), str(worst),
            show_time(float(one.times[worst][size])),
        ))  # fmt: skip
    return "".join(lines) + table(rows, indent="  ")


def orbit_object(request: CollectiveRequest | None) -> dict[str, object]:
    """Return the key of one orbit: the declaration, the planned root, and the roots that its plan serves."""
    if request is None or request.roots is None:
        return {}
    root = request.problem.collective.root
    assert root is not None
    return {"roots": {"of": request.roots.name, "planned": root, "served": list(request.roots.orbit(root))}}


def orbits_object(one: Orbits) -> dict[str, object]:
    """Return the JSON object of a declaration; times are in microseconds."""
    points = []
    for size in one.sizes:
        best, worst = one.extremes(size)
        points.append({
            "size_bytes": size, "best": best, "best_time_us": float(one.times[best][size] * 1_000_000),
            "worst": worst, "worst_time_us": float(one.times[worst][size] * 1_000_000),
        })  # fmt: skip
    orbits = [{"planned": root, "served": list(one.roots.orbit(root))} for root in one.times]
    return {"name": one.roots.name, "orbits": orbits, "points": points}
