"""Node-link JSON: what ``networkx.node_link_data`` of networkx 3.6 returns for the topology's graph, a row a line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from .values import plain, powers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collc.ir.topology import Topology

__all__ = ["write"]


def write(topology: Topology) -> str:
    """Return the JSON; ``networkx.node_link_graph`` and ``Topology.from_networkx`` read the same topology from it.

    Bandwidths and latencies are integers, or texts such as ``"1/3"`` if they are no integers below 2^53.
    """
    times = {"gamma": topology.gamma, "epsilon": topology.epsilon}
    about = {"name": topology.name, "unit": topology.unit, **{key: plain(time) for key, time in times.items() if time}}
    lines = [
        '{"directed": true, "multigraph": true,',
        f'"graph": {_row(about)},',
        '"nodes": [',
        ",\n".join(_nodes(topology)),
        "],",
        '"edges": [',
        ",\n".join(_edges(topology)),
        "]",
        "}",
    ]
    return "\n".join(line for line in lines if line) + "\n"


def _row(values: dict[str, int | str]) -> str:
    return json.dumps(values)


def _nodes(topology: Topology) -> Iterator[str]:
    for node, name in enumerate(topology.names):
        kind = "rank" if node < topology.num_ranks else "switch"
        yield _row({"name": name, "kind": kind, **powers(topology, node), "id": node})


def _edges(topology: Topology) -> Iterator[str]:
    kinds = [(plain(kind.bandwidth), plain(kind.latency)) for kind in topology.classes]
    ends = zip(topology.src.tolist(), topology.dst.tolist(), topology.link_class.tolist(), strict=True)
    for link, (src, dst, number) in enumerate(ends):
        bandwidth, latency = kinds[number]
        yield _row({"bandwidth": bandwidth, "latency": latency, "source": src, "target": dst, "key": link})
