"""The topology finder: from a number of nodes and a degree to the frontier of topologies, and the best for a use.

Rows come from the shipped database where it has them, else from a search. A search is a list of tasks, run here, by a
pool of processes, or by any executor; what it finds does not depend on which.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import attrs

from collc.frontends import coll
from collc.ir.bounds import moore_steps
from collc.ir.cost import DEFAULT_ALPHA, DEFAULT_BANDWIDTH
from collc.ir.diagnostic import error, nearest
from collc.ir.pieces import USUAL_SIZE
from collc.passes.finder.bases import in_pairs
from collc.passes.finder.database import Row, frontier, rows_for
from collc.passes.finder.measure import rated
from collc.passes.finder.tasks import EVALUATIONS, Task, assemble, plan

from .workers import Work

__all__ = [
    "DEFAULT_SIZE", "EVALUATIONS", "MOST_NODES", "OBJECTIVES", "Frontier", "Wanted", "check_sizes", "find", "search",
    "wanted", "whole",
]  # fmt: skip

OBJECTIVES = ("allreduce", "allgather", "alltoall")
#: M where nothing else is said
DEFAULT_SIZE = USUAL_SIZE
#: the largest search; a row of so many nodes is measured in seconds
MOST_NODES = 4096
_MOST_LINKS = 64
#: nodes up to which all-to-all rates are computed when they are asked for, whatever the topology
_RATED = 256


@attrs.frozen
class Wanted:
    """What is looked for: so many nodes of a degree, the best for an objective at a size.

    ``alpha`` is the latency of a step (seconds), ``size`` is M (bytes), ``bandwidth`` is B, the total bandwidth out of
    a node (bytes per second). Raises C0030 to C0032 for what no search can find.
    """

    nodes: int
    degree: int
    bidirectional: bool = False
    objective: str = "allreduce"
    alpha: Fraction = DEFAULT_ALPHA
    size: int = DEFAULT_SIZE
    bandwidth: Fraction = DEFAULT_BANDWIDTH

    def __attrs_post_init__(self) -> None:
        check_sizes(self.nodes, self.degree)
        if self.bidirectional and not in_pairs(self.nodes, self.degree):
            raise error(
                "C0031",
                f"no topology of {self.nodes} nodes and degree {self.degree} has a reverse for every link",
                notes=[f"{self.nodes} * {self.degree} links are an odd number, which makes no pairs"],
                hint="take an even degree or an even number of nodes, or leave out --bidirectional",
            )
        if self.objective not in OBJECTIVES:
            raise error(
                "C0032",
                f"there is no objective `{self.objective}`",
                hint=nearest(self.objective, OBJECTIVES) or f"objectives are {', '.join(OBJECTIVES)}",
                exit_status=2,
            )

    def time(self, row: Row) -> float | None:
        """Return the predicted time in seconds; nothing where it takes an all-to-all rate that is not known.

        Section A.2 for allreduce (both halves) and allgather; section A.5 for all-to-all, whose rate is of links of
        bandwidth B/d, and of which every node sends M/N to every other.
        """
        if self.objective == "alltoall":
            if not row.alltoall_rate:
                return None
            return float(Fraction(self.size, self.nodes) / (row.alltoall_rate * self.bandwidth / self.degree))
        steps, bandwidth = (2 * row.T_L, row.both_halves) if self.objective == "allreduce" else (row.T_L, row.T_B)
        return float(steps * self.alpha + bandwidth * self.size / self.bandwidth)


def wanted(
    nodes: Any, degree: Any, bidirectional: bool = False, objective: str = "allreduce", alpha: Any = None,
    size: Any = None, bandwidth: Any = None,
) -> Wanted:  # fmt: skip
    """Return what the arguments of the API mean; raise C0030 for sizes that are no whole numbers, C0020 for
    quantities.
    """
    from . import quantities as q

    return Wanted(
        whole("nodes", nodes), whole("degree", degree), bool(bidirectional), str(objective),
        DEFAULT_ALPHA if alpha is None
        else q.time(alpha, "alpha") if isinstance(alpha, str) else _exact("alpha", alpha),
        DEFAULT_SIZE if size is None else q.size(size, "size") if isinstance(size, str) else whole("size", size),
        DEFAULT_BANDWIDTH if bandwidth is None
        else q.bandwidth(bandwidth, "bandwidth") if isinstance(bandwidth, str) else _exact("bandwidth", bandwidth, 1),
    )  # fmt: skip


def whole(name: str, value: Any) -> int:
    """Return a whole number of at least 0 that an argument must be; raise C0030 for what is none."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < 0:
        raise error("C0030", f"found {name} {value!r}, needed a whole number", exit_status=2)
    return int(value.__index__())


def _exact(name: str, value: Any, least: int = 0) -> Fraction:
    """Return a number as the rational it is; raise C0020 where it is none, negative, or 0 where that means nothing."""
    try:
        number = Fraction(value)
    except (TypeError, ValueError, OverflowError):
        number = Fraction(-1)
    if number < 0 or (least and not number):
        need = "more than 0" if least else "at least 0"
        raise error("C0020", f"{name} is {value!r}, needed a number {need}, or a text with its unit", exit_status=2)
    return number


