"""Routes on clusters of boxes: messages of one box stay inside it, and others take the fabric."""

from __future__ import annotations

from functools import cached_property

import attrs
import numpy as np

from collc.ir.arrays import Array
from collc.ir.diagnostic import Subject, error
from collc.ir.frozen import frozen
from collc.ir.graph.boxes import Boxes, boxes_of
from collc.ir.ragged import ranges, starts
from collc.ir.schedule import Routes
from collc.ir.topology import Topology

from .routing import Router

__all__ = ["BoxRouter", "require_boxes"]


def require_boxes(scheduler: str, topology: Topology) -> Boxes:
    """Return the boxes of a network; raise C0587 if it has none."""
    boxes = boxes_of(topology)
    if boxes is None:
        raise error(
            "C0587",
            f"{scheduler} needs boxes; no links divide the ranks of `{topology.name}` into boxes",
            notes=["ranks of a box have faster links than all ranks together, or switches of their own"],
            hint="`forest` schedules any network; `clustered` describes a cluster",
            exit_status=3, about=(Subject.SCHEDULER, Subject.TOPOLOGY),
        )  # fmt: skip
    return boxes


@frozen(eq=False)
class BoxRouter(Router):
    """Routes inside boxes over their own links, between boxes over all others, each where there is such a route.

    A shortest path alone would take either of two GPUs' NVLinks or NICs, which are as many links.
    """

    boxes: Boxes = attrs.field(kw_only=True)

    def keys(self, src: Array, dst: Array, direction: int, lane: int) -> Array:
        """Return the keys; lanes are the parallel links inside a box, between boxes the target alone chooses."""
        near = self.boxes.box_of[src] == self.boxes.box_of[dst]
        return super().keys(src, dst, direction, np.where(near, lane % self.lanes, 0))  # type: ignore[arg-type]

    def routes(self, keys: Array) -> Routes:
        """Return the routes of different keys, in order. Raises C0301 if a target cannot be reached."""
        src, dst, _, _ = self.split(keys)
        near = self.boxes.box_of[src] == self.boxes.box_of[dst]
        found, places = list[Routes](), list[Array]()
        left = np.ones(len(keys), dtype=bool)
        for chosen, (router, links) in ((near, self._parts[0]), (~near, self._parts[1])):
            rows = np.flatnonzero(chosen & (router._hops[src, dst] >= 0))
            some = router.routes(keys[rows])
            found.append(Routes(some.start, links[some.links.astype(np.int64)]))
            places.append(rows)
            left[rows] = False
        places.append(np.flatnonzero(left))
        found.append(Router(self.topology, self.lanes).routes(keys[left]))
        return _in_order(found, places)

    @cached_property
    def _parts(self) -> tuple[tuple[Router, Array], tuple[Router, Array]]:
        """The links of all boxes, and all other links: a router of each, and the numbers of its links."""
        inside = self.boxes.inside
        return self._part(np.flatnonzero(inside)), self._part(np.flatnonzero(~inside))

    def _part(self, links: Array) -> tuple[Router, Array]:
        topology = self.topology
        part = Topology(
            topology.name, topology.num_ranks, topology.src[links], topology.dst[links], topology.num_switches,
            link_class=topology.link_class[links], classes=topology.classes, unit=topology.unit,
            multicast=topology.multicast, reduces=topology.reduces,
        )  # fmt: skip
        return Router(part, self.lanes), links


def _in_order(found: list[Routes], places: list[Array]) -> Routes:
    """Return all routes, each at its place."""
    order = np.argsort(np.concatenate(places), kind="stable")
    length = np.concatenate([routes.lengths for routes in found])
    place = ranges(starts(length)[order], length[order])
    return Routes(starts(length[order]), np.concatenate([routes.links for routes in found])[place])
