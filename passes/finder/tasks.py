"""The search for one size and degree as tasks, which processes or the workers of a cluster share.

First come the Cayley digraphs of the size, and of the sizes whose line graphs have it, and the polycirculants of the
size, with links both ways and one way; each is a task. Then the bottom-up search combines their results and the bases,
measures the survivors, and keeps the frontier. The result of a task depends only on its fields, so the number of
workers does not change the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Literal

import attrs

from .bases import can_be_bidirectional
from .bits import MOST_LINKS
from .cayley import candidates, search_cayley
from .database import Row, merged_frontiers
from .digraphs import digraphs
from .directed import search_directed, search_led
from .exclude import NOTHING, Excluded
from .expand import Candidate, line_of
from .found import Found
from .inserted import search_inserted
from .lines import search_lines
from .measure import Library, measure, with_alltoall_rate, with_reduce_scatter
from .polycirculants import search_polycirculants
from .rates import is_quick
from .search import search_bottom_up

__all__ = ["EVALUATIONS", "Task", "assemble", "known", "plan", "search_one", "usual_evaluations"]

#: generator sets that a task tries by default, on up to 2,000 nodes
EVALUATIONS = 20_000
_USUAL_NODES = 2000
_LINES = 8  # links of a node, up to which line graphs of many bases are tried


@attrs.frozen
class Task:
    """One search with a number of evaluations: of ``cayley`` digraphs of ``nodes`` ranks, of ``line`` graphs of smaller
    ones, or of ``lifts``: polycirculants, and smaller ones with nodes inserted. All but the line graphs have links both
    ways if ``bidirectional``.
    """

    nodes: int
    degree: int
    bidirectional: bool
    evaluations: int
    seed: int = 0
    kind: Literal["cayley", "line", "lifts"] = "cayley"
    exclude: Excluded = NOTHING

    def run(self) -> list[Row]:
        """Return the rows that the search finds."""
        if self.kind != "cayley":
            return [
                Row.of(one)
                for search in self._searches
                for one in search(
                    self.nodes, self.degree, evaluations=self.evaluations, seed=self.seed, exclude=self.exclude
                )
            ]
        if self.bidirectional:
            found = search_cayley(
                self.nodes, self.degree, bidirectional=True, evaluations=self.evaluations, seed=self.seed, near=True,
                exclude=self.exclude,
            )  # fmt: skip
            return [Row.of(one) for one in found]
        return digraphs(
            candidates(self.nodes, self.degree, evaluations=self.evaluations, seed=self.seed, exclude=self.exclude)
        )

    @property
    def _searches(self) -> Sequence[Callable[..., Sequence[Found]]]:
        if self.kind == "line":
            return (search_lines,)
        return (search_polycirculants, search_inserted) if self.bidirectional else (search_directed, search_led)


def usual_evaluations(nodes: int) -> int:
    """Return the evaluations of each task by default: fewer on large networks, which take longer.

    >>> usual_evaluations(1000), usual_evaluations(10000)
    (20000, 4000)
    """
    return EVALUATIONS * _USUAL_NODES // max(nodes, _USUAL_NODES)


def plan(
    nodes: int, degree: int, *, evaluations: int = EVALUATIONS, seed: int = 0, seeds: int = 1,
    exclude: Excluded = NOTHING,
) -> list[Task]:  # fmt: skip
    """Return the tasks of a size and degree: the size itself, and the sizes whose line graphs lead to it.

    ``seeds`` searches of different seeds share the evaluations of a size. There are none of Cayley digraphs and their
    line graphs if ``cayley`` is excluded.
    """
    lifts = exclude.allows("polycirculant()") and _has_lifts(nodes, degree)
    tasks = [Task(nodes, degree, True, evaluations, seed, "lifts", exclude)] if lifts else []
    if exclude.allows("directed_polycirculant()") and 1 < degree <= MOST_LINKS and nodes > degree + 1:
        tasks.append(Task(nodes, degree, False, evaluations, seed, "lifts", exclude))
    if not exclude.allows("cayley()"):
        return tasks
    lines = exclude.allows("line()")
    if lines and _has_lines(nodes, degree):
        tasks.append(Task(nodes, degree, False, evaluations, seed, "line", exclude))
    for size in _line_bases(nodes, degree) if lines else [nodes]:
        for both in (False, True):
            if both and (size != nodes or not can_be_bidirectional(size, degree)):
                continue  # line graphs have links one way
            for number in range(seeds):
                tasks.append(Task(size, degree, both, max(evaluations // seeds, 1), seed + number, exclude=exclude))
    return tasks


def _has_lifts(nodes: int, degree: int) -> bool:
    return 2 < degree <= MOST_LINKS and can_be_bidirectional(nodes, degree)


def _has_lines(nodes: int, degree: int) -> bool:
    """Return whether the size has line graphs of smaller ones whose cost is quick to compute."""
    return 1 < degree <= _LINES and nodes % degree == 0 and nodes // degree > degree


def _line_bases(nodes: int, degree: int) -> Iterator[int]:
    """Yield the sizes N, N/d, N/d^2, .. that are integers above d."""
    while nodes > degree:
        yield nodes
        if degree < 2 or nodes % degree:
            return
        nodes //= degree


def known(rows: Iterable[Row]) -> dict[tuple[int, int], list[Candidate]]:
    """Return rows as candidates to expand, by (nodes, degree)."""
    found: dict[tuple[int, int], list[Candidate]] = {}
    for row in rows:
        # Cayley digraphs have no self-loops and no parallel links; other rows may have them.
        is_simple = row.expression.startswith("cayley(")
        one = Candidate(
            row.expression, row.nodes, row.degree, row.T_L, row.T_B, scheduler=row.scheduler,
            both_ways=row.bidirectional, simple=is_simple, loops=not is_simple, inner=line_of(row.expression),
        )  # fmt: skip
        found.setdefault((row.nodes, row.degree), []).append(one)
    return found


def assemble(nodes: int, degree: int, rows: Sequence[Row], library: Library, exclude: Excluded = NOTHING) -> list[Row]:
    """Return the frontier of a size and degree from the bases, the known ``rows``, and all expansions of both.

    ``library`` returns the topology of an expression. A known row of the size itself stays unless another beats it.
    Networks with excluded names are not compared with any.
    """
    real = partial(measure, library=library)
    rows = [row for row in rows if exclude.allows(row.expression)]
    expanded = [_row(candidate) for candidate in search_bottom_up(nodes, degree, known(rows), real, exclude)]
    given = [_with_direction(row, library) for row in rows if (row.nodes, row.degree) == (nodes, degree)]
    whole = [with_reduce_scatter(row, library) for row in (*given, *expanded)]
    return merged_frontiers(_rated(row, library) for row in whole)


def _rated(row: Row, library: Library) -> Row:
    """Return the row with its all-to-all rate if that takes seconds."""
    return with_alltoall_rate(row, library) if is_quick(library(row.expression)) else row


def _with_direction(row: Row, library: Library) -> Row:
    """Return the row, bidirectional if every link has a reverse: a search for digraphs finds such ones too."""
    if row.bidirectional or library(row.expression).reverse_links is None:
        return row
    return attrs.evolve(row, bidirectional=True)


def _row(candidate: Candidate) -> Row:
    c = candidate
    diameter = c.T_L if c.diameter is None else c.diameter
    return Row(c.expression, c.nodes, c.degree, c.T_L, c.T_B, diameter, c.both_ways, scheduler=c.scheduler)


def search_one(
    nodes: int, degree: int, rows: Sequence[Row], evaluations: int, seed: int, library: Library,
    bidirectional: bool = False, exclude: Excluded = NOTHING,
) -> list[Row]:  # fmt: skip
    """Return the frontier of one size: its Cayley digraphs and lifts, and expansions of the rows of smaller sizes.

    With ``bidirectional`` return only the Cayley graphs and lifts with links both ways.
    """
    tasks = [
        task
        for task in plan(nodes, degree, evaluations=evaluations, seed=seed, exclude=exclude)
        if task.nodes == nodes and (task.bidirectional or not bidirectional)
    ]
    found = [row for task in tasks for row in task.run()]
    if bidirectional:
        return merged_frontiers([with_reduce_scatter(row, library) for row in found])
    return assemble(nodes, degree, [*rows, *found], library, exclude)
