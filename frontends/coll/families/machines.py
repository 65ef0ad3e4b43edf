"""Commercial machines: GPUs, their links inside a box, and one fabric between boxes. Latencies are 0."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations

import attrs

from collc.ir.topology import LinkClass, Topology

from . import cayley, grids
from ._sizes import domain

__all__ = ["dgx1_v100", "dgx_a100", "dgx_b200", "dgx_h100", "gb200_nvl72", "mi250", "mi300x", "tpu_v4"]

Link = tuple[int, int, LinkClass]

_GB = 10**9


def _link_class(gigabytes: int) -> LinkClass:
    return LinkClass(Fraction(gigabytes * _GB))


def _both(a: int, b: int, kind: LinkClass, count: int = 1) -> Iterable[Link]:
    for _ in range(count):
        yield a, b, kind
        yield b, a, kind


def _switched(
    name: str, boxes: int, rails: int | None, inside: int, between: int, per_box: int = 8, nvls: int = 0
) -> Topology:
    """Return boxes of GPUs, each with a switch; more than one box shares a fabric.

    With ``nvls`` the switches of the boxes multicast and reduce.

    The fabric is one switch with a link to every GPU, or ``rails`` switches that the GPUs' NICs are linked to in turn.
    """
    gpus, inner = per_box * boxes, _link_class(inside)
    links = [link for gpu in range(gpus) for link in _both(gpu, gpus + gpu // per_box, inner)]
    names = [f"gpu{place}" for place in _places(boxes, per_box)] + [f"nv[{b}]" for b in range(boxes)]
    found = _joined(name, names, gpus, links, boxes, rails or None, between)
    switches = tuple(range(gpus, gpus + boxes)) if nvls else ()
    return attrs.evolve(found, multicast=switches, reduces=switches)


def _joined(
    name: str, names: list[str], gpus: int, links: list[Link], boxes: int, rails: int | None, between: int
) -> Topology:
    """Return boxes with these nodes and links, and the fabric that more than one of them share."""
    rails, nics = (0, False) if boxes == 1 else (rails or 1, rails is not None)
    per_box, nic, outer = gpus // boxes, len(names), _link_class(between)
    fabric = nic + gpus * nics
    for gpu in range(gpus):
        if nics:
            links += [*_both(gpu, nic + gpu, outer), *_both(nic + gpu, fabric + gpu % per_box % rails, outer)]
        elif rails:
            links += _both(gpu, fabric, outer)
    names += [f"nic{place}" for place in _places(boxes, per_box) * nics]
    names += [f"ib[{r}]" if nics else "ib" for r in range(rails)]
    return Topology.from_links(name, gpus, links, len(names) - gpus, unit="B/s", node_names=names)


def _places(boxes: int, per_box: int) -> list[str]:
    return [f"[{b}, {g}]" for b in range(boxes) for g in range(per_box)]


def _switched_size(boxes: int, rails: int | None = None, per_box: int = 8) -> tuple[int, int]:
    _check_rails(rails, per_box)
    gpus = per_box * boxes
    if boxes == 1:
        return gpus + 1, 2 * gpus
    return (gpus + boxes + 1, 4 * gpus) if rails is None else (2 * gpus + boxes + rails, 6 * gpus)


def _nvls_size(boxes: int, rails: int | None = None, nvls: int = 0, per_box: int = 8) -> tuple[int, int]:
    if nvls > 1:
        message = f"found {nvls}, needed 1 for switches that multicast and reduce, or 0"
        raise domain(message, "write `1`", "nvls")
    return _switched_size(boxes, rails or None, per_box)


def _check_rails(rails: int | None, per_box: int) -> None:
    if rails is not None and rails > per_box:
        message = f"found {rails} rails, needed at most {per_box}, one for every GPU of a box"
        raise domain(message, f"write `{per_box}`", "rails")


def dgx_a100(boxes: int, rails: int | None = None) -> Topology:
    """Return boxes of 8 A100: 300 GB/s from each GPU to the box's NVSwitch, 25 GB/s to the fabric.

    The model of the ForestColl paper, section 6. Ranks are ``gpu[box, i]``, switches ``nv[box]`` and, for more than
    one box, ``ib``. With ``rails``, every GPU has a NIC of its own, the switch ``nic[box, i]``, and the fabric is
    switches ``ib[rail]``: NIC i of every box hangs from rail i mod rails, so that 2 are an even and an odd one.

    >>> dgx_a100(2).num_nodes, dgx_a100(2, 2).num_nodes, dgx_a100(2, 2).num_links
    (19, 36, 96)
    """
    return _switched("dgx_a100", boxes, rails, 300, 25)


dgx_a100_size = _switched_size


def dgx_h100(boxes: int, rails: int | None = None, nvls: int = 0) -> Topology:
    """Return boxes of 8 H100 as :func:`dgx_a100` does: 450 GB/s to the box's NVSwitch, 50 GB/s to the fabric.

    With ``nvls`` 1 the NVSwitches multicast and reduce (NVLink SHARP). ``rails`` is 0 for a fabric without NICs.

    >>> dgx_h100(2, 0, 1).multicast
    (16, 17)
    >>> dgx_h100(4, 8).names[-1], dgx_h100(4, 8).names[36]
    ('ib[7]', 'nic[0, 0]')
    """
    return _switched("dgx_h100", boxes, rails, 450, 50, nvls=nvls)


def dgx_b200(boxes: int, rails: int | None = None, nvls: int = 0) -> Topology:
    """Return boxes of 8 B200 as :func:`dgx_a100` does: 900 GB/s to the box's NVSwitch, 50 GB/s to the fabric.

    NVIDIA, DGX B200 datasheet: fifth-generation NVLink with 14.4 TB/s in all, which is 900 GB/s a GPU and direction,
    and a ConnectX-7 port of 400 Gb/s for every GPU.

    >>> dgx_b200(2).num_nodes
    19
    """
    return _switched("dgx_b200", boxes, rails, 900, 50, nvls=nvls)


dgx_b200_size = dgx_h100_size = _nvls_size


def gb200_nvl72(racks: int, rails: int | None = None, nvls: int = 0) -> Topology:
    """Return racks of 72 GB200 GPUs in one NVLink domain: 900 GB/s to the rack's NVSwitch, 50 GB/s to the fabric.

    NVIDIA, GB200 NVL72: 130 TB/s of NVLink for 72 GPUs, which is 900 GB/s a GPU and direction; 18 compute trays of 4
    GPUs, each GPU with a ConnectX-7 port of 400 Gb/s. Ranks are ``gpu[rack, i]``, tray i / 4, switches ``nv[rack]`` and
    those of :func:`dgx_a100` between racks.

    >>> gb200_nvl72(1).num_ranks, gb200_nvl72(2, 4).names[-1]
    (72, 'ib[3]')
    """
    return _switched("gb200_nvl72", racks, rails, 900, 50, 72, nvls)


def gb200_nvl72_size(racks: int, rails: int | None = None, nvls: int = 0) -> tuple[int, int]:
    return _nvls_size(racks, rails, nvls, 72)


def mi300x(boxes: int = 1, rails: int | None = None) -> Topology:
    """Return boxes of 8 MI300X, all linked to each other: 64 GB/s a pair and direction, 50 GB/s to the fabric.

    AMD, Instinct MI300X platform datasheet: seven Infinity Fabric links of 128 GB/s, both directions together, for
    every GPU. Between boxes it has a NIC of 400 Gb/s, as usual in clusters. Ranks are ``gpu[box, i]``, switches those
    of :func:`dgx_a100` between boxes.

    >>> mi300x().num_links, mi300x(2).num_nodes, mi300x().egress(0)
    (56, 17, Fraction(448000000000, 1))
    """
    inner = _link_class(64)
    pairs = [(8 * box + a, 8 * box + b) for box in range(boxes) for a, b in combinations(range(8), 2)]
    links = [link for a, b in pairs for link in _both(a, b, inner)]
    names = [f"gpu{place}" for place in _places(boxes, 8)]
    return _joined("mi300x", names, 8 * boxes, links, boxes, rails, 50)


def mi300x_size(boxes: int = 1, rails: int | None = None) -> tuple[int, int]:
    _check_rails(rails, 8)
    if boxes == 1:
        return 8, 56
    return (8 * boxes + 1, 72 * boxes) if rails is None else (16 * boxes + rails, 88 * boxes)


def tpu_v4(x: int, y: int, z: int, twist: int = 0) -> Topology:
    """Return a slice of TPU v4 chips: a 3D torus where all sizes are multiples of 4, otherwise a mesh.

    Every link has 50 GB/s each way; optical switches close the wrap-around links of whole cubes of 4 x 4 x 4 (Jouppi et
    al., TPU v4, ISCA 2023, sections 2 and 5). With ``twist`` 1 a slice of sizes k, k, 2k or k, 2k, 2k is
    :func:`twisted_torus`.

    >>> tpu_v4(2, 2, 4).num_links, tpu_v4(4, 4, 8).diameter, tpu_v4(4, 4, 8, 1).diameter
    (56, 8, 6)
    """
    sizes = (x, y, z)
    build = grids.twisted_torus if twist else cayley.torus if _wraps(sizes) else grids.mesh
    return attrs.evolve(build(*sizes), name="tpu_v4", classes=(_link_class(50),), unit="B/s")


def tpu_v4_size(x: int, y: int, z: int, twist: int = 0) -> tuple[int, int]:
    sizes = (x, y, z)
    if twist > 1:
        fits = int(_wraps(sizes) and set(sizes) == {min(sizes), 2 * min(sizes)})
        raise domain(f"found {twist}, needed 0 for a plain torus or 1 for a twisted one", f"write `{fits}`", "twist")
    if twist and not _wraps(sizes):
        found = ", ".join(map(str, sizes))
        message = f"found sizes {found}, needed multiples of 4 for wrap-around links to twist"
        raise domain(message, "as in `tpu_v4(4, 4, 8, 1)`")
    if twist:
        return grids.twisted_torus_size(*sizes)
    return cayley.torus_size(*sizes) if _wraps(sizes) else grids.mesh_size(*sizes)


def _wraps(sizes: tuple[int, ...]) -> bool:
    return all(size % 4 == 0 for size in sizes)


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
