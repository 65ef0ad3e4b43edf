"""Swing: peers that alternate sides, so that distances grow as 1, 1, 3, 5, 11, .. (De Sensi et al., NSDI 2024).

The bandwidth variant is a reduce-scatter and an allgather on 2 D parts for D dimensions. Part c < D begins with
dimension c, part D + c is its mirror image, and at first no two parts use the same links. It supports any shape: sizes
that are not powers of two send in the last possible step (:func:`.lines.tree_line`), and odd sizes have a guest.

The latency variant exchanges whole vectors in every step, in half the steps; sizes that are not powers of two fold.
Maxima and other idempotent operations need no folding in even sizes. They fold by default, so that the schedule is
right for any operation that a program gets when it runs. Going from far to near loads the links as much as the paper's
order from near to far, and all ranks add in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import attrs
import numpy as np

from collc.ir.diagnostic import Subject, error
from collc.ir.spec import Problem

from .base import TEMPLATE, Script, TorusPass, exchange, scattered
from .build import Plan, to_messages
from .chunks import ExchangedPart, ScatteredPart
from .peers import swing_line, swing_peers
from .shape import dimension, logical_shape
from .times import seconds

__all__ = ["Swing"]


@attrs.frozen
class Swing(TorusPass):
    """Synthesize Swing's schedule on a torus of any shape, or on any network numbered as one.

    Raises C0590 (a shape of another size), C0591 (a collective it cannot do), C0592 (a dimension that the latency
    variant cannot have without folding), C0593 (an operation that needs an order).
    """

    name: ClassVar[str] = "swing"
    summary: ClassVar[str] = "allreduce, reduce-scatter, allgather on a torus of any shape; peers alternate sides"
    kinds: ClassVar[tuple[str, ...]] = ("allreduce", "reduce-scatter", "allgather", "broadcast", "reduce")
    variants: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "bandwidth": ("allreduce", "reduce-scatter", "allgather"), "latency": ("allreduce", "broadcast", "reduce"),
    }  # fmt: skip

    variant: Literal["auto", "bandwidth", "latency"] = attrs.field(
        default="auto",
        metadata={
            "help": "scatter and gather, or exchange whole vectors in half the steps (default: the faster one at"
            " the collective's size)"
        },
    )
    ports: Literal["all", 1] = attrs.field(
        default="all", metadata={"help": "send on all links at once, or on one link at a time"}
    )
    reparent: Literal["auto", True, False] = attrs.field(
        default="auto",
        metadata={"help": "let leaves send early in sizes that are not powers of two (default: if it is faster)"},
    )
    fold: bool = attrs.field(
        default=True,
        metadata={
            "help": "let the latency variant fold sizes that are not powers of two (min, max, and, or: only odd ones)"
        },
    )
    identical: bool = attrs.field(
        default=True,
        metadata={"help": "let the latency variant go from far to near peers, so that all ranks get the same bits"},
    )
    shape: str | None = attrs.field(default=None, metadata={"help": "the sizes of the torus, such as `8x8`"})
    template: bool | None = attrs.field(default=None, metadata=TEMPLATE)

    def plans_by_size(self, ir: Problem) -> bool:
        return self.variant == "auto" and ir.collective.kind == "allreduce"

    def _plan(self, ir: Problem) -> Plan:
        if ir.collective.kind != "allreduce" or self.variant == "bandwidth":
            return self._scattered(ir)
        if self.variant == "latency":
            return self._exchanged(ir)
        if ir.collective.size is None:
            return self._scattered(ir)
        plans = [self._scattered(ir)]
        if self._dimension_to_fold(ir) is None:
            plans.append(self._exchanged(ir))
        return min(plans, key=lambda plan: seconds(to_messages(plan)))

    def _scattered(self, ir: Problem) -> Plan:
        shape = logical_shape(ir.topology, self.shape)
        choices = (False, True) if self.reparent == "auto" else (self.reparent,)
        if not any(_uneven(size) for size in shape):
            choices = (False,)
        if len(choices) == 1:
            return self._with_lines(ir, shape, choices[0])
        key = self.name, "reparent", shape, self.shape, self.ports, ir.collective.kind, ir.collective.root
        known: dict[object, bool] = ir.topology.found  # the choice does not depend on the size, so it is made once
        if key not in known:
            times = [to_messages(self._with_lines(ir, shape, choice)).time_per_byte for choice in choices]
            known[key] = choices[times.index(min(times))]
        return self._with_lines(ir, shape, known[key])

    def _with_lines(self, ir: Problem, shape: tuple[int, ...], reparent: bool) -> Plan:
        parts: list[ScatteredPart] = []
        for start, mirrored, direction in self._starting_points(shape):
            lines = [swing_line(size, mirrored, reparent) for size in shape]
            parts.append(scattered(shape, lines, start, len(parts), direction=direction))
        return Plan(ir, self._router(ir), len(parts), parts, self.name)

    def _starting_points(self, shape: tuple[int, ...]) -> list[tuple[int, bool, int]]:
        """Return (dimension to begin with, mirrored, direction) of every part.

        With one port there is one part: a rank sends one message at a time.
        """
        if self.ports == 1:
            return [(0, False, 0)]
        return [(start, mirrored, int(mirrored)) for mirrored in (False, True) for start in range(len(shape))]

    def _exchanged(self, ir: Problem) -> Plan:
        shape = logical_shape(ir.topology, self.shape)
        folds = [self.fold and bool(size & size - 1) for size in shape]
        parts: list[ExchangedPart] = []
        for start, mirrored, direction in self._starting_points(shape):
            scripts = [_script(size, mirrored, fold) for size, fold in zip(shape, folds, strict=True)]
            parts.append(exchange(shape, scripts, folds, start, len(parts), direction, backwards=self.identical))
        return Plan(ir, self._router(ir), len(parts), parts, self.name)

    def _require(self, ir: Problem) -> None:
        latency = self.variant == "latency" and ir.collective.kind == "allreduce"
        if latency and (dim := self._dimension_to_fold(ir)) is not None:
            need = "an even size" if ir.collective.idempotent else "a power of two"
            raise error(
                "C0592",
                f"{dimension(ir.topology, self.shape, dim)}: without folding the latency variant needs {need}",
                notes=["every step doubles the contributions of a rank, so some would be added twice"],
                hint="leave `fold` out, or use the variant `bandwidth`, which takes any size",
                exit_status=3,
                option="fold",
                about=(Subject.TOPOLOGY,),
            )

    def _dimension_to_fold(self, ir: Problem) -> int | None:
        """Return the first dimension that must fold but may not."""
        if self.fold:
            return None
        fits = (lambda size: size % 2 == 0) if ir.collective.idempotent else (lambda size: not size & size - 1)
        sizes = enumerate(logical_shape(ir.topology, self.shape))
        return next((dim for dim, size in sizes if not fits(size)), None)


def _uneven(size: int) -> bool:
    """Return whether the even size at the core of a dimension is not a power of two."""
    even = size - size % 2
    return bool(even & even - 1)


def _script(size: int, mirrored: bool, fold: bool) -> Script:
    core = 1 << (size.bit_length() - 1) if fold else size
    return [(np.arange(core), peer) for peer in swing_peers(core, mirrored)]
