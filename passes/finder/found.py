"""The results of a search: topologies as expressions of the language, with their exact costs."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import attrs

from collc.ir.shown import brief_fields

__all__ = ["Found", "dominates", "no_worse", "pareto"]


@attrs.frozen
class Found:
    """A topology, and the cost of an allgather by BFB on it.

    ``expression`` is a topology of the language, such as ``line(cayley(cyclic(16), {1, 4}), 2)``. ``T_L`` counts
    steps. ``T_B`` is bandwidth time in units of M/B, where B is the total bandwidth out of a node (section 3.2 of the
    direct-connect paper). ``bidirectional``: every link has its reverse. ``alltoall_rate`` is the rate of LP (3) at
    which every node can send to every other at once; None if it was not computed. If it is known between bounds, then
    ``alltoall_rate`` is what a routing reaches, and ``alltoall_upper`` what no routing exceeds; otherwise that is None.
    """

    expression: str
    nodes: int
    degree: int
    T_L: int
    T_B: Fraction
    diameter: int
    bidirectional: bool
    alltoall_rate: Fraction | None = None
    alltoall_upper: Fraction | None = None

    __repr__ = brief_fields

    @property
    def most_alltoall(self) -> Fraction | None:
        """What the all-to-all rate is at most; None if it is unknown."""
        return self.alltoall_rate if self.alltoall_upper is None else self.alltoall_upper

    @property
    def _order(self) -> tuple[int, Fraction, Fraction, int, str]:
        rate = self.alltoall_rate or Fraction(0)
        return self.T_L, self.T_B, -rate, len(self.expression), self.expression


def dominates(one: Found, two: Found, *, alltoall: bool = False) -> bool:
    """Return whether ``one`` is at least as good as ``two`` in T_L and T_B, and better in one of them.

    With ``alltoall`` the rate is a third objective; an unknown rate counts as 0. Of a rate between bounds, the lower
    one is compared with the upper one of the other, so ``one`` surely has no smaller rate.
    """
    return no_worse(one, two, alltoall=alltoall) and not no_worse(two, one, alltoall=alltoall)


def no_worse(one: Found, two: Found, *, alltoall: bool = False) -> bool:
    """Return whether ``one`` is at least as good as ``two``, compared like :func:`dominates`."""
    fast = not alltoall or (one.alltoall_rate or 0) >= (two.most_alltoall or 0)
    return fast and one.T_L <= two.T_L and one.T_B <= two.T_B


def pareto(found: Iterable[Found], *, alltoall: bool = False) -> list[Found]:
    """Return the topologies that no other dominates, by T_L; of equals the one with the shortest expression.

    >>> one, two = (Found(text, 4, 1, 3, Fraction(3, 4), 3, False) for text in ("uniring(4, 1)", "uniring(4)"))
    >>> [each.expression for each in pareto([one, two])]
    ['uniring(4)']
    """
    kept: list[Found] = []
    for each in sorted(found, key=lambda one: one._order):
        # any topology that dominates it, or equals it and is shorter, comes before it
        if not any(no_worse(other, each, alltoall=alltoall) for other in kept):
            kept.append(each)
    return kept
