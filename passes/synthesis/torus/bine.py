"""Bine trees: binomial trees and butterflies over negabinary numbers (De Sensi et al., SC 2025).

The peers are Swing's, by rank numbers, on any network. Distances are a third shorter than those of binomial trees, so
fewer messages cross from group to group. Rooted collectives follow the tree of their root.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import ClassVar, Literal

import attrs
import numpy as np

from collc.ir.spec import Problem

from .base import TEMPLATE, TorusPass, exchange, scattered
from .build import Plan, to_messages
from .lines import Line, tree_line, with_guest
from .peers import swing_peers
from .times import seconds

__all__ = ["Bine"]

Order = Literal["doubling", "halving"]


@attrs.frozen
class Bine(TorusPass):
    """Synthesize Bine collectives for any number of ranks, in one dimension and over one port.

    Raises C0591 (a collective it cannot do), C0593 (an operation that needs an order).
    """

    name: ClassVar[str] = "bine"
    summary: ClassVar[str] = "negabinary trees and butterflies on any network, all collectives but alltoall"
    kinds: ClassVar[tuple[str, ...]] = (
        "allreduce", "reduce-scatter", "allgather", "broadcast", "reduce", "gather", "scatter",
    )  # fmt: skip

    variants: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "bandwidth": ("allreduce", "reduce-scatter", "allgather"),
        "latency": ("allreduce", "broadcast", "reduce", "gather", "scatter"),
    }

    in_line: ClassVar[bool] = True

    variant: Literal["auto", "bandwidth", "latency"] = attrs.field(
        default="auto",
        metadata={"help": "of an allreduce: scatter and gather, or exchange whole vectors in half the steps"},
    )
    order: Order = attrs.field(
        default="doubling",
        metadata={"help": "distances of a reduction double or halve; those of a broadcast the reverse"},
    )

    template: bool | None = attrs.field(default=None, metadata=TEMPLATE)

    def plans_by_size(self, ir: Problem) -> bool:
        return self.variant == "auto" and ir.collective.kind == "allreduce"

    def _plan(self, ir: Problem) -> Plan:
        n, kind = ir.topology.num_ranks, ir.collective.kind
        part = scattered((n,), [_line(n, self.order)], 0, 0)
        plan = Plan(ir, self._router(ir), 1, [part], self.name)
        if kind != "allreduce" or self.variant == "bandwidth":
            return plan
        fold = bool(n & n - 1)
        core = 1 << (n.bit_length() - 1)
        script = [(np.arange(core), peer) for peer in _peers(core, self.order)]
        exchanged = Plan(ir, plan.router, 1, [exchange((n,), [script], [fold], 0, 0)], self.name)
        if self.variant == "latency":
            return exchanged
        return plan if ir.collective.size is None else min((plan, exchanged), key=lambda p: seconds(to_messages(p)))


def _peers(size: int, order: Order) -> list[np.ndarray]:
    peers = swing_peers(size)
    return peers if order == "doubling" else peers[::-1]


@cache
def _line(size: int, order: Order) -> Line:
    return with_guest(_line(size - 1, order)) if size % 2 else tree_line(_peers(size, order))
