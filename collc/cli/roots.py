"""What ``collc cost`` and ``collc simulate`` say of collectives with several roots: orbits, best and worst root."""

from __future__ import annotations

from collc.ir.ranges import runs
from collc.ir.shown import counted
from collc.ir.spec import CollectiveRequest

from ..costing.orbits import Orbits, root_rows
from ..messages.quantities import show_size, show_time
from .table import table

__all__ = ["orbit_object", "orbits_object", "orbits_text"]

#: the most runs of ranks in a line
_MOST_RUNS = 8


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
    points = [{key: value for key, value in row.items() if key != "name"} for row in root_rows(one)]
    orbits = [{"planned": root, "served": list(one.roots.orbit(root))} for root in one.times]
    return {"name": one.roots.name, "orbits": orbits, "points": points}
