"""Climbs to polycirculants: any, of the shapes of the finder, and those that a turn of the ring keeps."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from collc.passes.finder.shapes import shapes
from collc.passes.finder.turns import Turn, turns

from .compiled import PATIENCE, STEPS, BestLift, Lift, Link, Turning, library
from .search import SLACK, Search

__all__ = ["Polycirculants"]


class Polycirculants(Search):
    """The search among polycirculants."""

    def lifts(self, periods: range, optimal: bool) -> None:
        """Climb to polycirculants of every one of these periods that the size has.

        ``optimal`` are only the climbs to fewer steps at the least T_B.
        """
        for m in periods:
            copies = self.nodes // m
            if self.nodes % m or copies < 3 or (m * self.degree % 2 and copies % 2):
                continue
            self._polycirculants(m, (*shapes(m, self.degree), None), None, optimal)

    def turned(self, periods: range, optimal: bool) -> None:
        """Climb to polycirculants that turns keep, as :meth:`lifts`."""
        for m in periods:
            if self.nodes % m or self.nodes // m < 3:
                continue
            for turn in turns(self.nodes // m, m, self.degree):
                self._polycirculants(m, (None,), turn, optimal)

    def _polycirculants(
        self, m: int, shapes: Sequence[Sequence[tuple[int, int]] | None], turn: Turn | None, optimal: bool
    ) -> None:
        """Climb to fewer steps, to fewer at the least T_B, and to less T_B in between; only the second if optimal."""
        while not optimal and self.least > self.bound and self._lift(m, self.least - 1, turn=turn):
            pass
        for shape in shapes:
            self._optimal(m, shape, turn)
        between = () if optimal else range(self.least, min(self.fastest, self.least + SLACK))
        for target in between:
            self._lift(m, target, turn=turn)

    def _optimal(self, m: int, shape: Sequence[tuple[int, int]] | None, turn: Turn | None = None) -> None:
        """Climb to lifts of fewer steps at the least T_B, as long as there are some: of few steps, else of any."""
        few = 2 * self.bound + 2
        for most in (few, STEPS - 1):
            before = STEPS
            while self.bound < self.fastest < before:
                before = self.fastest
                self._lift(m, min(before - 1, most), shape, turn)
            if self.fastest <= few:
                break

    def _lift(
        self, m: int, target: int, shape: Sequence[tuple[int, int]] | None = None, turn: Turn | None = None
    ) -> bool:
        """Climb to lifts of period m, with a shape's links between classes; return whether one is better than known."""
        given = Lift(len(shape or ()))
        for place, (one, two) in enumerate(shape or ()):
            given.link[place] = Link(one, two, 0, 0)
        best = (BestLift * STEPS)()
        for one, load in zip(best, self.loads(), strict=True):
            one.load = load
        library().climb_lift(
            self.nodes, m, self.degree, target, self.evaluations, PATIENCE, self.seed(), ctypes.byref(best),
            ctypes.byref(given), ctypes.byref(Turning.of(turn)),
        )  # fmt: skip
        better = [(steps, one) for steps, one in enumerate(best) if one.lift.count]
        for steps, one in better:
            self.add(steps, one.load, self._polycirculant(m, one.lift))
        return bool(better)

    def _polycirculant(self, m: int, lift: Lift) -> str:
        sets: list[list[int]] = [[] for _ in range(m)]
        for one in lift.link[: lift.count]:
            sets[one.a].append(self.nodes // 2 if one.half else (one.b + m * one.v - one.a) % self.nodes)
        shown = ["{" + ", ".join(map(str, sorted(own))) + "}" for own in sets]
        return f"polycirculant({self.nodes}, {', '.join(shown)})"
