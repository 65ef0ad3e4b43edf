"""The topology finder: the frontier of topologies for a number of nodes and a degree, and the best for an objective.

Rows come from the shipped database, or from a search for sizes that it lacks. A search is a list of tasks, run here, by
a pool of processes, or by any executor, always with the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, SupportsIndex

import attrs

from collc.frontends import coll
from collc.ir.costs.bounds import moore_graph_steps, moore_steps
from collc.ir.costs.cost import DEFAULT_ALPHA, DEFAULT_BANDWIDTH
from collc.ir.costs.pieces import USUAL_SIZE
from collc.ir.diagnostic import Diagnostic, error, nearest
from collc.ir.shown import brief_fields, counted, shown
from collc.passes.finder.bases import can_be_bidirectional
from collc.passes.finder.database import Row, frontier, merged_frontiers, rows_for
from collc.passes.finder.exclude import NOTHING, Excluded
from collc.passes.finder.measure import with_narrow_rate
from collc.passes.finder.tasks import Task, assemble, plan, usual_evaluations

from ..files.texts import read_text
from ..processes.workers import Work
from .building import NO_QUESTION, Facts, Questions, equals, facts, fewest_between_racks

if TYPE_CHECKING:
    import pandas

    from ..tables.columns import Table
    from ..training.objectives import Objective
    from .larger import Expansion
    from .recabling import Recabling

__all__ = [
    "DEFAULT_SIZE",
    "MOST_NODES",
    "OBJECTIVES",
    "Frontier",
    "Keep",
    "Wanted",
    "check_sizes",
    "database_text",
    "find",
    "given_sizes",
    "patterns",
    "rational",
    "search",
    "wanted",
    "whole",
]  # fmt: skip

OBJECTIVES = ("allreduce", "allgather", "alltoall")
#: default of M, in bytes
DEFAULT_SIZE = USUAL_SIZE
#: the largest search; measuring a row of this size takes seconds
MOST_NODES = 10_000
_MOST_DEGREE = 8  # links of a node up to which networks of this size are searched
_MOST_NODES_WIDE = 4096
_MAX_DEGREE = 64
#: up to this number of nodes, brackets of all-to-all rates are narrowed for times that need them
_MAX_NARROWED = 256


@attrs.frozen
class Wanted:
    """The goal of a search: number of nodes, degree, and the best for an objective at a size.

    ``alpha`` is the latency of a step (seconds), ``size`` is M (bytes), ``bandwidth`` is B, the total bandwidth out of
    a node (bytes per second). A ``workload`` takes the place of the objective and the size. ``exclude`` holds the names
    that no topology may have in its expression, ``questions`` what else is computed. Raises C0030 to C0032 for goals
    that are impossible.
    """

    nodes: int
    degree: int
    bidirectional: bool = False
    objective: str = "allreduce"
    alpha: Fraction = DEFAULT_ALPHA
    size: int = DEFAULT_SIZE
    bandwidth: Fraction = DEFAULT_BANDWIDTH
    workload: Objective | None = None
    exclude: Excluded = NOTHING
    questions: Questions = NO_QUESTION

    __repr__ = brief_fields

    def __attrs_post_init__(self) -> None:
        check_sizes(self.nodes, self.degree)
        if self.bidirectional and not can_be_bidirectional(self.nodes, self.degree):
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

    @property
    def needs_alltoall(self) -> bool:
        """Whether times need all-to-all rates."""
        return self.objective == "alltoall" if self.workload is None else self.workload.needs_alltoall

    @property
    def compared(self) -> str:
        """How the frontier compares rows: an objective, or ``mix`` of all criteria."""
        return self.objective if self.workload is None else "mix"

    def time(self, row: Row) -> float | None:
        """Return :meth:`exact_time` as a float."""
        found = self.exact_time(row)
        return None if found is None else float(found)

    def least_time(self, row: Row) -> Fraction | None:
        """Return what the time may be at least if the all-to-all rate is known between bounds; else the exact time."""
        return self.exact_time(attrs.evolve(row, alltoall_rate=row.most_alltoall, alltoall_upper=None))

    def least_seconds(self, row: Row) -> float | None:
        """Return :meth:`least_time` as a float."""
        found = self.least_time(row)
        return None if found is None else float(found)

    def exact_time(self, row: Row) -> Fraction | None:
        """Return the predicted time in seconds; None if it needs an unknown all-to-all rate.

        Section A.2 for allreduce (both halves) and allgather; section A.5 for all-to-all, whose rate is of links of
        bandwidth B/d, and of which every node sends M/N to every other. Of a bracket it takes the rate that a routing
        reaches.
        """
        if self.workload is not None:
            return self.workload.time(row, self.alpha, self.bandwidth)
        if self.objective == "alltoall":
            if not row.alltoall_rate:
                return None
            return Fraction(self.size, self.nodes) / (row.alltoall_rate * self.bandwidth / self.degree)
        steps, bandwidth = (2 * row.T_L, row.allreduce_T_B) if self.objective == "allreduce" else (row.T_L, row.T_B)
        return steps * self.alpha + bandwidth * self.size / self.bandwidth


def wanted(
    nodes: object, degree: object, bidirectional: bool = False, objective: str = "allreduce", alpha: object = None,
    size: object = None, bandwidth: object = None, exclude: Excluded = NOTHING, workload: Objective | None = None,
    rack: object = None, robust: object = False,
) -> Wanted:  # fmt: skip
    """Return the goal for arguments of the API; raise C0030 for wrong whole numbers, C0020 for wrong quantities."""
    from ..messages import quantities as q

    return Wanted(
        whole("nodes", nodes), whole("degree", degree), bool(bidirectional), str(objective),
        DEFAULT_ALPHA if alpha is None
        else q.time(alpha, "alpha") if isinstance(alpha, str) else rational("alpha", alpha),
        DEFAULT_SIZE if size is None else q.size(size, "size") if isinstance(size, str) else whole("size", size),
        DEFAULT_BANDWIDTH if bandwidth is None
        else q.bandwidth(bandwidth, "bandwidth") if isinstance(bandwidth, str) else rational("bandwidth", bandwidth, 1),
        workload, exclude, Questions(None if rack is None else whole("rack", rack, 1), bool(robust)),
    )  # fmt: skip


def database_text(path: str, degree: int) -> tuple[str, str]:
    """Return the text and the path of the database of a degree; raise C0002 and C0003 for what cannot be read."""
    from .finding_database import file_of

    path = file_of(path, degree)
    return read_text(path), path


def given_sizes(given: object) -> tuple[int, ...]:
    """Return sizes (bytes) of the API: a number, a text, or several of these; none for None. Raises C0020, C0030."""
    from ..messages.size_ranges import sizes

    listed = () if given is None else given if isinstance(given, (list, tuple)) else (given,)
    found = [size for one in listed for size in (sizes(one, "size") if isinstance(one, str) else [whole("size", one)])]
    return tuple(found)


def whole(name: str, value: object, least: int = 0) -> int:
    """Return an argument as a whole number of at least ``least``; raise C0030 for other values."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex) or value.__index__() < least:
        need = "a whole number" + (f" of at least {least}" if least else "")
        raise error("C0030", f"found {name} {value!r}, needed {need}", exit_status=2)
    return int(value.__index__())


