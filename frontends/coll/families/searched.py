"""Small digraphs whose best schedules are not breadth first: Diamond and the modified de Bruijn graphs.

The direct-connect paper names them in Table 9 and draws two of them (Figures 19 and 20), but gives no links. These here
have the parameters that its tables print; `exact` finds their schedules.
"""

from __future__ import annotations

import numpy as np

from collc.ir.diagnostic import error
from collc.ir.topology import Topology

from . import _sizes
from .digraphs import debruijn

__all__ = ["diamond", "modified_debruijn"]

#: how far rank i's second link goes round the ring of 8
_CHORDS = (2, 3, 5, 3, 4, 6, 3, 6)


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

    The d^2 words on loops and 2-cycles (those of period 1 or 2) each lose one link out and one in; the cycle through
    them gives both back. It takes them in the lexicographically first order that starts with word 0 and repeats no
    link. For (2,3), (2,4), (3,2) and (4,2) what Table 9 says holds: bandwidth-optimal in 4, 5, 3 and 3 steps, and only
    (2,3) isomorphic to its transpose. Raises C0330 for words of fewer than 2 letters.

    >>> modified_debruijn(2, 3).num_ranks, modified_debruijn(2, 4).diameter
    (8, 4)
    """
    plain = debruijn(d, n)
    links = list(zip(plain.src.tolist(), plain.dst.tolist(), strict=True))
    present = set(links)
    kept = [(a, b) for a, b in links if a != b and (b, a) not in present]
    cycle = _cycle(sorted({a for a, b in links if (b, a) in present}), set(kept))
    links = sorted([*kept, *zip(cycle, [*cycle[1:], cycle[0]], strict=True)])
    return Topology("modified_debruijn", plain.num_ranks, [a for a, _ in links], [b for _, b in links])


def modified_debruijn_size(d: int, n: int) -> tuple[int, int]:
    if n < 2:
        raise error(
            "C0330",
            f"found words of {n} letter, needed at least 2: below, a rank is on several 2-cycles",
            hint="`complete` is the best graph of so few ranks",
        )
    nodes = _sizes.power(d, n)
    return nodes, _sizes.prod([nodes, d])


def _cycle(words: list[int], taken: set[tuple[int, int]]) -> list[int]:
    """Return the lexicographically first order of the words, as a cycle from the first, without a link in ``taken``."""
    cycle, free = [words[0]], dict.fromkeys(words[1:])
    choices = [_next(cycle[-1], free, taken)]
    while choices:
        word = next(choices[-1], None)
        if word is None:
            choices.pop()
            free = dict.fromkeys(sorted([*free, cycle.pop()]))
            continue
        del free[word]
        cycle.append(word)
        if not free and (word, cycle[0]) not in taken:
            return cycle
        choices.append(_next(word, free, taken))
    raise AssertionError("a cycle through the words exists")


def _next(word: int, free: dict[int, None], taken: set[tuple[int, int]]):
    """Yield the free words, ascending, that may follow."""
    return iter([other for other in free if (word, other) not in taken])
