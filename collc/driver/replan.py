"""What faults cost: exact times a byte before and after them."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from collc.ir.frozen import frozen

if TYPE_CHECKING:
    import pandas

    from collc.ir.costs.cost import Cost

__all__ = ["FaultCost"]


@frozen
class FaultCost:
    """The cost of faults at large sizes: exact times per byte of M, in seconds or in units of a link.

    ``healthy`` is the time before the faults, and ``reached`` the time of the new schedule. ``optimum`` is the least
    time of all schedules of a kind. ``among`` names the kind: ``all-schedules``, ``tree-schedules`` or
    ``multi-commodity-flow``.

    >>> FaultCost(Fraction(2), Fraction(3), Fraction(3), "tree-schedules").times
    Fraction(3, 2)
    """

    healthy: Fraction
    optimum: Fraction
    reached: Fraction
    among: str

    @classmethod
    def between(cls, healthy: Cost, now: Cost) -> FaultCost:
        """Return what faults cost, of the costs of the schedules before and after them."""
        bound = now.tightest
        return cls(_at_large_sizes(healthy), bound.value, _at_large_sizes(now), bound.kind)

    def to_dataframe(self) -> pandas.DataFrame:
        """Return the times a byte as a data frame of pandas with one row; raise C0028 without pandas."""
        from collc.ir.frames import dataframe

        values = {name: getattr(self, name) for name in ("healthy", "optimum", "reached", "times")}
        floats = {f"{name}_float": float(value) for name, value in values.items()}
        kinds = {**dict.fromkeys(values, "rational"), **dict.fromkeys(floats, "number"), "among": "text"}
        return dataframe(kinds, [{**values, **floats, "among": self.among}])

    def _repr_html_(self) -> str:
        """Return the times a byte as a table, for notebooks."""
        from collc.ir.html import html_table

        named = (("before the faults", self.healthy), ("least after them", self.optimum), ("reached", self.reached))
        rows = [
            (name, value, f"{float(value / self.healthy):.4g}x" if self.healthy else "") for name, value in named
        ]  # fmt: skip
        return html_table(f"time a byte, least among {self.among}", ("", "exactly", ""), rows)

    @property
    def times(self) -> Fraction:
        """How many times the healthy time the new one is; 1 if no data move."""
        return self.reached / self.healthy if self.healthy else Fraction(1)

    @property
    def is_optimal(self) -> bool:
        """Whether no schedule of this kind is faster on the broken network."""
        return self.reached <= self.optimum


def _at_large_sizes(cost: Cost) -> Fraction:
    """Return the time a byte, of trees in many pieces."""
    return cost.time_per_byte if cost.forest is None else cost.forest.time_per_byte
