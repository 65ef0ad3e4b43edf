"""A model of NCCL's connect phase: from the graph files of all nodes to the rings that NCCL makes of them.

Written after ncclTopoPreset and ncclTopoPostset (src/graph/connect.cc), the steps between them (src/init.cc,
initTransportsRank) and ncclBuildRings (src/graph/rings.cc) of NCCL 2.18 to 2.30:

* Every rank takes the graphs of its own file, and finds itself in every channel: the GPUs before and after it, and the
  first and the last of its node. What it does not find stays 0.
* Ranks with one first GPU on channel 0 are a node. Nodes are numbered in the order of their lowest ranks.
* All nodes use the least number of channels of any graph.
* If a graph has ``crossnic`` 2 and the number of channels is even, odd nodes exchange neighbouring channels.
* On each channel the last GPU of a node sends to the first of the next node. Then all channels are doubled.
* Every ring must return to its first rank, and contain all ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from collc.ir.frozen import frozen
from collc.ir.shown import counted

from .model import CHAIN, RING, Channel, Graph, GraphFile, Version

__all__ = ["ConnectError", "Connected", "connect"]


class ConnectError(Exception):
    """NCCL's communicator fails; the message says why."""


@frozen
class Connected:
    """What NCCL made of graph files, channel by channel, doubled.

    ``rings[c]`` are the ranks in the order of channel c, from the rank 0 on. ``nics[c]`` are, for each node, the NICs
    from which its first GPU receives and over which its last GPU sends. ``nodes`` are the nodes' ranks.
    """

    rings: tuple[tuple[int, ...], ...]
    nics: tuple[tuple[tuple[int | None, int | None], ...], ...]
    nodes: tuple[tuple[int, ...], ...]


@attrs.frozen
class _Presets:
    """What a rank found of itself in its file, by channel."""

    first: list[int]
    last: list[int]
    before: list[int]
    after: list[int]


def connect(files: Sequence[GraphFile], devices: Sequence[Mapping[int, int]], version: Version) -> Connected:
    """Return the rings of all ranks. ``files[n]`` is the file of node n, ``devices[n]`` its ranks by GPU.

    Raises ConnectError where NCCL fails, or reads what no file says.
    """
    graphs = [_graphs(file, node) for node, file in enumerate(files)]
    channels = min(graph.nchannels for both in graphs for graph in both)
    if channels > version.most_channels:
        raise ConnectError(f"{channels} channels overrun NCCL's arrays: at most {version.most_channels} are doubled")
    node_of = {rank: node for node, ranks in enumerate(devices) for rank in ranks.values()}
    ranks = range(len(node_of))
    orders = [[_order(one, devices[node], version) for one in graphs[node][0].channels] for node in range(len(files))]
    _require_chains(graphs, devices, version, channels)
    presets = [_preset(orders[node_of[rank]], rank, channels) for rank in ranks]
    nodes = _nodes(presets)
    _exchange(presets, [graphs[node_of[rank]][0].crossnic for rank in ranks], nodes, channels)
    rings = [_ring(channel, presets, nodes) for channel in range(channels)]
    nics = [_nics(channel, files, graphs, orders) for channel in range(channels)]
    return Connected(tuple(rings * 2), tuple(nics * 2), tuple(tuple(group) for group in nodes))


def _graphs(file: GraphFile, node: int) -> tuple[Graph, Graph]:
    """Return a node's graphs of rings and of chains; NCCL would search for a missing one."""
    found = file.graph(RING), file.graph(CHAIN)
    if found[0] is None or found[1] is None:
        missing = "rings (id 0)" if found[0] is None else "chains (id 1)"
        raise ConnectError(f"the file of node {node} has no graph of {missing}: NCCL searches for its own")
    for graph in (found[0], found[1]):
        if graph.nchannels != len(graph.channels):
            listed = counted(len(graph.channels), "channel")
            raise ConnectError(f"node {node}, graph {graph.id}: nchannels is {graph.nchannels}, the file has {listed}")
    return found[0], found[1]


