"""The network of a page: its nodes with their places, its links with their classes, and the cut of the bound."""

from __future__ import annotations

from collc.ir.costs.cost import Cost
from collc.ir.costs.readable import bandwidth_text
from collc.ir.quantities import show_time
from collc.ir.topology import Topology

from ..pictures.cuts import cut_parts
from ..pictures.layout import Layout, layout_of
from .numbers import Json, decimal, integers

__all__ = ["cut_of", "network_of"]


def network_of(topology: Topology) -> dict[str, Json]:
    """Return the network as data of the page.

    A network that is not drawn (``shape`` is ``none``) has no columns of links. ``names`` is null if nodes have their
    numbers as names.
    """
    layout = layout_of(topology)
    found: dict[str, Json] = {
        "name": topology.name, "ranks": topology.num_ranks, "switches": topology.num_switches,
        "names": list(topology.node_names) if topology.node_names else None, "shape": layout.shape,
        "classes": [
            {
                "text": _class_text(topology, number), "bandwidth": decimal(kind.bandwidth),
                "latency": decimal(kind.latency),
            }
            for number, kind in enumerate(topology.classes)
        ],
        "links": topology.num_links,
    }  # fmt: skip
    if layout.shape != "none":
        found |= {name: integers(getattr(topology, name)) for name in ("src", "dst")}
        found["class"] = integers(topology.link_class)
        found |= _places(layout)
    return found


def _class_text(topology: Topology, number: int) -> str:
    kind = topology.classes[number]
    text = bandwidth_text(topology, kind.bandwidth)
    return f"{text}, {show_time(float(kind.latency))}" if kind.latency else text


def _places(layout: Layout) -> dict[str, Json]:
    if layout.shape == "round":
        return {}
    found: dict[str, Json] = {"x": list(layout.x), "y": list(layout.y), "cell": layout.cell, "wraps": layout.wraps}
    if layout.shape == "boxes":
        found |= {
            "boxes": [list(box) for box in layout.boxes], "kind": list(layout.kind), "folded": layout.folded,
        }  # fmt: skip
    return found


def cut_of(cost: Cost, topology: Topology) -> dict[str, Json] | None:
    """Return the cut of the tightest bound: its text, and the ``parts`` of nodes between which links are counted.

    ``parts`` is null where every rank is a part. None if the certificate is not a cut or a partition of nodes.
    """
    found = cut_parts(cost, topology)
    if found is None:
        return None
    parts: list[Json] | None = None if found.parts is None else [list(part) for part in found.parts]
    return {"text": found.text, "parts": parts}
