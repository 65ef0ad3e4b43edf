"""Which Cayley digraphs of a search to keep: by their allgather, and by their reduce-scatter too.

A reduce-scatter runs backwards on the transpose. That of a Cayley digraph is the Cayley digraph of the inverse
generators, and if the group is not abelian it may cost more, or less. Many that a search finds are equal in one only.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import groupby

import attrs
import numpy as np

from ..expansion.theorems import optimum
from .cayley import Candidate
from .database import Row, frontier
from .evaluate import Evaluator

__all__ = ["digraphs"]

_TRIED = 48  # digraphs of each number of steps whose reduce-scatter is looked at
_DEPTH = 4  # numbers of steps


def digraphs(found: Sequence[Candidate]) -> list[Row]:
    """Return the rows that none beats in T_L and T_B, of the allgather alone or of both halves of an allreduce."""
    tried = _promising(found)
    rows = [
        attrs.evolve(Row.of(one.found(False)), T_B_back=back)
        for one, back in zip(tried, _backwards(tried), strict=True)
    ]
    return frontier(rows, objective="allreduce")


def _promising(found: Sequence[Candidate]) -> list[Candidate]:
    """Return the lightest candidates of each number of steps, up to that of a bandwidth-optimal one."""
    tried: list[Candidate] = []
    for steps in sorted({one.T_L for one in found})[:_DEPTH]:
        same = sorted((one for one in found if one.T_L == steps), key=lambda one: one.T_B)
        tried += same[:_TRIED]
        if same[0].T_B == optimum(same[0].group.order):
            break
    return tried


def _backwards(found: Sequence[Candidate]) -> list[Fraction]:
    """Return the T_B of every candidate's reduce-scatter, those of one group together."""
    back = [Fraction(0)] * len(found)
    order = sorted(range(len(found)), key=lambda place: found[place].group.expression)
    for _, places in groupby(order, key=lambda place: found[place].group.expression):
        mine = list(places)
        evaluator = Evaluator(found[mine[0]].group)
        sets = evaluator.inverse[np.array([found[place].generators for place in mine], dtype=np.int64)]
        costs = evaluator.costs(sets, evaluator.nodes)
        for row, place in enumerate(mine):
            back[place] = costs.T_B(row)
    return back
