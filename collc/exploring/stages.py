"""The stages of a compilation: the IR that each pass left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    """The stages of each collective, in the order of passes.

    A pass that runs again, since its first result did not fit the target, begins anew: what came after it is dropped.
    """

    found: dict[str, list[Stage]] = attrs.field(factory=dict)

    def keep(self, collective: str, step: str, ir: Executable) -> None:
        """Keep the IR after a pass of a collective."""
        before = self.found.setdefault(collective, [])
        again = next((number for number, stage in enumerate(before) if stage.step == step), len(before))
        self.found[collective] = [*before[:again], Stage(step, ir)]

    def remarked(self, remarks: Mapping[str, Sequence[str]]) -> dict[str, list[Stage]]:
        """Return the stages with the remarks of collectives, which begin with the name of a pass."""
        return {
            name: [
                attrs.evolve(stage, remarks=tuple(t for t in remarks.get(name, ()) if t.startswith(f"{stage.step}: ")))
                for stage in stages
            ]
            for name, stages in self.found.items()
        }
