"""Trivance: exchanges with both ranks 3^k away, three times as many contributions after every step (2026).

Both ports of a dimension work in every step, so a dimension of size d takes ceil(log3 d) steps. An exchange of whole
vectors adds each contribution exactly once only if sizes are powers of 3. The bandwidth variant sends every shard as
late as possible, so that it travels once for any size.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import ClassVar, Literal

import attrs
import numpy as np

from collc.ir.diagnostic import Subject, error
from collc.ir.spec import Problem

from .base import TEMPLATE, Script, TorusPass, exchange, scattered
from .build import Plan, to_messages
from .lines import Line, tree_line
from .peers import thirds_peers
from .shape import dimension, logical_shape
from .times import seconds

__all__ = ["Trivance"]


@attrs.frozen
class Trivance(TorusPass):
    """Synthesize the radix-3 exchange over two ports a dimension.

    Raises C0590, C0591, C0593 as Swing does; C0592 for a latency variant of a size that is not a power of 3.
    """

    name: ClassVar[str] = "trivance"
    summary: ClassVar[str] = "allreduce, reduce-scatter, allgather in log3(N) steps with both ranks 3^k away"

    variants: ClassVar[Mapping[str, tuple[str, ...]]] = {"latency": ("allreduce",)}

    variant: Literal["auto", "bandwidth", "latency"] = attrs.field(
        default="auto",
        metadata={"help": "of an allreduce: scatter and gather, or exchange whole vectors (powers of 3 only)"},
    )
    shape: str | None = attrs.field(default=None, metadata={"help": "the sizes of the torus, such as `9x9`"})
    template: bool | None = attrs.field(default=None, metadata=TEMPLATE)

    def plans_by_size(self, ir: Problem) -> bool:
        return self.variant == "auto" and ir.collective.kind == "allreduce"

    def _plan(self, ir: Problem) -> Plan:
        shape = logical_shape(ir.topology, self.shape)
        parts = [scattered(shape, [_line(size) for size in shape], start, start) for start in range(len(shape))]
        plan = Plan(ir, self._router(ir), len(parts), parts, self.name)
        if ir.collective.kind != "allreduce" or self.variant == "bandwidth":
            return plan
        if self.variant == "auto" and (_without_exchange(shape) is not None or ir.collective.size is None):
            return plan

        scripts, folds = [_script(size) for size in shape], [False] * len(shape)
        whole = [exchange(shape, scripts, folds, start, start) for start in range(len(shape))]
        exchanged = Plan(ir, plan.router, len(whole), whole, self.name)
        if self.variant == "latency":
            return exchanged
        return min((plan, exchanged), key=lambda p: seconds(to_messages(p)))

    def _require(self, ir: Problem) -> None:
        dim = _without_exchange(logical_shape(ir.topology, self.shape)) if self.variant == "latency" else None
        if dim is not None:
            raise error(
                "C0592",
                f"{dimension(ir.topology, self.shape, dim)}: the latency variant needs a power of 3",
                notes=["every step triples the contributions of a rank, so some would be added twice"],
                hint="use the variant `bandwidth`, which takes any size",
                exit_status=3,
                option="variant",
                about=(Subject.TOPOLOGY,),
            )


@cache
def _line(size: int) -> Line:
    return tree_line(thirds_peers(size))


def _script(size: int) -> Script:
    return [(np.repeat(np.arange(size), 2), peers.ravel()) for peers in thirds_peers(size)]


def _without_exchange(shape: tuple[int, ...]) -> int | None:
    """Return the first dimension in which whole vectors cannot be exchanged; None if there is none."""
    return next((dim for dim, size in enumerate(shape) if not _power_of_3(size)), None)


def _power_of_3(size: int) -> bool:
    return 3**19 % size == 0
