"""Candidates of the topology search, and the predicted costs of their expansions (section 5 of the direct-connect
paper).

A candidate is an expression of the language with its costs: ``T_L`` in steps and ``T_B`` in units of M/B. Predictions
follow the theorems: exact for degree expansion and Cartesian power, an upper bound for line graphs; a product is
optimal if its factors are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import attrs

from ..expansion import theorems
from ..expansion.theorems import optimum

__all__ = ["Candidate", "bidirectional", "degree", "line", "line_of", "power", "product", "prune"]


@attrs.frozen
class Candidate:
    """A topology as an expression, with its allgather's ``T_L`` and ``T_B``.

    * ``scheduler`` reaches these costs: ``bfb``, or ``expansion``, which expands the base's schedule.
    * ``exact`` is false for a prediction that a real schedule may beat; ``slack`` is how far T_B may lie below it.
    * ``both_ways``: every link has a reverse.
    * ``simple``: it has no parallel links and no self-loops. ``loops``: it may have self-loops, so it has no degree
      expansion.
    * ``inner``: the base and number of line graphs, so that line(line(G)) becomes line(G, 2). ``factors``: those of a
      product.
    * ``diameter``: None if it is T_L.
    """

    expression: str
    nodes: int
    degree: int
    T_L: int
    T_B: Fraction
    scheduler: str = "bfb"
    exact: bool = True
    both_ways: bool = False
    simple: bool = True
    loops: bool = False
    inner: tuple[str, int] | None = attrs.field(default=None, repr=False)
    factors: tuple[str, ...] = attrs.field(default=(), repr=False)
    slack: Fraction = attrs.field(default=Fraction(0), repr=False)
    diameter: int | None = None

    @property
    def optimal(self) -> bool:
        """Return whether its bandwidth time is the least possible."""
        return optimum(self.nodes) == self.T_B

    @property
    def multiplies(self) -> bool:
        """Return whether Theorem 13 takes it as a factor: simple, with a bandwidth-optimal breadth-first schedule."""
        return self.simple and self.optimal and self.scheduler == "bfb"

    def can_replace(self, other: Candidate) -> bool:
        """Return whether this candidate can replace the other in every use."""
        return (
            self.T_L <= other.T_L
            and self.T_B <= max(other.T_B - other.slack, optimum(other.nodes))
            and self.both_ways >= other.both_ways
            and self.multiplies >= other.multiplies
            and self.loops <= other.loops
            and (self.simple or not other.simple)
        )


def prune(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates that no other can replace, in order of T_L; of equals the one with the shortest expression.

    The choice does not depend on the order of the arguments.
    """
    ranked = sorted(candidates, key=_rank)
    kept: list[Candidate] = []
    for candidate in ranked:
        # A later one is no better in T_L and T_B, but may have a property that an earlier one lacks.
        if not any(other.can_replace(candidate) for other in kept):
            kept.append(candidate)
    return kept


def _rank(c: Candidate) -> tuple[int, Fraction, bool, bool, int, str]:
    """Return the order: by cost, exact costs before predicted ones, then by the length of the expression."""
    return c.T_L, c.T_B, not c.exact, c.scheduler != "bfb", len(c.expression), c.expression


# ---- expansions


def line_of(expression: str) -> tuple[str, int] | None:
    """Return the base and the number of line graphs: G and 2 for ``line(G, 2)``; None for other expressions."""
    if not (expression.startswith("line(") and expression.endswith(")")):
        return None
    base, comma, times = expression[5:-1].rpartition(", ")
    return (base, int(times)) if comma and times.isdigit() else (expression[5:-1], 1)


def line(base: Candidate) -> Candidate | None:
    """Return L(G): d times the nodes, one step more, and T_B at most 1/N more (Theorem 7); None for degree 1.

    The slack is about the time of one shard: the real schedule may save it, because a node is not its own source.
    """
    if base.degree < 2:
        return None
    name, times = base.inner or (base.expression, 0)
    times += 1
    expression = f"line({name})" if times == 1 else f"line({name}, {times})"
    steps, most = theorems.line(base.T_L, base.T_B, base.nodes, base.degree)
    return Candidate(
        expression, base.nodes * base.degree, base.degree, steps, most,
        scheduler=base.scheduler, exact=False, simple=not base.loops, loops=base.loops,
        inner=(name, times), slack=base.slack + Fraction(1, base.nodes * base.degree),
    )  # fmt: skip


def degree(base: Candidate, n: int) -> Candidate | None:
    """Return G * n: n times the nodes and the degree, one step more, T_B by Theorem 11; None if it does not exist."""
    if base.loops or n < 2:
        return None
    steps, bandwidth = theorems.degree(base.T_L, base.T_B, base.nodes, n)
    return Candidate(
        f"degree({base.expression}, {n})", base.nodes * n, base.degree * n, steps, bandwidth,
        scheduler="expansion", exact=False,
        both_ways=base.both_ways, simple=base.simple,
    )  # fmt: skip


def power(base: Candidate, n: int) -> Candidate | None:
    """Return the Cartesian product of n copies: n times the steps, T_B by Theorem 12; None for less than two copies."""
    if n < 2 or base.nodes < 2:
        return None
    steps, bandwidth = theorems.power(base.T_L, base.T_B, base.nodes, n)
    # If Theorem 13 holds, breadth first is as good as the expanded schedule.
    scheduler = "bfb" if base.multiplies else "expansion"
    return Candidate(
        f"power({base.expression}, {n})", base.nodes**n, base.degree * n, steps, bandwidth,
        scheduler=scheduler, exact=False,
        both_ways=base.both_ways, simple=base.simple, loops=base.loops,
    )  # fmt: skip


def product(factors: Sequence[Candidate]) -> Candidate | None:
    """Return the Cartesian product of different factors, bandwidth-optimal by Theorem 13; None if it does not apply."""
    if not all(factor.multiplies and factor.nodes > 1 for factor in factors):
        return None
    nodes, degrees, steps = 1, 0, 0
    names: list[str] = []
    for factor in factors:
        nodes, degrees, steps = nodes * factor.nodes, degrees + factor.degree, steps + factor.T_L
        names += factor.factors or [factor.expression]
    return Candidate(
        f"product({', '.join(names)})", nodes, degrees, steps, optimum(nodes),
        exact=False, both_ways=all(factor.both_ways for factor in factors), factors=tuple(names),
    )  # fmt: skip


def bidirectional(base: Candidate) -> Candidate:
    """Return G and its transpose together: twice the degree, the same costs (section A.6).

    The paper's schedule needs G to be isomorphic to its transpose. Breadth first does not, so the costs are a guess
    that the real schedule must confirm.
    """
    return Candidate(
        f"bidirectional({base.expression})", base.nodes, base.degree * 2, base.T_L, base.T_B, exact=False,
        both_ways=True, simple=False, loops=base.loops,
    )  # fmt: skip
