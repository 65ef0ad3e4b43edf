"""Schedules carried over by isomorphisms (Definition 7), and turned round where a network allows it (Theorem 2)."""

from __future__ import annotations

from typing import ClassVar

import attrs
import numpy as np

from collc.ir.arrays import Array, Columns
from collc.ir.collective import ROOTED, Collective
from collc.ir.diagnostic import error
from collc.ir.graph.isomorphism import EFFORT, Match, link_map, match
from collc.ir.schedule import Routes, Schedule
from collc.ir.topology import Topology

from ..base import Pass
from ..schedule.reverse import reverse

__all__ = ["Transpose", "carried", "opposite", "reverse_symmetry"]


def carried(schedule: Schedule, topology: Topology, nodes: Array) -> Schedule:
    """Return the schedule for an isomorphic topology, ``nodes`` being where its nodes go (Definition 7).

    What belongs to rank v then belongs to ``nodes[v]``. Raises ValueError where ``nodes`` is no isomorphism.
    """
    links = link_map(schedule.topology, topology, nodes)
    if links is None:
        raise ValueError("the map of nodes does not map links to links")
    collective, nodes = schedule.collective, nodes.astype(np.int64)
    shard, ranks = schedule.shard.astype(np.int64), collective.num_ranks
    if collective.kind == "alltoall":
        shard = nodes[shard // ranks] * ranks + nodes[shard % ranks]
    elif collective.kind not in ROOTED or collective.kind in ("gather", "scatter"):
        shard = nodes[shard]
    root = None if collective.root is None else int(nodes[collective.root])
    moved: Columns = {"route": links[schedule.route]}
    if not schedule.routes.is_direct:
        moved = {"routes": Routes(schedule.routes.start, links[schedule.routes.links])}
    return attrs.evolve(
        schedule, topology=topology, collective=attrs.evolve(collective, root=root), shard=shard, **moved
    )  # fmt: skip


def reverse_symmetry(topology: Topology, effort: int = EFFORT) -> Match:
    """Look for an isomorphism from a topology to its transpose (Definition 6); of a bidirectional one, leave all be."""
    if topology.reverse_links is not None:
        return Match(np.arange(topology.num_nodes))
    return match(topology, topology.transpose(), effort=effort)


def opposite(schedule: Schedule, nodes: Array) -> Schedule:
    """Return the schedule of the reversed collective on the same topology (Theorem 2).

    ``nodes`` is an isomorphism from the topology to its transpose, and so from the transpose to the topology too. T_L
    and T_B stay what they are. Raises ValueError where it is none.
    """
    back = reverse(schedule)
    assert isinstance(back, Schedule)
    return carried(back, schedule.topology, nodes)


@attrs.frozen
class Transpose(Pass):
    """Turn an allgather into a reduce-scatter, or vice versa, on a network isomorphic to its transpose.

    It is ``reverse`` for networks with one-way links. The root of a broadcast or reduce may change.
    Raises C0523 where the network is not isomorphic to its transpose, C0524 where that was not decided.
    """

    name: ClassVar[str] = "transpose"
    summary: ClassVar[str] = "transpose an allgather on a network that is isomorphic to its transpose"
    takes: ClassVar[type] = Schedule
    gives: ClassVar[type] = Schedule

    effort: int = attrs.field(
        default=EFFORT, metadata={"help": "how many links the search for the isomorphism may see"}
    )

    def turned(self, collective: Collective, found: Collective) -> Collective:
        turned = collective.reversed()
        return turned if turned.root is None else attrs.evolve(turned, root=found.root)  # it moves with the nodes

    def run(self, ir: Schedule) -> Schedule:
        found = reverse_symmetry(ir.topology, self.effort)
        if found.nodes is not None:
            return opposite(ir, found.nodes)
        name = ir.topology.name
        if not found.decided:
            raise error(
                "C0524",
                f"whether `{name}` is isomorphic to its transpose was not found out within an effort of {self.effort}",
                hint="raise `effort`, or synthesize the other collective directly",
                exit_status=3,
            )
        raise error(
            "C0523",
            f"`{name}` is not isomorphic to its transpose, so its schedules cannot be turned round on it",
            hint="synthesize the other collective directly: bfb schedules it on the transpose",
            exit_status=3,
        )
