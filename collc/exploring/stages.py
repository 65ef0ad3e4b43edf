"""The stages of a compilation: the IR that each pass left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest

import attrs

from collc.ir.frozen import frozen
from collc.ir.levels import Executable

__all__ = ["Stage", "Stages"]


@frozen(eq=False)
class Stage:
    """The IR after a pass, and what the pass remarked."""

    step: str
    ir: Executable
    remarks: tuple[str, ...] = ()


@attrs.define(eq=False)
class Stages:
    """The stages of each collective, plan by plan: `auto` has a plan for each of its algorithms.

    A pass that runs again, since its first result did not fit the target, begins anew: what came after it is dropped.
    """

    found: dict[str, list[list[Stage]]] = attrs.field(factory=dict)

    def begin(self, collective: str) -> None:
        """Take the next stages of a collective as those of another plan."""
        self.found.setdefault(collective, []).append([])

    def keep(self, collective: str, step: str, ir: Executable) -> None:
        """Keep the IR after a pass of the collective's last plan."""
        plans = self.found[collective]
        again = next((number for number, stage in enumerate(plans[-1]) if stage.step == step), len(plans[-1]))
        plans[-1] = [*plans[-1][:again], Stage(step, ir)]

    def titled(self, remarks: Mapping[str, Sequence[Sequence[str]]]) -> dict[str, list[Stage]]:
        """Return the stages by the name of their collective, and of their scheduler if it has several plans.

        ``remarks`` are those of each plan of each collective; they begin with the name of a pass.
        """
        titled = {}
        for name, plans in self.found.items():
            for number, (plan, texts) in enumerate(zip_longest(plans, remarks.get(name, ()), fillvalue=()), 1):
                if plan:
                    title = f"{name}, {number} of {len(plans)}: {plan[0].step}" if len(plans) > 1 else name
                    titled[title] = [_remarked(stage, texts) for stage in plan]
        return titled


def _remarked(stage: Stage, texts: Sequence[str]) -> Stage:
    return attrs.evolve(stage, remarks=tuple(text for text in texts if text.startswith(f"{stage.step}: ")))