def patterns(exclude: object) -> list[str]:
    """Return the patterns of the API, a text or several; raise C0035 for other values."""
    listed = [exclude] if isinstance(exclude, str) else exclude
    if not isinstance(listed, Collection) or not all(isinstance(one, str) for one in listed):
        raise error("C0035", f"found exclude {exclude!r}, needed a pattern, or a list of them", exit_status=2)
    return list(listed)


def rational(name: str, value: object, least: int = 0) -> Fraction:
    """Return an argument as a rational; raise C0020 for other values and for values below ``least``."""
    number: Fraction
    try:
        number = Fraction(value)  # type: ignore[call-overload]  # it refuses other types
    except (TypeError, ValueError, OverflowError):
        number = Fraction(-1)
    if number < 0 or (least and not number):
        need = "more than 0" if least else "at least 0"
        raise error("C0020", f"{name} is {value!r}, needed a number {need}, or a text with its unit", exit_status=2)
    return number


def check_sizes(nodes: int, degree: int) -> None:
    """Raise C0030 for a size or degree without topologies."""
    hint = None
    if degree < 1:
        message, need = f"degree {degree}", "a degree of at least 1"
    elif degree > _MAX_DEGREE:
        message, need = f"degree {degree}", f"a degree of at most {_MAX_DEGREE}"
    elif nodes < degree + 1:
        message, need = f"{nodes} nodes of degree {degree}", f"at least {degree + 1} nodes, d + 1"
        hint = f"on fewer nodes links are parallel: write `uniring({max(nodes, 2)}, {degree})`" if nodes > 1 else None
    elif nodes > (most := MOST_NODES if degree <= _MOST_DEGREE else _MOST_NODES_WIDE):
        message, need = f"{nodes} nodes of degree {degree}", f"at most {most}"
        hint = "find a smaller topology and expand it: `line(G)` has d times the nodes, `power(G, 2)` their square"
    else:
        return
    raise error("C0030", f"found {message}, needed {need}", hint=hint)


