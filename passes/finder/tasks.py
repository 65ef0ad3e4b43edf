"""The search for one size and degree as tasks that processes, or a cluster's workers, can share.

First the Cayley digraphs of the size and of those whose line graphs have it; each is a task of its own. Then the
bottom-up search puts their results and the bases together, measures what survives, and keeps the frontier. What a task
finds depends on its fields alone, so the number of workers changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import attrs

from .bases import in_pairs
from .cayley import candidates, search_cayley
from .database import Row, merged
from .digraphs import digraphs
from .expand import Candidate, line_of
from .lines import search_lines
from .measure import Library, backwards, measure, rated
from .search import grow

__all__ = ["EVALUATIONS", "Task", "assemble", "known", "plan", "search_one"]

#: generator sets that a task tries unless told otherwise
EVALUATIONS = 20_000
_LINES = 8  # links of a node, up to which line graphs of many bases are tried


@attrs.frozen
class Task:
    """One search of so many evaluations: among the Cayley digraphs of ``nodes`` ranks, or with ``lines`` among the line
    graphs of smaller ones."""

    nodes: int
    degree: int
    bidirectional: bool
    evaluations: int
    seed: int = 0
    lines: bool = False

    def run(self) -> list[Row]:
        """Return what the search finds."""
        if self.lines:
            found = search_lines(self.nodes, self.degree, evaluations=self.evaluations, seed=self.seed)
            return [Row.of(one) for one in found]

        if self.bidirectional:
            found = search_cayley(
                self.nodes, self.degree, bidirectional=True, evaluations=self.evaluations, seed=self.seed
            )
            return [Row.of(one) for one in found]
        return digraphs(candidates(self.nodes, self.degree, evaluations=self.evaluations, seed=self.seed))


def plan(nodes: int, degree: int, *, evaluations: int = EVALUATIONS, seed: int = 0, seeds: int = 1) -> list[Task]:
    """Return the tasks of a size and degree: the size itself, and the sizes whose line graphs lead to it.

    ``seeds`` searches of different seeds share the evaluations of a size.
    """
    tasks = [Task(nodes, degree, False, evaluations, seed, lines=True)] if _has_lines(nodes, degree) else []
    for size in _line_bases(nodes, degree):
        for both in (False, True):
            if both and (size != nodes or not in_pairs(size, degree)):
                continue  # line graphs have links one way
            for number in range(seeds):
                tasks.append(Task(size, degree, both, max(evaluations // seeds, 1), seed + number))
    return tasks


def _has_lines(nodes: int, degree: int) -> bool:
    """Whether the size has line graphs of smaller ones whose cost is soon computed."""
    return 1 < degree <= _LINES and nodes % degree == 0 and nodes // degree > degree


def _line_bases(nodes: int, degree: int) -> Iterator[int]:
    """Yield the sizes N, N/d, N/d^2, .. that are whole and have room for d links."""
    while nodes > degree:
        yield nodes
        if degree < 2 or nodes % degree:
            return
        nodes //= degree


def known(rows: Iterable[Row]) -> dict[tuple[int, int], list[Candidate]]:
    """Return rows as candidates to expand, by (nodes, degree)."""
    found: dict[tuple[int, int], list[Candidate]] = {}
    for row in rows:
        # Cayley digraphs have no self-loops and no parallel links; of other rows that is not known.
        plain = row.expression.startswith("cayley(")
        one = Candidate(
            row.expression, row.nodes, row.degree, row.T_L, row.T_B, scheduler=row.scheduler,
            both_ways=row.bidirectional, simple=plain, loops=not plain, inner=line_of(row.expression),
        )  # fmt: skip
        found.setdefault((row.nodes, row.degree), []).append(one)
    return found


def assemble(nodes: int, degree: int, rows: Sequence[Row], library: Library) -> list[Row]:
    """Return the frontier of a size and degree from the bases, what is known, and everything they expand to.

    ``library`` returns the topology of an expression; known rows of the size itself come back where nothing beats them.
    """
    made = [_row(candidate) for candidate in grow(nodes, degree, known(rows), partial(measure, library=library))]
    mine = [_shaped(row, library) for row in rows if (row.nodes, row.degree) == (nodes, degree)]
    return merged([rated(backwards(row, library), library) for row in (*mine, *made)])


def _shaped(row: Row, library: Library) -> Row:
    """Return the row saying whether its links go both ways, which digraphs may do though nobody asked them to."""
    if row.bidirectional or library(row.expression).reverse_links is None:
        return row
    return attrs.evolve(row, bidirectional=True)


def _row(candidate: Candidate) -> Row:
    c = candidate
    diameter = c.T_L if c.diameter is None else c.diameter
    return Row(c.expression, c.nodes, c.degree, c.T_L, c.T_B, diameter, c.both_ways, scheduler=c.scheduler)


def search_one(
    nodes: int, degree: int, rows: Sequence[Row], evaluations: int, seed: int, library: Library
) -> list[Row]:
    """Return the frontier of one size: its own Cayley digraphs, and expansions of the rows given for smaller sizes."""
    found = list(rows)
    if _has_lines(nodes, degree):
        found += Task(nodes, degree, False, evaluations, seed, lines=True).run()
    for both in (False, True):
        if not both or in_pairs(nodes, degree):
            found += Task(nodes, degree, both, evaluations, seed).run()
    return assemble(nodes, degree, found, library)
