"""Map schedules by isomorphisms (Definition 7); reverse them on networks isomorphic to their transpose (Theorem 2)."""

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
from ..ranges import Range
from ..schedule.reverse import reverse

__all__ = ["Transpose", "mapped", "opposite", "reverse_symmetry"]


def mapped(schedule: Schedule, topology: Topology, nodes: Array) -> Schedule:
    """Return the schedule for an isomorphic topology (Definition 7); ``nodes`` maps each node to its image.

    The shard of rank v becomes that of ``nodes[v]``, with its weight. Raises ValueError if ``nodes`` is not an
    isomorphism.
    """
    links = link_map(schedule.topology, topology, nodes)
    if links is None:
        raise ValueError("the map of nodes does not map links to links")
    collective, nodes = schedule.collective, nodes.astype(np.int64)
    image, ranks = np.arange(collective.num_shards), collective.num_ranks
    if collective.kind == "alltoall":
        image = nodes[image // ranks] * ranks + nodes[image % ranks]
    elif collective.kind not in ROOTED or collective.kind in ("gather", "scatter"):
        image = nodes[image]
    weights = None if collective.weights is None else tuple(collective.weight[np.argsort(image)].tolist())
    root = None if collective.root is None else int(nodes[collective.root])
    moved: Columns = {"route": links[schedule.route]}
    if not schedule.routes.is_direct:
        moved = {"routes": Routes(schedule.routes.start, links[schedule.routes.links])}
    return attrs.evolve(
        schedule, topology=topology, collective=attrs.evolve(collective, root=root, weights=weights),
        shard=image[schedule.shard], **moved,
    )  # fmt: skip


def reverse_symmetry(topology: Topology, effort: int = EFFORT) -> Match:
    """Search an isomorphism from a topology to its transpose (Definition 6): the identity for bidirectional ones."""
    if topology.reverse_links is not None:
        return Match(np.arange(topology.num_nodes))
    return match(topology, topology.transpose(), effort=effort)


def opposite(schedule: Schedule, nodes: Array) -> Schedule:
    """Return the schedule of the reversed collective on the same topology (Theorem 2).

    ``nodes`` is an isomorphism from the topology to its transpose, and therefore from the transpose to the topology.
    T_L and T_B stay the same. Raises ValueError if ``nodes`` is not an isomorphism.
    """
    back = reverse(schedule)
    assert isinstance(back, Schedule)
    return mapped(back, schedule.topology, nodes)


@attrs.frozen
class Transpose(Pass):
    """Turn an allgather into a reduce-scatter, or vice versa, on a network isomorphic to its transpose.

    It is ``reverse`` for networks with one-way links. The root of a broadcast or reduce may change, and weights move
    with their shards.
    Raises C0523 if the network is not isomorphic to its transpose, C0524 if the search did not decide it.
    """

    name: ClassVar[str] = "transpose"
    summary: ClassVar[str] = "transpose an allgather on a network that is isomorphic to its transpose"
    takes: ClassVar[type] = Schedule
    gives: ClassVar[type] = Schedule

    effort: int = attrs.field(
        default=EFFORT,
        metadata={"help": "how many links the search for the isomorphism may see", "range": Range(0)},
    )

    def turned(self, collective: Collective, found: Collective) -> Collective:
        result = collective.reversed()  # its root and weights move with the nodes
        return attrs.evolve(result, root=None if result.root is None else found.root, weights=found.weights)

    def run(self, ir: Schedule) -> Schedule:
        found = reverse_symmetry(ir.topology, self.effort)
        if found.nodes is not None:
            return opposite(ir, found.nodes)
        name = ir.topology.name
        if not found.decided:
            raise error(
                "C0524",
                f"an effort of {self.effort} did not decide whether `{name}` is isomorphic to its transpose",
                hint="raise `effort`, or synthesize the other collective directly",
                exit_status=3,
            )
        raise error(
            "C0523",
            f"`{name}` is not isomorphic to its transpose, so its schedules cannot be reversed on it",
            hint="synthesize the other collective directly: bfb schedules it on the transpose",
            exit_status=3,
        )
