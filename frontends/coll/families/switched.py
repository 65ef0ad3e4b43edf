"""Networks of switches with ranks at their edges: fat trees, leaf-spine networks, dragonflies, HammingMesh.

All links have one unit of bandwidth, except those to the spines. Ranks come first, in the order of their names'
indices, then switches. A switch is one node; only its links limit what it forwards.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np

from collc.ir.topology import LinkClass, Topology

from . import _sizes
from ._sizes import domain

__all__ = ["dragonfly", "dragonfly_plus", "fat_tree", "hammingmesh", "leaf_spine"]

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
        raise domain(f"found switches of {k} ports, needed an even number: half up, half down", f"write `{k + 1}`", "k")
    half = k // 2
    if half % ratio:
        message = f"found a ratio of {ratio} for {half} ports up, needed one that divides them"
        raise domain(message, f"as in `fat_tree({k}, {half})`, with one core switch for every spine of a pod", "ratio")
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


def dragonfly_plus(p: int, leaves: int, spines: int, h: int, groups: int | None = None) -> Topology:
    """Return Dragonfly+: groups of leaves with p ranks each, all linked to the group's spines, which join the groups.

    Every spine has h links to other groups, all groups are linked, and each pair of groups equally often (Shpiner et
    al., Dragonfly+, 2017). There are ``groups``, by default as many as spines * h links reach, once each. The links of
    group g to the others, in ascending order, belong to its spines in turn, h each. Rank ``host[g, l, i]`` hangs from
    ``leaf[g, l]``; spines are ``spine[g, s]``.

    >>> net = dragonfly_plus(2, 2, 2, 1)
    >>> net.num_ranks, net.num_switches, net.diameter
    (12, 12, 5)
    """
    count = groups or spines * h + 1
    each, all_ = (spines * h // (count - 1) if count > 1 else 0), range(count)
    pairs = [(f"host[{g}, {s}, {i}]", f"leaf[{g}, {s}]") for g, s, i in product(all_, range(leaves), range(p))]
    hosts = [host for host, _ in pairs]
    switches = [f"leaf[{g}, {s}]" for g, s in product(all_, range(leaves))]
    switches += [f"spine[{g}, {s}]" for g, s in product(all_, range(spines))]
    pairs += [(f"leaf[{g}, {s}]", f"spine[{g}, {t}]") for g, s, t in product(all_, range(leaves), range(spines))]
    for g in all_:
        for other, i in product(all_[g + 1 :], range(each)):
            pairs += [(f"spine[{g}, {((other - 1) * each + i) // h}]", f"spine[{other}, {(g * each + i) // h}]")]
    return _built("dragonfly_plus", hosts, switches, pairs)


def dragonfly_plus_size(p: int, leaves: int, spines: int, h: int, groups: int | None = None) -> tuple[int, int]:
    across = _sizes.prod([spines, h])
    count = groups or across + 1
    if count > 1 and across % (count - 1):
        message = f"found {count} groups for {across} links out of each, needed every other group equally often"
        fitting = min((n + 1 for n in range(1, across + 1) if across % n == 0), key=lambda n: abs(n - count))
        raise domain(message, f"write `{fitting}`", "groups")
    nodes = _sizes.prod([count, leaves * p + leaves + spines])
    links = _sizes.prod([count, 2 * leaves * p + 2 * leaves * spines + (across if count > 1 else 0)])
    return min(nodes, _sizes.HUGE), min(links, _sizes.HUGE)


def hammingmesh(a: int, b: int, x: int, y: int, ports: int = 64) -> Topology:
    """Return HammingMesh: x * y boards, each a mesh of a * b ranks whose edges hang from switches for every line.

    Ranks are ``gpu[i, j]`` by their row i of a*x and column j of b*y in the whole machine. The west and east ends of
    a board's part of row i are linked to ``row[i]``, the north and south ends of its part of column j to ``column[j]``
    (Hoefer et al., HammingMesh, 2022). Where a line has more ends than a switch has ``ports``, it has a fat tree of two
    levels: leaves ``row[i, l]``, each with half its ports down, and as many spines ``row_spine[i, s]`` as it has up.
    Boards of one rank have two links to each of their lines.

    >>> net = hammingmesh(2, 2, 2, 2)
    >>> net.num_ranks, net.num_switches, net.node_bandwidth
    (16, 8, Fraction(4, 1))
    >>> hammingmesh(1, 1, 1, 3, 4).names[3:]
    ('row[0, 0]', 'row[0, 1]', 'row[0, 2]', 'row_spine[0, 0]', 'row_spine[0, 1]', 'column[0]', 'column[1]', 'column[2]')
    """
    rows, columns = a * x, b * y
    ranks = [f"gpu[{i}, {j}]" for i, j in product(range(rows), range(columns))]
    pairs: list[Pair] = []
    for i, j in product(range(rows), range(columns)):
        here, board_row, board_column = f"gpu[{i}, {j}]", i // a, j // b
        west, east = (_end("row", i, 2 * board_column + side, 2 * y, ports) for side in (0, 1))
        north, south = (_end("column", j, 2 * board_row + side, 2 * x, ports) for side in (0, 1))
        pairs += [(here, f"gpu[{i}, {j + 1}]" if (j + 1) % b else east)]
        pairs += [(here, f"gpu[{i + 1}, {j}]" if (i + 1) % a else south)]
        pairs += [(here, west)] * (j % b == 0) + [(here, north)] * (i % a == 0)
    lines = [("row", i, 2 * y) for i in range(rows)] + [("column", j, 2 * x) for j in range(columns)]
    switches = [name for line in lines for name in _switches(*line, ports)]
    return _built("hammingmesh", ranks, switches, [*pairs, *(pair for line in lines for pair in _trunk(*line, ports))])


def _end(kind: str, line: int, end: int, ends: int, ports: int) -> str:
    """Return the switch that an end of a line is linked to."""
    return f"{kind}[{line}]" if ends <= ports else f"{kind}[{line}, {end // (ports // 2)}]"


def _switches(kind: str, line: int, ends: int, ports: int) -> list[str]:
    """Return the switches of a line, leaves before spines."""
    if ends <= ports:
        return [f"{kind}[{line}]"]
    leaves, spines = range(-(-ends // (ports // 2))), range(ports // 2)
    return [f"{kind}[{line}, {leaf}]" for leaf in leaves] + [f"{kind}_spine[{line}, {s}]" for s in spines]


def _trunk(kind: str, line: int, ends: int, ports: int) -> list[Pair]:
    """Return the links between the switches of a line: every leaf to every spine."""
    names = _switches(kind, line, ends, ports)
    leaves = len(names) - ports // 2
    return list(product(names[:leaves], names[leaves:])) if len(names) > 1 else []


def hammingmesh_size(a: int, b: int, x: int, y: int, ports: int = 64) -> tuple[int, int]:
    half, most = ports // 2, 2 * max(x, y)
    if ports % 2:
        message = f"found switches of {ports} ports, needed an even number: half up, half down"
        raise domain(message, f"write `{ports + 1}`", "ports")
    if most > ports and most > ports * half:
        message = f"found lines with {most} ends, needed at most {ports * half} for two levels of switches of {ports}"
        raise domain(message, "with more `ports`, or fewer boards in a line")
    ranks = _sizes.prod([a, b, x, y])
    switches, trunks = 0, 0
    for lines, ends in ((a * x, 2 * y), (b * y, 2 * x)):
        leaves = -(-ends // half) if ends > ports else 0
        switches += lines * (leaves + half if leaves else 1)
        trunks += lines * leaves * half
    ends = _sizes.prod([a, x, y]) + _sizes.prod([b, x, y])  # boards' rows and columns: one link more than ranks in each
    return min(ranks + switches, _sizes.HUGE), 2 * min(2 * ranks + ends + trunks, _sizes.HUGE)