def check_sizes(nodes: int, degree: int) -> None:
    """Raise C0030 unless there is something to search for."""
    hint = None
    if degree < 1:
        message, need = f"degree {degree}", "a degree of at least 1"
    elif degree > _MOST_LINKS:
        message, need = f"degree {degree}", f"a degree of at most {_MOST_LINKS}"
    elif nodes < degree + 1:
        message, need = f"{nodes} nodes of degree {degree}", f"at least {degree + 1} nodes, d + 1"
        hint = f"on fewer nodes links are parallel: write `uniring({max(nodes, 2)}, {degree})`" if nodes > 1 else None
    elif nodes > MOST_NODES:
        message, need = f"{nodes} nodes", f"at most {MOST_NODES}"
        hint = "find a smaller topology and expand it: `line(G)` has d times the nodes, `power(G, 2)` their square"
    else:
        return
    raise error("C0030", f"found {message}, needed {need}", hint=hint)


@attrs.frozen
class Frontier:
    """What was found: rows by T_L, none of which another beats in all respects; ``times`` are theirs in seconds.

    ``bound_T_L`` is Moore's bound, for links both ways the one for graphs; ``bound_T_B`` is Theorem 4's.

    ``both_ways`` is the frontier of the topologies whose every link has its reverse: duplex cables.
    """

    wanted: Wanted
    frontier: tuple[Row, ...]
    both_ways: tuple[Row, ...] = ()

    @property
    def times(self) -> tuple[float | None, ...]:
        return tuple(self.wanted.time(row) for row in self.frontier)

    @property
    def best(self) -> Row | None:
        """The row that takes the least time; of equals the one of fewer steps. Nothing where no time is known."""
        known = [(time, i) for i, time in enumerate(self.times) if time is not None]
        return self.frontier[min(known)[1]] if known else None

    @property
    def bound(self) -> tuple[int, Fraction]:
        """T_L and T_B that no topology of this size and degree can go below."""
        n, d = self.wanted.nodes, self.wanted.degree
        steps = _graph_steps(n, d) if self.wanted.bidirectional else moore_steps(n, d)
        return steps, Fraction(n - 1, n)


def _graph_steps(nodes: int, degree: int) -> int:
    """Return Moore's bound for graphs, T_L**: whoever is reached over a link does not use it back for anyone new."""
    if degree < 3:
        return nodes // 2 if degree == 2 else nodes - 1
    steps, layer, reached = 0, degree, 1
    while reached < nodes:
        steps, reached, layer = steps + 1, reached + layer, layer * (degree - 1)
    return steps


def find(
    wanted: Wanted, *, database: tuple[str, str] | None = None, refresh: bool = False, evaluations: int = EVALUATIONS,
    seed: int = 0, work: Work | None = None,
) -> Frontier:  # fmt: skip
    """Return the frontier: from the database, or with ``refresh`` or where it has no such size from a search.

    ``database`` is the text and the path of one to use instead of the shipped one. Raises C0034 where nothing is found.
    """
    rows = [] if refresh else list(rows_for(wanted.nodes, wanted.degree, *(database or ())))
    work = work or Work()
    if not frontier(rows, bidirectional=wanted.bidirectional):
        rows = search(wanted.nodes, wanted.degree, evaluations, seed, work)
    if wanted.objective == "alltoall":
        rows = work.run(rated, [(row, coll.topology, _RATED) for row in rows], [row.expression for row in rows])
    found = frontier(rows, bidirectional=wanted.bidirectional, objective=wanted.objective)
    if not found:
        raise error(
            "C0034",
            f"no topology was found of {wanted.nodes} nodes and degree {wanted.degree}"
            + (" with a reverse for every link" if wanted.bidirectional else ""),
            hint="search longer: --effort 100000",
            exit_status=3,
        )
    both_ways = frontier(rows, bidirectional=True, objective=wanted.objective)
    return Frontier(wanted, tuple(found), tuple(both_ways))


def search(nodes: int, degree: int, evaluations: int, seed: int, work: Work) -> list[Row]:
    """Return the rows of one size from scratch: Cayley digraphs of the sizes that lead to it, then all expansions."""
    tasks = plan(nodes, degree, evaluations=evaluations, seed=seed)
    results = work.run(Task.run, [(task,) for task in tasks], [_shown(task) for task in tasks])
    rows: list[Row] = []
    for size in sorted({task.nodes for task in tasks}):
        mine = [row for task, found in zip(tasks, results, strict=True) if task.nodes == size for row in found]
        work.says(f"{size} nodes: expansions")
        rows = assemble(size, degree, [*rows, *mine], coll.topology)
    return rows


def _shown(task: Task) -> str:
    what = "line graphs" if task.lines else "Cayley graphs" if task.bidirectional else "Cayley digraphs"
    return f"{task.nodes} nodes: {what}"