@attrs.frozen
class Frontier:
    """The topologies that no other one is known to beat in T_L, T_B and all-to-all rate.

    Rows are by T_L; with a workload they are by time.

    ``bound`` is Moore's bound on T_L (for ``bidirectional`` the bound of graphs) and Theorem 4's bound on T_B.

    ``both_ways`` is the frontier of the topologies in which every link has a reverse: duplex cables. ``facts`` are the
    answers to the goal's questions, by row. ``listed``: the database has the size. ``sizes`` (bytes) are those that
    were asked for, the goal's first. ``expansions`` are larger topologies, None if they were not asked for.
    ``diagnostics`` are warnings.

    >>> import collc
    >>> found = collc.find(nodes=9, degree=4)
    >>> found, found.bound
    (Frontier(9 nodes, degree 4: 1 topology, best Row(circulant(9, {2, 3}), T_L 2, T_B 8/9)), (2, Fraction(8, 9)))
    """

    wanted: Wanted
    frontier: tuple[Row, ...]
    both_ways: tuple[Row, ...] = ()
    facts: Mapping[Row, Facts] = attrs.field(factory=dict, hash=False)
    listed: bool = True
    sizes: tuple[int, ...] = ()
    expansions: tuple[Expansion, ...] | None = None
    diagnostics: tuple[Diagnostic, ...] = ()

    def __repr__(self) -> str:
        wanted, best = self.wanted, "" if self.best is None else f", best {self.best!r}"
        rows = counted(len(self.frontier), "topology")
        return shown(self, f"{counted(wanted.nodes, 'node')}, degree {wanted.degree}: {rows}{best}")

    def _repr_html_(self) -> str:
        """Return the rows as a table, for notebooks."""
        from collc.ir.html import html_table

        head = ("topology", "T_L", "T_B", "diameter", "microseconds")
        rows = [
            (row.expression, row.T_L, row.T_B, row.diameter, "-" if time is None else f"{time * 1e6:.4g}")
            for row, time in zip(self.frontier, self.times, strict=True)
        ]
        title = f"{counted(self.wanted.nodes, 'node')} of degree {self.wanted.degree}"
        by_size = attrs.evolve(self.table("sizes"), title="by size")._repr_html_() if len(self.sizes) > 1 else ""
        return html_table(title, head, rows) + by_size

    def table(self, name: str = "frontier") -> Table:
        """Return a table of ``collc find --table``: by default the rows of the ``frontier``.

        ``sizes`` has the fastest topology at each of the sizes. With ``expand_to``, ``expansions`` has the larger
        topologies. ``places`` and ``recabling`` have the nodes and the cables of the way to one of them. Raises C0019
        for another name.
        """
        from ..tables.columns import require_table
        from .frontier_table import fastest_table, frontier_table

        known: dict[str, Callable[[], Table]] = {"frontier": lambda: frontier_table(self)}
        if not self.wanted.workload:
            known["sizes"] = lambda: fastest_table(self, self.sizes or (self.wanted.size,))
        if self.expansions is not None:
            from .larger import growth_tables

            known |= growth_tables(self.expansions)
        return known[require_table(name, known)]()

    def to_dataframe(self) -> pandas.DataFrame:
        """Return the rows as ``collc find --csv`` prints them as a data frame of pandas; raise C0028 without pandas."""
        return self.table().to_dataframe()

    @property
    def times(self) -> tuple[float | None, ...]:
        """The predicted seconds of each row of the frontier; None if a rate is unknown."""
        return tuple(self.wanted.time(row) for row in self.frontier)

    @property
    def best(self) -> Row | None:
        """The row that takes the least time; of equals the one of fewer steps; None without a known time."""
        times = map(self.wanted.exact_time, self.frontier)
        known = [(time, i) for i, time in enumerate(times) if time is not None]
        return self.frontier[min(known)[1]] if known else None

    @property
    def recabling(self) -> Recabling | None:
        """Where the nodes of the best go in the largest of the ``expansions`` that keeps most links, and its cables."""
        from .larger import chosen

        one = chosen(self.expansions or ())
        return None if one is None else one.recabling

    @property
    def may_be_faster(self) -> tuple[Row, ...]:
        """The rows that are faster than the best if their rate is near its upper bound."""
        best = self.best
        time = None if best is None else self.wanted.exact_time(best)
        if time is None:
            return ()
        least = [(row, self.wanted.least_time(row)) for row in self.frontier if row is not best]
        return tuple(row for row, seconds in least if seconds is not None and seconds < time)

    def is_for_rate(self, row: Row) -> bool:
        """Return whether another row of the frontier costs less, so that only its all-to-all rate keeps this one."""
        return any(_costs_less(other, row) for other in (*self.frontier, *self.both_ways)
                   if other.bidirectional or row in self.frontier)  # fmt: skip

    @property
    def bound(self) -> tuple[int, Fraction]:
        """T_L and T_B that no topology of this size and degree can go below."""
        n, d = self.wanted.nodes, self.wanted.degree
        steps = moore_graph_steps(n, d) if self.wanted.bidirectional else moore_steps(n, d)
        return steps, Fraction(n - 1, n)


