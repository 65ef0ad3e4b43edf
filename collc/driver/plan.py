"""The pipeline as requested, and as planned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from collc.ir.frozen import frozen
from collc.ir.program import Program
from collc.ir.schedule import Schedule

if TYPE_CHECKING:
    from collc.backends.base import Target
    from collc.passes.base import Pass

    from ..registry.elements import Element

__all__ = ["Plan", "Recipe"]


@frozen
class Recipe:
    """The requested pipeline: an ``-O`` level or explicit elements (``-p``), and the passes to leave out."""

    level: str = "2"
    elements: tuple[Element, ...] | None = None
    disabled: tuple[str, ...] = ()


@frozen
class Plan:
    """Passes in the order they run, the level of the IR after the last, and the target they lead to.

    ``reasons`` hold one text for each pass, "" for passes that the user wrote.
    """

    passes: tuple[Pass, ...]
    result: type
    target: Target | None = None
    reasons: tuple[str, ...] = ()

    @property
    def explained(self) -> tuple[tuple[str, str], ...]:
        """The name of every pass that the user did not write, and the reason for its place."""
        pairs = zip(self.passes, self.reasons, strict=True)
        return tuple((this.name, why) for this, why in pairs if why)

    def split(self) -> tuple[Plan, Plan]:
        """Return the passes up to the last schedule, and the rest."""
        ends = (i for i, p in enumerate(self.passes) if p.gives is Program or p.for_programs)
        count = next(ends, len(self.passes))
        return (
            Plan(self.passes[:count], Schedule, None, self.reasons[:count]),
            Plan(self.passes[count:], self.result, None, self.reasons[count:]),
        )

    def replaced(self, at: int, this: Pass) -> Plan:
        """Return the plan with another pass at position ``at``."""
        return attrs.evolve(self, passes=(*self.passes[:at], this, *self.passes[at + 1 :]))
