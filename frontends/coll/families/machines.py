"""Commercial machines: GPUs, their links inside a box, and one fabric between boxes. Latencies are 0."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from collc.ir.topology import LinkClass, Topology

from ._sizes import domain

__all__ = ["dgx1_v100", "dgx_a100", "dgx_h100", "mi250"]

Link = tuple[int, int, LinkClass]

_GB = 10**9


def _link_class(gigabytes: int) -> LinkClass:
    return LinkClass(Fraction(gigabytes * _GB))


def _both(a: int, b: int, kind: LinkClass, count: int = 1) -> Iterable[Link]:
    for _ in range(count):
        yield a, b, kind
        yield b, a, kind


def _switched(name: str, boxes: int, rails: int | None, inside: int, between: int) -> Topology:
    """Return boxes of 8 GPUs, each with a switch; more than one box shares a fabric.

    The fabric is one switch with a link to every GPU, or ``rails`` switches that the GPUs' NICs are linked to in turn.
    """
    gpus, inner, outer = 8 * boxes, _link_class(inside), _link_class(between)
    rails, nics = (0, False) if boxes == 1 else (rails or 1, rails is not None)
    nic, fabric = gpus + boxes, gpus + boxes + gpus * nics
    links: list[Link] = []
    for gpu in range(gpus):
        links += _both(gpu, gpus + gpu // 8, inner)
        if nics:
            links += [*_both(gpu, nic + gpu, outer), *_both(nic + gpu, fabric + gpu % 8 % rails, outer)]
        elif rails:
            links += _both(gpu, fabric, outer)
    places = [f"[{b}, {g}]" for b in range(boxes) for g in range(8)]
    names = [f"gpu{place}" for place in places] + [f"nv[{b}]" for b in range(boxes)]
    names += [f"nic{place}" for place in places * nics] + [f"ib[{r}]" if nics else "ib" for r in range(rails)]
    return Topology.from_links(name, gpus, links, len(names) - gpus, unit="B/s", node_names=names)


def _switched_size(boxes: int, rails: int | None = None) -> tuple[int, int]:
    if rails is not None and rails > 8:
        raise domain(f"found {rails} rails, needed at most 8, one for every GPU of a box")
    if boxes == 1:
        return 9, 16
    return (9 * boxes + 1, 32 * boxes) if rails is None else (17 * boxes + rails, 48 * boxes)


def dgx_a100(boxes: int, rails: int | None = None) -> Topology:
    """Return boxes of 8 A100: 300 GB/s from each GPU to the box's NVSwitch, 25 GB/s to the fabric.

    The model of the ForestColl paper, section 6. Ranks are ``gpu[box, i]``, switches ``nv[box]`` and, for more than
    one box, ``ib``. With ``rails``, every GPU has a NIC of its own, the switch ``nic[box, i]``, and the fabric is
    switches ``ib[rail]``: NIC i of every box hangs from rail i mod rails, so that 2 are an even and an odd one.

    >>> dgx_a100(2).num_nodes, dgx_a100(2, 2).num_nodes, dgx_a100(2, 2).num_links
    (19, 36, 96)
    """
    return _switched("dgx_a100", boxes, rails, 300, 25)


dgx_a100_size = dgx_h100_size = _switched_size


def dgx_h100(boxes: int, rails: int | None = None) -> Topology:
    """Return boxes of 8 H100 as :func:`dgx_a100` does: 450 GB/s to the box's NVSwitch, 50 GB/s to the fabric.

    >>> dgx_h100(4, 8).names[-1], dgx_h100(4, 8).names[36]
    ('ib[7]', 'nic[0, 0]')
    """
    return _switched("dgx_h100", boxes, rails, 450, 50)


#: pairs of dies of one MI250 box by the number of 50 GB/s lanes between them
_MI250 = {
    4: "0-1 2-3 4-5 6-7 8-9 10-11 12-13 14-15",
    2: "0-4 3-7 8-12 11-15",
    1: "0-8 1-5 1-9 1-10 2-6 2-9 2-10 3-11 4-6 5-6 5-7 9-13 10-14 12-14 13-14 13-15",
}
#: pairs of V100 of one DGX-1 by the number of 25 GB/s links between them
_V100 = {2: "0-3 0-4 1-2 1-5 2-3 4-7 5-6 6-7", 1: "0-1 0-2 1-3 2-6 3-7 4-5 4-6 5-7"}


def _pairs(table: dict[int, str]) -> list[tuple[int, int, int]]:
    return [(*map(int, pair.split("-")), count) for count, text in table.items() for pair in text.split()]  # type: ignore[misc]


def mi250(boxes: int) -> Topology:
    """Return boxes of 16 MI250 dies: one link a pair, of as many times 50 GB/s as it has lanes, 350 GB/s a die.

    More than one box shares a fabric of 16 GB/s a die (ForestColl, section 6). Ranks are ``gpu[box, i]``.
    """
    fabric, gpus = boxes > 1, 16 * boxes
    links: list[Link] = []
    inner, outer = {lanes: _link_class(50 * lanes) for lanes in _MI250}, _link_class(16)
    for box in range(boxes):
        for a, b, lanes in _pairs(_MI250):
            links += _both(16 * box + a, 16 * box + b, inner[lanes])
    for gpu in range(gpus if fabric else 0):
        links += _both(gpu, gpus, outer)
    names = [f"gpu[{b}, {g}]" for b in range(boxes) for g in range(16)] + ["ib"] * fabric
    return Topology.from_links("mi250", gpus, links, int(fabric), unit="B/s", node_names=names)


def mi250_size(boxes: int) -> tuple[int, int]:
    fabric = boxes > 1
    return 16 * boxes + fabric, boxes * (56 + 32 * fabric)


def dgx1_v100() -> Topology:
    """Return the 8 V100 of a DGX-1: 6 links of 25 GB/s a GPU, parallel where a pair has two. Ranks are ``gpu[i]``."""
    links = [link for a, b, count in _pairs(_V100) for link in _both(a, b, _link_class(25), count)]
    names = [f"gpu[{g}]" for g in range(8)]
    return Topology.from_links("dgx1_v100", 8, links, unit="B/s", node_names=names)


def dgx1_v100_size() -> tuple[int, int]:
    return 8, 48
