"""Operators: topologies from topologies (section 5 of the direct-connect paper). Links are again ordered by rank."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

import attrs
import numpy as np

from collc.ir.arrays import Array, distinct
from collc.ir.diagnostic import CollcError, error
from collc.ir.group import Direct, Group, Translations
from collc.ir.ragged import nth_in_group, owners, ranges
from collc.ir.topology import LinkClass, Topology, renumbered

from . import Elements, _sizes
from ._sizes import HUGE, domain

__all__ = [
    "bidirectional",
    "degraded",
    "degree",
    "in_network",
    "inserted",
    "line",
    "power",
    "product",
    "relabel",
    "remaining",
    "subset",
    "transpose",
    "without",
]

_MAX_TIMES = 100
#: more walks than any limit allows; one step more still fits 64 bits
_MANY = 2**40


def _needs(operator: str, topology: Topology, need: str) -> CollcError:
    from .examples import example

    message = f"`{operator}` needs a topology {need}, which `{topology.name}` is not"
    return error("C0314", message, hint=f"apply it to such a topology, as in `{example(operator)}`")


def _require_direct(operator: str, *topologies: Topology) -> None:
    for topology in topologies:
        if not topology.is_direct:
            raise _needs(operator, topology, "of ranks only, without switches")


def _places(topology: Topology) -> Array:
    """Return for each link its place among the links out of the same node."""
    _, links = topology.out_links
    places = np.empty(topology.num_links, dtype=np.int64)
    places[links] = nth_in_group(topology.src[links])
    return places


def _columns(topology: Topology) -> tuple[Array, Array, Array]:
    return topology.src.astype(np.int64), topology.dst.astype(np.int64), topology.link_class.astype(np.int64)


# ---- line graphs


def line(topology: Topology, n: int = 1) -> Topology:
    """Return the line graph L(G), taken n times: a rank for every link, linked to those that follow it (Definition 12).

    Rank i is link i of G. A self-loop follows itself.
    """
    return reduce(lambda graph, _: _line(graph), range(n), topology)


def _line(topology: Topology) -> Topology:
    start, links = topology.out_links
    counts = np.diff(start)[topology.dst]
    tails, heads = owners(counts), links[ranges(start[topology.dst], counts)]
    classes = (topology.classes[topology.link_class[0]],) if topology.num_links else (LinkClass(),)
    return Topology("line", topology.num_links, tails, heads, classes=classes, unit=topology.unit)


def line_size(topology: Topology, n: int = 1) -> tuple[int, int]:
    _require_direct("line", topology)
    if not topology.is_uniform:
        raise _needs("line", topology, "whose links are all alike")
    _check_times(n)
    walks = np.ones(topology.num_ranks, dtype=np.int64)  # walks of a length from each rank
    counts = []
    for _ in range(n + 1):
        before, walks = walks, np.zeros_like(walks)
        np.add.at(walks, topology.src, before[topology.dst])
        counts.append(int(walks.sum()))
        if counts[-1] > _MANY:
            return HUGE, HUGE
    return max(counts[:-1]), max(counts[1:])  # those in between are built too


# ---- degree expansion


def degree(topology: Topology, n: int) -> Topology:
    """Return G * n: n copies v_0 .. v_{n-1} of every rank v, all copies linked as the ranks are (Definition 13).

    Copy i of rank v is rank v*n + i.
    """
    src, dst, kind = _columns(topology)
    link, copy, other = np.unravel_index(np.arange(len(src) * n * n), (len(src), n, n))
    tails, heads = src[link] * n + copy, dst[link] * n + (copy + other) % n
    order = np.lexsort((other, _places(topology)[link], tails))
    symmetry = _product_group(topology.symmetry, Translations((n,)))
    return Topology(
        "degree", topology.num_ranks * n, tails[order], heads[order], link_class=kind[link][order],
        classes=topology.classes, unit=topology.unit, symmetry=symmetry,
    )  # fmt: skip


def degree_size(topology: Topology, n: int) -> tuple[int, int]:
    _require_direct("degree", topology)
    if (topology.src == topology.dst).any():
        raise _needs("degree", topology, "without self-loops")
    return topology.num_ranks * n, topology.num_links * n * n


# ---- Cartesian products


def product(*topologies: Topology) -> Topology:
    """Return the Cartesian product: vectors of ranks, linked where one coordinate moves along a link (Definition 3).

    The last coordinate is fastest, so a product of rings is the torus, link by link.
    """
    return reduce(_product, topologies)


def _product(one: Topology, two: Topology) -> Topology:
    n, m = one.num_ranks, two.num_ranks
    (src1, dst1, kind1), (src2, dst2, kind2) = _columns(one), _columns(two)
    still1, still2 = np.tile(np.arange(m), len(src1)), np.repeat(np.arange(n), len(src2))
    tails = np.concatenate([np.repeat(src1, m) * m + still1, still2 * m + np.tile(src2, n)])
    heads = np.concatenate([np.repeat(dst1, m) * m + still1, still2 * m + np.tile(dst2, n)])
    places = np.concatenate([np.repeat(_places(one), m), np.tile(_places(two), n)])
    part = np.repeat([0, 1], [len(src1) * m, n * len(src2)])
    classes = tuple(dict.fromkeys((*one.classes, *two.classes)))
    renumber = np.array([classes.index(kind) for kind in (*one.classes, *two.classes)])
    kinds = renumber[np.concatenate([np.repeat(kind1, m), np.tile(kind2, n) + len(one.classes)])]
    order = np.lexsort((places, part, tails))
    symmetry = _product_group(one.symmetry, two.symmetry)
    unit = one.unit if one.num_links else two.unit
    return Topology(
        "product", n * m, tails[order], heads[order], link_class=kinds[order], classes=classes, unit=unit,
        symmetry=symmetry,
    )  # fmt: skip


def _product_group(one: Group | None, two: Group | None) -> Group | None:
    """Return the group of pairs, last coordinate fastest, if both groups exist; a group of one element is left out."""
    if one and two and 1 in (one.order, two.order):
        return two if one.order == 1 else one
    if isinstance(one, Translations) and isinstance(two, Translations):
        return Translations((*one.shape, *two.shape))
    return Direct(one, two) if one and two else None


def product_size(*topologies: Topology) -> tuple[int, int]:
    _require_direct("product", *topologies)
    linked = [topology for topology in topologies if topology.num_links]
    other = next((topology for topology in linked if topology.unit != linked[0].unit), None)
    if other is not None:
        message = f"links of `{linked[0].name}` are in {_unit(linked[0])}, those of `{other.name}` in {_unit(other)}"
        raise error("C0312", message, hint="give both topologies a bandwidth: `with { bandwidth: 25 GB/s }`")
    nodes, links = 1, 0
    for topology in topologies:
        links = min(links * topology.num_ranks + nodes * topology.num_links, HUGE)
        nodes = _sizes.prod([nodes, topology.num_ranks])
    return nodes, links


def _unit(topology: Topology) -> str:
    return "B/s" if topology.unit == "B/s" else "link units"


def power(topology: Topology, n: int) -> Topology:
    """Return the Cartesian product of n copies."""
    return product(*[topology] * n)


def power_size(topology: Topology, n: int) -> tuple[int, int]:
    _check_times(n)
    return product_size(*[topology] * n)


def _check_times(n: int) -> None:
    if n > _MAX_TIMES:
        raise domain(f"found {n} times, needed at most {_MAX_TIMES}", at="n")


# ---- reversing links


def transpose(topology: Topology) -> Topology:
    """Return the topology with every link reversed."""
    return _joined(topology, keep_forward=False)


def bidirectional(topology: Topology) -> Topology:
    """Return G and its transpose together: every link, and its reverse (section A.6 of the direct-connect paper).

    A d-regular topology becomes 2d-regular, whether or not it had opposite links before.
    """
    return _joined(topology, keep_forward=True)


def _joined(topology: Topology, keep_forward: bool) -> Topology:
    src, dst, kind = _columns(topology)
    places, back = _places(topology), np.ones(len(src), dtype=np.int64)
    tails, heads, part, kinds = dst, src, back, kind
    multicast, reduces = topology.reduces, topology.multicast
    if keep_forward:
        multicast, reduces = topology.multicast, topology.reduces
        tails, heads = np.concatenate([src, dst]), np.concatenate([dst, src])
        part, places, kinds = np.concatenate([back * 0, back]), np.tile(places, 2), np.tile(kind, 2)
    order = np.lexsort((places, part, tails))
    return attrs.evolve(
        topology, src=tails[order], dst=heads[order], link_class=kinds[order],
        multicast=multicast, reduces=reduces,
    )  # fmt: skip


def transpose_size(topology: Topology) -> tuple[int, int]:
    return topology.num_nodes, topology.num_links


def bidirectional_size(topology: Topology) -> tuple[int, int]:
    return topology.num_nodes, 2 * topology.num_links


# ---- parts


def subset(topology: Topology, ranks: tuple[int, ...]) -> Topology:
    """Return the topology of some of the ranks, in their order, the switches, and the links among those.

    Switches that no longer join nodes are left out: those with a single neighbour or with links in one direction only,
    and switches linked to these alone. Ranks are renumbered from 0; names stay.
    """
    kept = np.zeros(topology.num_nodes, dtype=bool)
    kept[list(ranks)] = kept[topology.num_ranks :] = True
    return _part(topology, kept, np.ones(topology.num_links, dtype=bool))


def without(topology: Topology, parts: Elements) -> Topology:
    """Return the topology without some nodes and links, as after a failure.

    Links of the nodes go with them, and so do switches that no longer join nodes, as in :func:`subset`. The ranks that
    are left are renumbered in order; names stay. The result need not be connected: a collective asks for that.

    >>> from collc.frontends.coll import topology
    >>> net = topology("without(dgx_a100(2), {gpu[0, 3], gpu[1, 0] <-> ib})")
    >>> net.num_ranks, net.names[2:4], net.num_links
    (15, ('gpu[0, 2]', 'gpu[0, 4]'), 58)
    """
    kept, links = np.ones(topology.num_nodes, dtype=bool), np.ones(topology.num_links, dtype=bool)
    kept[list(parts.nodes)] = False
    links[list(parts.links)] = False
    return _part(topology, kept, links)


def remaining(topology: Topology, kept: Array, links: Array) -> tuple[Array, Array]:
    """Return the nodes and the links that stay if only those of the masks do: switches that no longer join nodes go."""
    kept = kept.copy()
    src, dst, _ = _columns(topology)
    while True:
        keep = links & kept[src] & kept[dst]
        useless = kept & ~_joins(topology.num_nodes, src[keep], dst[keep])
        useless[: topology.num_ranks] = False
        if not useless.any():
            return kept, keep
        kept &= ~useless


def _part(topology: Topology, kept: Array, links: Array) -> Topology:
    """Return the nodes and links for which the masks are true, without switches that no longer join nodes."""
    kept, keep = remaining(topology, kept, links)
    src, dst, kind = _columns(topology)
    nodes = np.flatnonzero(kept)
    ranks = int(kept[: topology.num_ranks].sum())
    number = np.cumsum(kept) - 1
    place = np.where(kept, number, -1)
    names = tuple(topology.names[node] for node in nodes) if topology.node_names else None
    return attrs.evolve(
        topology, num_ranks=ranks, num_switches=len(nodes) - ranks, src=number[src[keep]],
        dst=number[dst[keep]], link_class=kind[keep], node_names=names, symmetry=None,
        multicast=renumbered(topology.multicast, place), reduces=renumbered(topology.reduces, place),
    )  # fmt: skip


def _joins(num_nodes: int, src: Array, dst: Array) -> Array:
    """Return which nodes have links in and out and more than one neighbour."""
    pairs = distinct(np.concatenate([src * num_nodes + dst, dst * num_nodes + src]))
    other = pairs[pairs // num_nodes != pairs % num_nodes]
    neighbours = np.bincount(other // num_nodes, minlength=num_nodes)
    has_in, has_out = (np.bincount(ends, minlength=num_nodes) > 0 for ends in (dst, src))
    return (neighbours > 1) & has_in & has_out


def _require_ranks(topology: Topology, ranks: tuple[int, ...]) -> None:
    for rank in ranks:
        if not 0 <= rank < topology.num_ranks:
            raise domain(f"found rank {rank}, needed ranks from 0 to {topology.num_ranks - 1}", at="ranks", item=rank)


def subset_size(topology: Topology, ranks: tuple[int, ...]) -> tuple[int, int]:
    if not ranks:
        raise domain("found no ranks, needed at least one", at="ranks")
    _require_ranks(topology, ranks)
    return len(ranks) + topology.num_switches, topology.num_links


def without_size(topology: Topology, parts: Elements) -> tuple[int, int]:
    if sum(node < topology.num_ranks for node in parts.nodes) == topology.num_ranks:
        raise domain(f"found all {topology.num_ranks} ranks, needed at least one that stays", at="parts")
    return topology.num_nodes, topology.num_links


# ---- more ranks


def inserted(topology: Topology, parts: Elements, n: int = 1) -> Topology:
    """Return the topology with n more ranks in the middle of some links, and linked to each other.

    A link a -> b becomes a -> x -> b for a new rank x. The new ranks share the links: the first share, in their order,
    goes to the first new rank. New ranks come after the others. In a network of degree d all ranks have d links if
    every new one gets d - n + 1. Random networks grow in this way (Singla et al., Jellyfish, 2012, section 4.2).

    >>> from collc.frontends.coll import topology
    >>> net = topology("inserted(torus(3, 3), {0 <-> 1, 5 <-> 8})")
    >>> net.num_ranks, net.degree, net.diameter
    (10, 4, 2)
    """
    src, dst, kind = _columns(topology)
    cut = np.array(parts.links, dtype=np.int64)
    new = topology.num_ranks + np.arange(n)
    middle = np.repeat(new, len(cut) // n)
    heads = dst.copy()
    heads[cut] = middle
    one, two = (ends[~np.eye(n, dtype=bool)] for ends in np.meshgrid(new, new, indexing="ij"))
    tails = np.concatenate([src, middle, one])
    heads = np.concatenate([heads, dst[cut], two])
    kinds = np.concatenate([kind, kind[cut], np.full(len(one), kind[cut[0]])])
    order = np.argsort(tails, kind="stable")
    names = (*topology.names, *(f"added[{rank}]" for rank in new)) if topology.node_names else None
    return attrs.evolve(
        topology, num_ranks=topology.num_ranks + n, src=tails[order], dst=heads[order], link_class=kinds[order],
        node_names=names, symmetry=None,
    )  # fmt: skip


def inserted_size(topology: Topology, parts: Elements, n: int = 1) -> tuple[int, int]:
    _require_direct("inserted", topology)
    if parts.nodes or not parts.links:
        found = "a rank" if parts.nodes else "no links"
        raise domain(f"found {found}, needed links", "as in `inserted(torus(3, 3), {0 <-> 1, 5 <-> 8})`", "parts")
    if len(parts.links) % n:
        raise domain(f"found {len(parts.links)} links, needed a multiple of the {n} new ranks", at="parts")
    return topology.num_ranks + n, topology.num_links + len(parts.links) + n * (n - 1)


# ---- the same network, with other switches


def in_network(topology: Topology, switches: Elements) -> Topology:
    """Return the topology with some switches that multicast and reduce, besides those that already do.

    >>> from collc.frontends.coll import topology
    >>> net = topology("in_network(dgx_a100(2), {nv[0], nv[1]})")
    >>> net.multicast, net.reduces
    ((16, 17), (16, 17))
    """
    multicast, reduces = (tuple(sorted({*old, *switches.nodes})) for old in (topology.multicast, topology.reduces))
    return attrs.evolve(topology, multicast=multicast, reduces=reduces)


def in_network_size(topology: Topology, switches: Elements) -> tuple[int, int]:
    if switches.links or any(node < topology.num_ranks for node in switches.nodes):
        raise domain("found a rank or a link, needed switches", "as in `in_network(dgx_h100(1), {nv[0]})`", "switches")
    return topology.num_nodes, topology.num_links


# ---- the same network, slower or in another order


def degraded(topology: Topology, parts: Elements, factor: Fraction) -> Topology:
    """Return the topology with ``factor`` times the bandwidth of some links, and of all links of some nodes.

    >>> from collc.frontends.coll import topology
    >>> net = topology("degraded(torus(3, 3), {0 <-> 1, 8}, 1/4)")
    >>> net.egress(0), net.egress(8), net.num_links == topology("torus(3, 3)").num_links
    (Fraction(13, 4), Fraction(1, 1), True)
    """
    slow = np.isin(topology.src, parts.nodes) | np.isin(topology.dst, parts.nodes)
    slow[list(parts.links)] = True
    slower = [LinkClass(kind.bandwidth * factor, kind.latency) for kind in topology.classes]
    classes = tuple(dict.fromkeys((*topology.classes, *slower)))
    number = np.array([classes.index(kind) for kind in (*topology.classes, *slower)])
    kinds = number[topology.link_class.astype(np.int64) + slow * len(topology.classes)]
    used, kinds = np.unique(kinds, return_inverse=True)
    symmetry = topology.symmetry if len(used) == 1 else None
    return attrs.evolve(topology, classes=tuple(classes[i] for i in used), link_class=kinds, symmetry=symmetry)


def degraded_size(topology: Topology, parts: Elements, factor: Fraction) -> tuple[int, int]:
    return topology.num_nodes, topology.num_links


def relabel(topology: Topology, ranks: tuple[int, ...]) -> Topology:
    """Return the topology with its ranks in another order: rank i is what was rank ``ranks[i]``, and keeps its name.

    Links keep their order, and switches their numbers.

    >>> from collc.frontends.coll import topology
    >>> net = topology("relabel(uniring(3), {2, 0, 1})")
    >>> net.src.tolist(), net.dst.tolist()
    ([1, 2, 0], [2, 0, 1])
    """
    order = np.array([*ranks, *range(topology.num_ranks, topology.num_nodes)])
    number = np.argsort(order)
    names = tuple(topology.names[node] for node in order) if topology.node_names else None
    return attrs.evolve(
        topology, src=number[topology.src], dst=number[topology.dst], node_names=names, symmetry=None
    )  # fmt: skip


def relabel_size(topology: Topology, ranks: tuple[int, ...]) -> tuple[int, int]:
    _require_ranks(topology, ranks)
    if missing := sorted(set(range(topology.num_ranks)) - set(ranks)):
        message = f"found {len(ranks)} of {topology.num_ranks} ranks, needed each once: rank {missing[0]} is missing"
        raise domain(message, at="ranks")
    return topology.num_nodes, topology.num_links
