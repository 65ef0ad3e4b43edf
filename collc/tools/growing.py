"""Larger networks that keep many links of a given one: what a cluster can grow into."""

from __future__ import annotations

import attrs

from collc.frontends import coll
from collc.ir.diagnostic import CollcError, error
from collc.passes.finder.bases import can_be_bidirectional
from collc.passes.finder.database import Row
from collc.passes.finder.growth import Grown, grown

from ..processes.workers import Work
from .building import NO_QUESTION
from .finding import Frontier, check_sizes, find
from .larger import Expansion

__all__ = ["MOST_MORE", "expansions"]

#: the most nodes that may be added
MOST_MORE = 64


def expansions(
    found: Frontier, largest: int, *, database: tuple[str, str] | None = None, evaluations: int | None = None,
    seed: int = 0, work: Work | None = None,
) -> list[Expansion]:  # fmt: skip
    """Return the frontiers of all sizes up to ``largest``, by nodes, then by the links of ``found.best`` that are kept.

    Sizes without a topology are left out. Raises C0030 for sizes that are not larger, or larger by more than
    ``MOST_MORE``.
    """
    goal, base, work = found.wanted, found.best, work or Work()
    if not goal.nodes < largest <= goal.nodes + MOST_MORE:
        message = f"found {largest} nodes to expand to, needed {goal.nodes + 1} to {goal.nodes + MOST_MORE}"
        raise error("C0030", message, exit_status=2)
    check_sizes(largest, goal.degree)
    if base is None:
        return []
    rows: list[Row] = []
    for nodes in range(goal.nodes + 1, largest + 1):
        if goal.bidirectional and not can_be_bidirectional(nodes, goal.degree):
            continue
        larger_goal = attrs.evolve(goal, nodes=nodes, questions=NO_QUESTION)
        try:
            larger = find(larger_goal, database=database, evaluations=evaluations, seed=seed, work=work)
        except CollcError as mistake:
            if mistake.exit_status != 3:
                raise
            continue
        rows += dict.fromkeys((*larger.frontier, *larger.both_ways))
    names = [row.expression for row in rows]
    results = work.run(_grown, [(base.expression, name) for name in names], names)
    pairs = [Expansion(base.expression, row, result) for row, result in zip(rows, results, strict=True)]
    return sorted(pairs, key=lambda one: (one.row.nodes, -one.grown.kept, one.row.T_L, one.row.T_B, one.row.expression))


def _grown(small: str, large: str) -> Grown:
    return grown(coll.topology(small), coll.topology(large))
