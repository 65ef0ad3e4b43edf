"""Peers of an exchange along one dimension, substep by substep: Swing, recursive doubling, powers of three.

All are functions of the coordinate in that dimension, never of the rank: on a torus whose dimensions are not powers of
two, the parity of the rank does not give pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from collc.ir.arrays import Array

from .lines import Line, tree_line, with_folds, with_guest

__all__ = ["Mirror", "doubling_line", "doubling_peers", "folded", "rho", "swing_line", "swing_peers", "thirds_peers"]

#: peers of the second half of the data: ``same``, ``neg`` (distances negated), or ``reflect`` (coordinates -a)
Mirror = str


def rho(substep: int) -> int:
    """Return the signed distance of Swing's peer in a substep: 1, -1, 3, -5, 11, ..

    >>> [rho(k) for k in range(7)]
    [1, -1, 3, -5, 11, -21, 43]
    """
    reach: int = (1 - (-2) ** (substep + 1)) // 3
    return reach


def swing_peers(size: int, mirrored: bool = False) -> list[Array]:
    """Return the peers of every coordinate of an even dimension, ceil(log2(size)) substeps."""
    at = np.arange(size)
    sign = np.where((at % 2 == 0) != mirrored, 1, -1)
    return [(at + sign * rho(k)) % size for k in range((size - 1).bit_length())]


def doubling_peers(size: int, mirror: Mirror = "same") -> list[Array]:
    """Return the peers of recursive doubling on a power of two: distances 1, 2, 4, ..

    ``neg`` negates the distances; ``reflect`` is recursive doubling of the coordinates -a, counted from the other side
    of 0. Neither pairs the same coordinates as plain recursive doubling.
    """
    at, steps = np.arange(size), (size - 1).bit_length()
    plain = [at ^ 1 << k for k in range(steps)]
    if mirror == "neg":
        return [(2 * at - peer) % size for peer in plain]
    return [-peer[-at % size] % size for peer in plain] if mirror == "reflect" else plain


def thirds_peers(size: int) -> list[Array]:
    """Return two peers a substep, 3^k either way: shape (size, 2)."""
    at, found, reach = np.arange(size), [], 1
    while reach < size:
        found.append(np.stack([(at + reach) % size, (at - reach) % size], axis=1))
        reach *= 3
    return found


def folded(size: int) -> tuple[Array, Array, Array]:
    """Return (core, guests, hosts): the largest power of two of coordinates, and pairs of neighbours that fold."""
    core = 1 << (size.bit_length() - 1)
    guests = np.arange(size - core) * 2
    return np.setdiff1d(np.arange(size), guests), guests, guests + 1


@cache
def swing_line(size: int, mirrored: bool, reparent: bool = False) -> Line:
    """Return Swing's line of any size of at least 2; an odd size's last coordinate is the guest of the others."""
    if size % 2:
        return with_guest(swing_line(size - 1, mirrored, reparent))
    peers = swing_peers(size, mirrored)
    return _reparented(peers) if reparent else tree_line(peers)


@cache
def doubling_line(size: int, mirror: Mirror = "same") -> Line:
    """Return the line of recursive doubling; sizes that are not powers of two fold."""
    if size & size - 1:
        core, guests, hosts = folded(size)
        return with_folds(doubling_line(len(core), mirror), core, guests, hosts)
    return tree_line(doubling_peers(size, mirror))


# ---- leaves that send earlier


def _reparented(peers: Sequence[Array]) -> Line:
    """Return the line in which leaves send as early as their peers can forward: the last, long substeps carry less.

    Shard 0's tree is improved; an even shard's tree is a rotation of it, an odd shard's a reflection, since Swing's
    peers have these symmetries.
    """
    line = tree_line(peers)
    size, steps = line.size, line.substeps
    when = line.when[:, 0].copy()
    parent = line.to[:, 0].copy()
    changed = True
    while changed:
        changed = False
        for a in range(1, size):
            below = when[parent == a]
            ready = int(below.max()) + 1 if len(below) else 0
            for k in range(ready, int(when[a])):
                if when[peers[k][a]] > k:
                    when[a], parent[a], changed = k, peers[k][a], True
                    break
    at = np.arange(size)
    offset = np.where(at[None, :] % 2 == 0, at[:, None] - at[None, :], at[None, :] - at[:, None]) % size
    table = when[offset]
    to = np.stack([*peers, at])[table, at[:, None]]
    return Line(steps, table, np.where(table == steps, -1, to))
