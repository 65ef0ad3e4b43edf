"""The search of one size and degree: what is known of it, and what was found."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import attrs

from collc.ir.costs.bounds import moore_graph_steps
from collc.passes.finder.database import Row
from collc.passes.finder.evaluate import load_unit

from .compiled import FAR, STEPS

__all__ = ["SLACK", "Search"]

SLACK = 4  # steps above the fewest, within which bandwidth time is lowered
_WORD = 2**64 - 1


@attrs.define
class Search:
    """The search of one size and degree: the least T_B by steps of the known rows, and the rows found so far."""

    nodes: int
    degree: int
    evaluations: int
    known: dict[int, Fraction]
    given: int = 0  # the seed
    found: list[Row] = attrs.field(factory=list)
    climbs: int = 0

    @property
    def least(self) -> int:
        """The fewest steps known."""
        return min(self.known, default=STEPS - 1)

    @property
    def fastest(self) -> int:
        """The fewest steps known at the least T_B."""
        optimum = Fraction(self.nodes - 1, self.nodes)
        return min((steps for steps, bandwidth in self.known.items() if bandwidth == optimum), default=STEPS - 1)

    @property
    def bound(self) -> int:
        """Moore's bound."""
        return moore_graph_steps(self.nodes, self.degree)

    def loads(self) -> list[int]:
        """Return the least known load of up to 0, 1, .. steps."""
        loads, unit = [FAR] * STEPS, Fraction(self.nodes * load_unit(self.degree), self.degree)
        for steps, bandwidth in self.known.items():
            loads[steps:] = [min(load, ceil(bandwidth * unit)) for load in loads[steps:]]
        return loads

    def seed(self) -> int:
        """Return the seed of the next climb."""
        self.climbs += 1
        return (self.given << 22 | self.nodes * 64 + self.degree) << 32 & _WORD | self.climbs

    def add(self, steps: int, load: int, expression: str) -> None:
        """Keep a result."""
        bandwidth = Fraction(self.degree * load, load_unit(self.degree) * self.nodes)
        self.known[steps] = bandwidth
        self.found.append(Row(
            expression, self.nodes, self.degree, steps, bandwidth, steps, True, reduce_scatter_T_B=bandwidth
        ))  # fmt: skip
