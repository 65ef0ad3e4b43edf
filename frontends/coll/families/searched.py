"""Small digraphs whose best schedules are not breadth first: Diamond and the modified de Bruijn graphs.

The direct-connect paper names them in Table 9 and draws two of them (Figures 19 and 20), but gives no links. These here
have the parameters that its tables print; `exact` finds their schedules.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort

import numpy as np

from collc.ir.diagnostic import error
from collc.ir.topology import Topology

from . import _sizes
from .digraphs import debruijn

__all__ = ["diamond", "modified_debruijn"]

#: the offset of rank i's second link on the ring of 8
_CHORDS = (2, 3, 5, 3, 4, 6, 3, 6)
_ATTEMPTS = 1000
#: orders of the words other than the lexicographically first: one letter is two bits of the number
_ORDERS = {(4, 2): [0, 5, 3, 12, 13, 7, 4, 1, 2, 8, 11, 14, 15, 6, 9, 10]}


def diamond() -> Topology:
    """Return Diamond: 8 ranks of degree 2, diameter 3, allgather in 3 steps at bandwidth cost 7/8, not breadth first.

    Among the 256 digraphs of degree 2 on 8 ranks that have diameter 3 and neither loops nor parallel links, this one
    and its transpose are the two with the all-to-all rate of Table 7 (3/20; its square's is 3/160). Like Table 9's it
    is not isomorphic to its transpose.

    >>> diamond().degree, diamond().diameter
    (2, 3)
    """
    ranks = np.arange(8)
    heads = np.stack([ranks + 1, ranks + _CHORDS], axis=1) % 8
    return Topology("diamond", 8, np.repeat(ranks, 2), heads.ravel())


def diamond_size() -> tuple[int, int]:
    return 8, 16


def modified_debruijn(d: int, n: int) -> Topology:
    """Return DBJMod(d,n): the de Bruijn digraph with one cycle in place of its self-loops and 2-cycles (Figure 20).

    All loops and 2-cycles, those of the d^2 words of period 1 or 2, are cut open and joined: every loop and one link of
    every 2-cycle go, and the ends are linked to one cycle, in the lexicographically first order that starts with word 0
    and repeats no link ((2,2) has no such order, so both links of the 2-cycle go). For (2,4) the graphs that keep a
    link of the 2-cycle are just those with the rate and the parameters of Tables 7 and 9. The first order of (4,2) has
    another rate; an order is taken whose line graphs have those of Table 7 (2.21e-2 and 4.10e-3). For (2,3), (2,4),
    (3,2) and (4,2) what Table 9 says holds: bandwidth-optimal in 4, 5, 3 and 3 steps, and only (2,3) isomorphic to its
    transpose. Raises C0330 for words of fewer than 2 letters, C0331 where no order is found.

    >>> modified_debruijn(2, 3).num_ranks, modified_debruijn(2, 4).diameter
    (8, 4)
    """
    plain = debruijn(d, n)
    size = plain.num_ranks
    tail, head = plain.src.astype(np.int64), plain.dst.astype(np.int64)
    turned = np.isin(tail * size + head, head * size + tail)
    kept = (tail * size + head)[~turned]
    other = dict(zip(tail[turned].tolist(), head[turned].tolist(), strict=True))
    taken = set(kept.tolist())
    cycle = _ORDERS.get((d, n)) or _cycle(other, taken, size) or _cycle({word: word for word in other}, taken, size)
    if cycle is None:
        raise error(
            "C0331",
            f"no cycle was found for modified_debruijn({d}, {n}) that repeats no link",
            hint="use `debruijn` or `generalized_kautz`",
        )
    links = np.sort(np.concatenate([kept, np.array(cycle) * size + np.roll(cycle, -1)]))
    return Topology("modified_debruijn", size, links // size, links % size)


def modified_debruijn_size(d: int, n: int) -> tuple[int, int]:
    if n < 2:
        raise error(
            "C0330",
            f"found words of {n} letter, needed at least 2: below, a rank is on several 2-cycles",
            hint="`complete` is the best graph of so few ranks",
        )
    nodes = _sizes.power(d, n)
    return nodes, _sizes.prod([nodes, d])


def _cycle(other: dict[int, int], taken: set[int], size: int) -> list[int] | None:
    """Return the lexicographically first order of the words, as a cycle from the first, without a link in ``taken``.

    ``other`` says what follows a word on its loop or 2-cycle, and so here where it is the first of the two. Link (a, b)
    is the number a * size + b. Returns None if the order is not found within a number of attempts.
    """
    words = sorted(other)
    cycle, above = [words[0]], [-1]
    free = [word for word in words if word not in (words[0], other[words[0]])]
    for _ in range(_ATTEMPTS + len(words)):
        last = other[cycle[-1]] * size
        if not free and last + cycle[0] not in taken:
            return [word for first in cycle for word in dict.fromkeys((first, other[first]))]
        first = _next(last, above[-1], free, taken)
        if first is None:
            if len(cycle) == 1:
                return None
            above.pop()
            for word in {cycle[-1], other[cycle.pop()]}:
                insort(free, word)
            continue
        above[-1] = first
        cycle.append(first)
        above.append(-1)
        for word in {first, other[first]}:
            del free[bisect_left(free, word)]
    return None


def _next(links: int, above: int, free: list[int], taken: set[int]) -> int | None:
    """Return the first free word above whose link is not taken, if any; a word's links are ``links`` plus the other."""
    places = range(bisect_right(free, above), len(free))
    return next((free[k] for k in places if links + free[k] not in taken), None)
