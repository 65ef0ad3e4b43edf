"""The logical torus of a topology: its sizes, and the links to neighbours where the network has them."""

from __future__ import annotations

import re
from math import prod

import numpy as np

from collc.ir.arrays import Array, distinct
from collc.ir.diagnostic import Subject, error
from collc.ir.frozen import frozen
from collc.ir.group import Translations
from collc.ir.topology import Topology

__all__ = ["Grid", "dimension", "grid", "logical_shape"]

_SHAPE = re.compile(r"[1-9]\d{0,8}([x,][1-9]\d{0,8})*")
_GRIDS = ("torus", "mesh", "hyperx", "twisted_torus")


def logical_shape(topology: Topology, given: str | None = None) -> tuple[int, ...]:
    """Return the sizes larger than 1 of the torus that the ranks are numbered as, last dimension fastest.

    ``given`` is the user's (``"8x8"``). Otherwise the topology's construction gives the sizes; a network that is not a
    grid has one dimension. Raises C0590 if the product of the sizes is not the number of ranks.
    """
    sizes = _built(topology) if given is None else _parsed(given)
    if given is not None and prod(sizes) != topology.num_ranks:
        raise error(
            "C0590",
            f"a torus of {given} has {prod(sizes)} ranks, `{topology.name}` has {topology.num_ranks}",
            hint=f"sizes must multiply to {topology.num_ranks}; leave `shape` out for {_usual_shape(topology)}",
            option="shape", about=(Subject.TOPOLOGY,),
        )  # fmt: skip
    return tuple(size for size in sizes if size > 1)


def dimension(topology: Topology, given: str | None, number: int) -> str:
    """Return the user's name of dimension ``number`` of the logical shape: sizes of 1 count too.

    >>> from collc.ir.topology import Topology
    >>> dimension(Topology("t", 6, [], []), "1x6", 0)
    'dimension 1 of 1x6'
    """
    sizes = _built(topology) if given is None else _parsed(given)
    longer = [i for i, size in enumerate(sizes) if size > 1]
    return f"dimension {longer[number]} of {'x'.join(map(str, sizes))}"


def _parsed(given: str) -> tuple[int, ...]:
    if not _SHAPE.fullmatch(given):
        sizes = "x".join(re.findall(r"\d+", given))
        hint = f'write "{sizes}"' if _SHAPE.fullmatch(sizes) else 'write the sizes with `x` between them, as in "8x8"'
        raise error("C0590", f"found `{given}`, needed the shape of a torus", hint=hint, option="shape")
    return tuple(int(size) for size in re.split("[x,]", given))


def _usual_shape(topology: Topology) -> str:
    return "x".join(map(str, _built(topology)))


def _built(topology: Topology) -> tuple[int, ...]:
    """Return the sizes from the topology's construction, if their product is its number of ranks."""
    if topology.num_ranks == 1:  # a product may have many factors of one rank
        return (1,)
    found = _sizes(topology)
    return found if prod(found) == topology.num_ranks else (topology.num_ranks,)


def _sizes(topology: Topology) -> tuple[int, ...]:
    origin = topology.origin
    if origin is None:
        known = isinstance(topology.symmetry, Translations)
        return topology.symmetry.shape if known else (topology.num_ranks,)  # type: ignore[union-attr]
    given = origin.arguments
    if origin.name in _GRIDS:
        return tuple(size for size in given if isinstance(size, int))
    match origin.name, given:
        case "hypercube", (int(n),):
            return (2,) * n
        case "hamming", (int(n), int(q)):
            return (q,) * n
        case "hammingmesh", (int(a), int(b), int(x), int(y)):
            return (a * x, b * y)
        case "product", _:
            return tuple(size for base in origin.bases for size in _built(base))
        case "power", (Topology() as base, int(n)):
            return _built(base) * n
    return (topology.num_ranks,)


@frozen(eq=False)
class Grid:
    """A torus or mesh with all its links: ``links[r, i, w, l]`` leads from rank r up (w = 0) or down in dimension i.

    ``l`` counts parallel links; in a dimension of size 2 with parallel links, up and down use different ones. If
    ``wraps[i]`` is False, dimension i has ends, and links beyond them are -1.
    """

    shape: tuple[int, ...]
    links: Array
    wraps: tuple[bool, ...]

    @property
    def lanes(self) -> int:
        """Parallel links between neighbours."""
        return int(self.links.shape[3])

    def is_all(self, topology: Topology) -> bool:
        """Return whether the topology has no other links, so that its shortest paths are the grid's."""
        joined = distinct(topology.src.astype(np.int64) * topology.num_nodes + topology.dst)
        first = self.links[..., 0]
        rank = np.arange(topology.num_ranks)[:, None, None]
        mine = distinct((rank * topology.num_nodes + topology.dst[np.maximum(first, 0)])[first >= 0])
        return len(joined) == len(mine)


def grid(topology: Topology, shape: tuple[int, ...]) -> Grid | None:
    """Return the grid of these sizes among the topology's links, or None if a link between neighbours is missing."""
    ranks = topology.num_ranks
    key = topology.src.astype(np.int64) * topology.num_nodes + topology.dst
    order = np.argsort(key, kind="stable")
    known = key[order]
    at, rank, found, wraps = np.stack(np.unravel_index(np.arange(ranks), shape), axis=1), np.arange(ranks), [], []
    for i, size in enumerate(shape):
        stride, both = prod(shape[i + 1 :]), []
        wrapped = True
        for direction in (1, -1):
            to = rank + ((at[:, i] + direction) % size - at[:, i]) * stride
            wanted = rank * topology.num_nodes + to
            first = np.searchsorted(known, wanted)
            count = np.searchsorted(known, wanted, "right") - first
            inner = (at[:, i] + direction >= 0) & (at[:, i] + direction < size)
            if (count[inner] == 0).any():
                return None
            wrapped &= bool((count > 0).all())
            both.append((first, count))
        wraps.append(wrapped)
        found.append(both)
    return Grid(shape, _lanes(order, shape, found), tuple(wraps))


def _lanes(order: Array, shape: tuple[int, ...], found: list[list[tuple[Array, Array]]]) -> Array:
    """Return link numbers of shape (ranks, dimensions, 2, lanes), as many lanes as all present pairs have links."""
    wide = [int(min(c[c > 0].min(initial=1 << 30) for _, c in both)) for both in found]
    lanes = min((max(w // 2, 1) if size == 2 else w for w, size in zip(wide, shape, strict=True)), default=1)
    ranks = prod(shape)
    links = np.full((ranks, len(shape), 2, lanes), -1, dtype=np.int64)
    for i, both in enumerate(found):
        for direction, (first, count) in enumerate(both):
            apart = shape[i] == 2 and wide[i] > 1  # both directions lead to the same rank: each has its own links
            for lane in range(lanes):
                pick = np.minimum(lane + direction * lanes * apart, count - 1)
                links[:, i, direction, lane] = np.where(count > 0, order[np.minimum(first + pick, len(order) - 1)], -1)
    return links
