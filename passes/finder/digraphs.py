"""Choose the Cayley digraphs of a search to keep: by their allgather, and by their reduce-scatter.

A reduce-scatter is an allgather on the transpose, reversed. The transpose of a Cayley digraph has the inverse
generators. If the group is not abelian, its cost may differ. Many results of a search are equal in only one of the two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import groupby

import attrs
import numpy as np

from ..expansion.theorems import optimum
from .cayley import Candidate, rated
from .database import Row, frontier
from .evaluate import Evaluator

__all__ = ["digraphs"]

_TRIED = 48  # digraphs of each number of steps whose reduce-scatter is evaluated
_DEPTH = 4  # numbers of steps tried
_RATED = 4  # digraphs of each number of steps whose all-to-all rate is computed


def digraphs(found: Sequence[Candidate]) -> list[Row]:
    """Return the rows that no other row beats in T_L, T_B of the allgather or of the whole allreduce, and the
    all-to-all rate of those that have one.
    """
    tried = _promising(found)
    rows: list[Row] = []
    seen = Counter[int]()
    for one, back in zip(tried, _backwards(tried), strict=True):
        seen[one.T_L] += 1
        result = one.found(False) if seen[one.T_L] > _RATED else rated(one.found(False), one)
        rows.append(attrs.evolve(Row.of(result), reduce_scatter_T_B=back))
    return frontier(rows, objective="allreduce")


def _promising(found: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates of least T_B for each number of steps, up to the first bandwidth-optimal one."""
    tried: list[Candidate] = []
    for steps in sorted({one.T_L for one in found})[:_DEPTH]:
        same = sorted((one for one in found if one.T_L == steps), key=lambda one: one.T_B)
        tried += same[:_TRIED]
        if same[0].T_B == optimum(same[0].group.order):
            break
    return tried


def _backwards(found: Sequence[Candidate]) -> list[Fraction]:
    """Return the T_B of every candidate's reduce-scatter. Candidates of one group are evaluated together."""
    back = [Fraction(0)] * len(found)
    order = sorted(range(len(found)), key=lambda place: found[place].group.expression)
    for _, places in groupby(order, key=lambda place: found[place].group.expression):
        members = list(places)
        evaluator = Evaluator(found[members[0]].group)
        sets = evaluator.inverse[np.array([found[place].generators for place in members], dtype=np.int64)]
        costs = evaluator.costs(sets, evaluator.nodes)
        for row, place in enumerate(members):
            back[place] = costs.T_B(row)
    return back