def _order(channel: Channel, devices: Mapping[int, int], version: Version) -> list[int]:
    """Return the ranks of a channel in order, as a process of the node finds them."""
    named = channel.ranks if version.has_ranks and channel.ranks else (None,) * len(channel.gpus)
    for gpu, rank in zip(channel.gpus, named, strict=True):
        if rank is None and gpu not in devices:
            raise ConnectError(f"device {gpu} is not found")
    if len(channel.gpus) != len(devices):
        raise ConnectError(f"a channel lists {counted(len(channel.gpus), 'GPU')} of a node of {len(devices)}")
    return [devices[gpu] if rank is None else rank for gpu, rank in zip(channel.gpus, named, strict=True)]


def _require_chains(
    graphs: Sequence[tuple[Graph, Graph]], devices: Sequence[Mapping[int, int]], version: Version, channels: int
) -> None:
    """Raise ConnectError unless every chain has each rank of its node once: others cut the trees of NCCL apart."""
    for node, (_, chains) in enumerate(graphs):
        for number, channel in enumerate(chains.channels[:channels]):
            if sorted(_order(channel, devices[node], version)) != sorted(devices[node].values()):
                raise ConnectError(f"node {node}, channel {number}: the chain does not list every GPU once")


def _preset(orders: Sequence[list[int]], rank: int, channels: int) -> _Presets:
    found = _Presets([0] * channels, [0] * channels, [0] * channels, [0] * channels)
    for channel, order in enumerate(orders[:channels]):
        for place, other in enumerate(order):
            if other == rank:
                found.first[channel], found.last[channel] = order[0], order[-1]
                found.before[channel] = order[place - 1] if place else -1
                found.after[channel] = order[place + 1] if place + 1 < len(order) else -1
    return found


def _nodes(presets: Sequence[_Presets]) -> list[list[int]]:
    """Return the ranks of every node: those with one first GPU on channel 0."""
    groups: dict[int, list[int]] = {}
    for rank, found in enumerate(presets):
        groups.setdefault(found.first[0], []).append(rank)
    return list(groups.values())


def _exchange(
    presets: Sequence[_Presets], crossnics: Sequence[int], nodes: Sequence[Sequence[int]], channels: int
) -> None:
    if channels % 2:
        return
    for group in nodes[1::2]:
        for rank in group:
            if crossnics[rank] == 2:
                for values in (presets[rank].first, presets[rank].last, presets[rank].before, presets[rank].after):
                    values[:] = [values[channel ^ 1] for channel in range(channels)]


def _ring(channel: int, presets: Sequence[_Presets], nodes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return the ring of a channel from rank 0 on; raise ConnectError if it does not close, or misses a rank."""
    after = [found.after[channel] for found in presets]
    for number, group in enumerate(nodes):
        leaving = presets[group[0]].last[channel]
        if not 0 <= leaving < len(presets):
            raise ConnectError(f"ring {channel} of node {number} ends at GPU {leaving}, which no rank has")
        following = nodes[(number + 1) % len(nodes)]
        after[leaving] = presets[following[0]].first[channel]
    ring, current = list[int](), 0
    for _ in presets:
        ring.append(current)
        current = after[current]
        if not 0 <= current < len(presets):
            raise ConnectError(f"ring {channel} ends at rank {ring[-1]}")
    if current != 0:
        raise ConnectError(f"ring {channel} does not return to its first rank")
    missing = set(range(len(presets))) - set(ring)
    if missing:
        raise ConnectError(f"ring {channel} does not contain rank {min(missing)}")
    return tuple(ring)


def _nics(
    channel: int, files: Sequence[GraphFile], graphs: Sequence[tuple[Graph, Graph]], orders: Sequence[list[list[int]]]
) -> tuple[tuple[int | None, int | None], ...]:
    """Return the NICs of every node: a rank that is the first GPU uses the entry, also to send."""
    found = []
    for node in range(len(files)):
        one, order = graphs[node][0].channels[channel], orders[node][channel]
        found.append((one.entry, one.entry if order[-1] == order[0] else one.exit))
    return tuple(found)
