"""Networks of switches with ranks at their edges: fat trees, leaves and spines, dragonflies, HammingMesh.

All links are alike, one unit, but those to the spines. Ranks come first, in the order of their names' indices, then
switches. A switch is one node, however it is built: what it can pass on at a time is what its links carry.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np

from collc.ir.topology import LinkClass, Topology

from . import _sizes
from ._sizes import domain

__all__ = ["dragonfly", "fat_tree", "hammingmesh", "leaf_spine"]

Pair = tuple[str, str]


def _built(name: str, ranks: list[str], switches: list[str], pairs: list[Pair]) -> Topology:
    """Return the network with a link each way for every pair of names, in order."""
    number = {node: i for i, node in enumerate([*ranks, *switches])}
    links = [end for a, b in pairs for end in ((number[a], number[b]), (number[b], number[a]))]
    return Topology.from_links(name, len(ranks), links, len(switches), node_names=[*ranks, *switches])


def fat_tree(k: int, ratio: int = 1) -> Topology:
    """Return the fat tree of switches with k ports: k pods, k^3/4 ranks (Al-Fares, Loukissas and Vahdat, 2008).

    Rank ``host[p, e, i]`` hangs from switch ``edge[p, e]``, which is linked to every ``spine[p, s]`` of its pod, and
    that to ``core[s, c]`` for every c; all indices but p are below k/2. With a ``ratio``, only every ratio-th core
    switch is there: pods have that many times more bandwidth inside than to each other.

    >>> net = fat_tree(4)
    >>> net.num_ranks, net.num_switches, net.diameter
    (16, 20, 6)
    >>> fat_tree(4, 2).names[-2:]
    ('core[0, 0]', 'core[1, 0]')
    """
    pods, half, cores = range(k), range(k // 2), range(k // 2 // ratio)
    hosts = [f"host[{p}, {e}, {i}]" for p, e, i in product(pods, half, half)]
    switches = [f"{kind}[{p}, {s}]" for kind in ("edge", "spine") for p, s in product(pods, half)]
    pairs = [(f"host[{p}, {e}, {i}]", f"edge[{p}, {e}]") for p, e, i in product(pods, half, half)]
    pairs += [(f"edge[{p}, {e}]", f"spine[{p}, {s}]") for p, e, s in product(pods, half, half)]
    pairs += [(f"spine[{p}, {s}]", f"core[{s}, {c}]") for p, s, c in product(pods, half, cores)]
    return _built("fat_tree", hosts, [*switches, *(f"core[{s}, {c}]" for s, c in product(half, cores))], pairs)


def fat_tree_size(k: int, ratio: int = 1) -> tuple[int, int]:
    if k % 2:
        raise domain(f"found switches of {k} ports, needed an even number: half up, half down", f"write `{k + 1}`")
    half = k // 2
    if half % ratio:
        message = f"found a ratio of {ratio} for {half} ports up, needed one that divides them"
        raise domain(message, f"as in `fat_tree({k}, {half})`, with one core switch for every spine of a pod")
    third = _sizes.prod([k, half, half])  # hosts, and pairs of every level below the top
    return min(third + 2 * k * half + half * (half // ratio), _sizes.HUGE), 2 * (2 * third + third // ratio)


def leaf_spine(leaves: int, hosts: int, spines: int, ratio: int = 1) -> Topology:
    """Return ``leaves`` switches with a link of one unit to each of their ``hosts`` ranks, and to every spine.

    All links to the spines have the same bandwidth, 1/ratio of what the ranks of a leaf have together (the leaf is
    oversubscribed ratio to 1). Rank ``host[l, i]`` hangs from ``leaf[l]``; a single leaf has no spines.

    >>> net = leaf_spine(4, 8, 2, 2)
    >>> net.names[32:], net.egress(32), net.bandwidth(net.num_links - 1)
    (('leaf[0]', 'leaf[1]', 'leaf[2]', 'leaf[3]', 'spine[0]', 'spine[1]'), Fraction(12, 1), Fraction(2, 1))
    """
    ranks, spines = leaves * hosts, spines if leaves > 1 else 0
    rank, leaf = np.arange(ranks), ranks + np.repeat(np.arange(leaves), spines)
    low = np.concatenate([rank, leaf])
    high = np.concatenate([ranks + rank // hosts, ranks + leaves + np.tile(np.arange(spines), leaves)])
    names = [f"host[{leaf}, {i}]" for leaf in range(leaves) for i in range(hosts)]
    names += [f"leaf[{leaf}]" for leaf in range(leaves)] + [f"spine[{s}]" for s in range(spines)]
    classes = tuple(dict.fromkeys((LinkClass(), LinkClass(Fraction(hosts, spines * ratio) if spines else Fraction(1)))))
    return Topology(
        "leaf_spine", ranks, np.stack([low, high], axis=1).ravel(), np.stack([high, low], axis=1).ravel(),
        leaves + spines, link_class=np.repeat([0, len(classes) - 1], [2 * ranks, 2 * len(leaf)]), classes=classes,
        node_names=tuple(names),
    )  # fmt: skip


def leaf_spine_size(leaves: int, hosts: int, spines: int, ratio: int = 1) -> tuple[int, int]:
    ranks, spines = _sizes.prod([leaves, hosts]), spines if leaves > 1 else 0
    return min(ranks + leaves + spines, _sizes.HUGE), 2 * min(ranks + _sizes.prod([leaves, spines]), _sizes.HUGE)


def dragonfly(p: int, a: int, h: int) -> Topology:
    """Return the dragonfly of a*h + 1 groups: a switches each, with p ranks and h links to other groups a switch.

    Switches of a group are all linked, and so are groups, once each pair (Kim, Dally, Scott and Abts, 2008). The links
    of group g to the others, in ascending order, belong to its switches in turn, h each. Rank ``host[g, s, i]`` hangs
    from ``router[g, s]``.

    >>> net = dragonfly(1, 2, 1)
    >>> net.num_ranks, net.num_switches, net.diameter
    (6, 6, 5)
    """
    groups, switches = range(a * h + 1), range(a)
    pairs = [(f"host[{g}, {s}, {i}]", f"router[{g}, {s}]") for g, s, i in product(groups, switches, range(p))]
    hosts = [host for host, _ in pairs]
    routers = [f"router[{g}, {s}]" for g, s in product(groups, switches)]
    pairs += [(f"router[{g}, {s}]", f"router[{g}, {t}]") for g in groups for s in switches for t in range(s + 1, a)]
    for g in groups:
        # the links of group g are those to 0, 1, .. without g itself
        pairs += [(f"router[{g}, {(other - 1) // h}]", f"router[{other}, {g // h}]") for other in groups[g + 1 :]]
    return _built("dragonfly", hosts, routers, pairs)


def dragonfly_size(p: int, a: int, h: int) -> tuple[int, int]:
    groups = _sizes.prod([a, h]) + 1
    routers = _sizes.prod([groups, a])
    return _sizes.prod([routers, p + 1]), _sizes.prod([routers, 2 * p + a - 1 + h])


def hammingmesh(a: int, b: int, x: int, y: int) -> Topology:
    """Return HammingMesh: x * y boards, each a mesh of a * b ranks whose edges hang from a switch for every line.

    Ranks are ``gpu[i, j]`` by their row i of a*x and column j of b*y in the whole machine. The west and east ends of
    a board's part of row i are linked to ``row[i]``, the north and south ends of its part of column j to ``column[j]``:
    the fat trees of Hoefer et al., HammingMesh (2022), as one switch each. Boards of one rank have two links to
    each of theirs.

    >>> net = hammingmesh(2, 2, 2, 2)
    >>> net.num_ranks, net.num_switches, net.node_bandwidth
    (16, 8, Fraction(4, 1))
    """
    rows, columns = a * x, b * y
    pairs: list[Pair] = []
    for i, j in product(range(rows), range(columns)):
        here = f"gpu[{i}, {j}]"
        east = f"gpu[{i}, {j + 1}]" if (j + 1) % b else f"row[{i}]"
        south = f"gpu[{i + 1}, {j}]" if (i + 1) % a else f"column[{j}]"
        pairs += [(here, east), (here, south)]
        pairs += [(here, f"row[{i}]")] * (j % b == 0) + [(here, f"column[{j}]")] * (i % a == 0)
    ranks = [f"gpu[{i}, {j}]" for i, j in product(range(rows), range(columns))]
    lines = [f"row[{i}]" for i in range(rows)] + [f"column[{j}]" for j in range(columns)]
    return _built("hammingmesh", ranks, lines, pairs)


def hammingmesh_size(a: int, b: int, x: int, y: int) -> tuple[int, int]:
    ranks = _sizes.prod([a, b, x, y])
    ends = _sizes.prod([a, x, y]) + _sizes.prod([b, x, y])  # boards' rows and columns: one link more than ranks in each
    return min(ranks + a * x + b * y, _sizes.HUGE), 2 * (2 * ranks + ends)
