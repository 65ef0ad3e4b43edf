"""Clusters: copies of any topology as boxes, joined by a fabric that every rank has one link to."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from collc.ir.arrays import Array
from collc.ir.topology import LinkClass, Topology

from . import Bandwidth, _sizes
from ._sizes import HUGE, domain

__all__ = ["clustered"]


def clustered(topology: Topology, boxes: int, bandwidth: Bandwidth, under: int = 0, ratio: int = 1) -> Topology:
    """Return ``boxes`` copies of a topology, with links of this bandwidth both ways between every rank and a fabric.

    The fabric is the switch ``fabric``. With ``under``, each group of this number of boxes has a switch ``leaf[l]``,
    and a switch ``spine``, linked to every leaf by 1/ratio of what its ranks bring up: a third tier, oversubscribed
    ratio to 1. A single box, or leaf, has nothing above it. Node ``name[i, j]`` of box b is ``name[b, i, j]``, and rank
    r is ``gpu[b, r]`` where ranks have numbers only. Ranks are numbered box by box; then come the switches of the
    boxes.

    >>> from collc.frontends.coll import topology
    >>> net = topology("clustered(hypercube(3), 4, 1/2, 2, 2)")
    >>> net.num_ranks, net.names[32:], net.egress(0), net.egress(32), net.egress(34)
    (32, ('leaf[0]', 'leaf[1]', 'spine'), Fraction(7, 2), Fraction(12, 1), Fraction(8, 1))
    """
    inside, ranks = topology, topology.num_ranks * boxes
    tiers = _tiers(inside, boxes, bandwidth.value, under, ratio)
    src, dst = (_moved(inside, ends, boxes) for ends in (inside.src, inside.dst))
    first = inside.num_nodes * boxes
    tails = [src, *(_in_turn(low, high + first) for low, high, _ in tiers)]
    heads = [dst, *(_in_turn(high + first, low) for low, high, _ in tiers)]
    classes = tuple(dict.fromkeys((*inside.classes, *(LinkClass(rate) for _, _, rate in tiers))))
    kinds = [np.tile(inside.link_class.astype(np.int64), boxes)]
    kinds += [np.full(2 * len(low), classes.index(LinkClass(rate))) for low, _, rate in tiers]
    names = _names(inside, boxes) + _fabric(boxes, under)
    return Topology(
        "clustered", ranks, np.concatenate(tails), np.concatenate(heads), len(names) - ranks,
        link_class=np.concatenate(kinds), classes=classes, unit=bandwidth.unit, node_names=tuple(names),
        multicast=_all_boxes(inside, inside.multicast, boxes), reduces=_all_boxes(inside, inside.reduces, boxes),
    )  # fmt: skip


Tier = tuple[Array, Array, Fraction]  # nodes below, switches above counted from the first of the fabric, bandwidth


def _tiers(inside: Topology, boxes: int, rate: Fraction, under: int, ratio: int) -> list[Tier]:
    if boxes == 1:
        return []
    rank = np.arange(inside.num_ranks * boxes)
    if not under:
        return [(rank, np.zeros_like(rank), rate)]
    leaves = boxes // under
    to_leaf = (rank, rank // (inside.num_ranks * under), rate)
    if leaves == 1:
        return [to_leaf]
    leaf = np.arange(leaves)
    uplink = rate * inside.num_ranks * under / ratio
    return [to_leaf, (leaf + inside.num_nodes * boxes, np.full(leaves, leaves), uplink)]


def _in_turn(one: Array, other: Array) -> Array:
    """Return the tails (or heads) of the links both ways of pairs, pair by pair."""
    return np.stack([one, other], axis=1).ravel()


def _moved(inside: Topology, ends: Array, boxes: int) -> Array:
    """Return the nodes of all boxes that the nodes of one are: all ranks come before all switches."""
    ends, box = np.tile(ends.astype(np.int64), boxes), np.repeat(np.arange(boxes), len(ends))
    ranks, switches = inside.num_ranks, inside.num_switches
    return np.where(ends < ranks, ends + box * ranks, ends + box * switches + ranks * (boxes - 1))


def _all_boxes(inside: Topology, switches: tuple[int, ...], boxes: int) -> tuple[int, ...]:
    """Return the switches of all boxes that these of one are, ascending."""
    return tuple(sorted(_moved(inside, np.array(switches, dtype=np.int64), boxes).tolist()))


def _names(inside: Topology, boxes: int) -> list[str]:
    """Return the names of the nodes of all boxes, a box's number before all indices."""
    own = inside.node_names or tuple(f"gpu[{rank}]" for rank in range(inside.num_ranks))
    parts = [name.removesuffix("]").partition("[") for name in own]
    ends = [(family, f", {rest}]" if rest else "]") for family, _, rest in parts]
    ranks, switches = ends[: inside.num_ranks], ends[inside.num_ranks :]
    return [f"{family}[{b}{rest}" for kind in (ranks, switches) for b in range(boxes) for family, rest in kind]


def _fabric(boxes: int, under: int) -> list[str]:
    if boxes == 1:
        return []
    if not under:
        return ["fabric"]
    leaves = boxes // under
    return [f"leaf[{leaf}]" for leaf in range(leaves)] + ["spine"] * (leaves > 1)


def clustered_size(
    topology: Topology, boxes: int, bandwidth: Bandwidth, under: int = 0, ratio: int = 1
) -> tuple[int, int]:
    if topology.num_links and topology.unit != bandwidth.unit:
        found, hint = "in link units", f"write a number, the links of `{topology.name}` have such bandwidths"
        if topology.unit == "B/s":
            found, hint = "in B/s", "write a bandwidth such as `25 GB/s`"
        given = "a number" if bandwidth.unit == "link" else "in B/s"
        message = f"links of `{topology.name}` are {found}, the bandwidth of the fabric is {given}"
        raise domain(message, hint, "bandwidth", code="C0312")
    if under and boxes % under:
        message = f"found {boxes} boxes, {under} under every leaf, needed a multiple of {under}"
        raise domain(message, f"write `{-(-boxes // under) * under}`", "boxes")
    leaves = boxes // under if under else 0
    spine = leaves > 1
    nodes = _sizes.prod([boxes, topology.num_nodes]) + (boxes > 1) * (leaves + spine or 1)
    links = _sizes.prod([boxes, topology.num_links + 2 * topology.num_ranks * (boxes > 1)]) + 2 * leaves * spine
    return min(nodes, HUGE), min(links, HUGE)