def _costs_less(one: Row, two: Row) -> bool:
    """Return whether ``one`` costs no more than ``two`` in all of T_L and both T_B, and less in one of them."""
    costs = [(row.T_L, row.T_B, row.allreduce_T_B) for row in (one, two)]
    return costs[0] != costs[1] and all(a <= b for a, b in zip(*costs, strict=True))


#: gets a frontier that a search has so far
Keep = Callable[[Frontier], object]


def find(
    wanted: Wanted, *, database: tuple[str, str] | None = None, refresh: bool = False,
    evaluations: int | None = None, seed: int = 0, work: Work | None = None, keep: Keep | None = None,
) -> Frontier:  # fmt: skip
    """Return the frontier from the database, or from a search with ``refresh`` or for a size that it lacks.

    ``database`` is the text and the path of a database other than the shipped one. A database lacks the topologies that
    others beat. If one of its rows is excluded, a search finds what that row kept out. ``keep`` gets the frontier of
    what a search has found, whenever one of its parts ends. Raises C0034 without a result.
    """
    known = [] if refresh else list(rows_for(wanted.nodes, wanted.degree, *(database or ())))
    rows = [row for row in known if wanted.exclude.allows(row.expression)]
    work = work or Work()
    if len(rows) < len(known) or not frontier(rows, bidirectional=wanted.bidirectional):
        found = search(wanted, evaluations, seed, work, keep)
        rows = merged_frontiers([*rows, *found]) if wanted.exclude.names else found
    if wanted.needs_alltoall:
        rows = work.run(
            with_narrow_rate,
            [(row, coll.topology, _MAX_NARROWED) for row in rows],
            [row.expression for row in rows],
        )
    best = frontier(rows, bidirectional=wanted.bidirectional, objective=wanted.compared)
    if not best:
        raise error(
            "C0034",
            f"no topology was found of {wanted.nodes} nodes and degree {wanted.degree}"
            + (" with a reverse for every link" if wanted.bidirectional else ""),
            hint="exclude less, or search longer: --effort 100000"
            if wanted.exclude.names
            else "search longer: --effort 100000",
            exit_status=3,
        )
    both_ways = frontier(rows, bidirectional=True, objective=wanted.compared)
    shown = Frontier(wanted, _ordered(best, wanted), _ordered(both_ways, wanted), listed=refresh or bool(known))
    return _answered(shown, rows, work)


def _answered(found: Frontier, rows: Sequence[Row], work: Work) -> Frontier:
    """Return the frontier with the answers; of equal rows it has the ones of fewest links between racks."""
    questions = found.wanted.questions
    if not questions:
        return found
    shown = (*found.frontier, *found.both_ways)
    if questions.rack is not None:
        shown = tuple(other for row in shown for other in equals(row, rows))
    known = facts(shown, questions, work)
    best, both_ways = (
        tuple(fewest_between_racks(row, rows, known) for row in each) for each in (found.frontier, found.both_ways)
    )
    return attrs.evolve(found, frontier=best, both_ways=both_ways, facts=known)


def _ordered(rows: Sequence[Row], wanted: Wanted) -> tuple[Row, ...]:
    """Return rows as they are, or with a workload by time, those without one at the end."""
    if wanted.workload is None:
        return tuple(rows)
    timed = [(wanted.exact_time(row), row) for row in rows]
    known = sorted((time, place) for place, (time, _) in enumerate(timed) if time is not None)
    return (*(rows[place] for _, place in known), *(row for time, row in timed if time is None))


def search(
    wanted: Wanted, evaluations: int | None, seed: int, work: Work, keep: Keep | None = None
) -> list[Row]:  # fmt: skip
    """Search one size from scratch: Cayley digraphs of the sizes that expand to it, lifts, then all expansions."""
    nodes, degree, exclude = wanted.nodes, wanted.degree, wanted.exclude
    effort = usual_evaluations(nodes) if evaluations is None else evaluations
    tasks = plan(nodes, degree, evaluations=effort, seed=seed, exclude=exclude)
    if wanted.bidirectional:  # what has links one way is not shown, and expands to nothing that is
        tasks = [task for task in tasks if task.bidirectional]
    known: list[Row] = []

    def kept(place: int, found: list[Row]) -> None:
        known.extend(row for row in found if row.nodes == nodes)
        if keep is not None and (best := frontier(known, bidirectional=wanted.bidirectional)):
            keep(Frontier(wanted, tuple(best), tuple(frontier(known, bidirectional=True))))

    results = work.run(Task.run, [(task,) for task in tasks], [_shown(task) for task in tasks], kept)
    rows: list[Row] = []
    for size in sorted({nodes, *(task.nodes for task in tasks)}):
        mine = [row for task, found in zip(tasks, results, strict=True) if task.nodes == size for row in found]
        work.report(f"{size} nodes: expansions")
        rows = assemble(size, degree, [*rows, *mine], coll.topology, exclude)
    return rows


def _shown(task: Task) -> str:
    lifts = "polycirculants" if task.bidirectional else "directed polycirculants"
    what = {"line": "line graphs", "lifts": lifts}.get(task.kind)
    what = what or ("Cayley graphs" if task.bidirectional else "Cayley digraphs")
    return f"{task.nodes} nodes: {what}"
