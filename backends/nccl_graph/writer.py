"""Graph files as NCCL's own dumps: one element a line, no declaration, no tab."""

from __future__ import annotations

from collections.abc import Iterator

from .model import Channel, Graph, GraphFile, Version

__all__ = ["write"]

_ATTRIBUTES = (
    "id", "pattern", "crossnic", "nchannels", "speedintra", "speedinter", "latencyinter", "typeintra", "typeinter",
    "samechannels",
)  # fmt: skip


def write(file: GraphFile, version: Version) -> str:
    """Return the text of a file for a version of NCCL."""
    return "".join(f"{line}\n" for line in _lines(file, version))


def _lines(file: GraphFile, version: Version) -> Iterator[str]:
    yield f'<graphs version="{file.version}">'
    for graph in file.graphs:
        yield from _graph(graph, version)
    yield "</graphs>"


def _graph(graph: Graph, version: Version) -> Iterator[str]:
    attributes = " ".join(f'{name}="{getattr(graph, name)}"' for name in _ATTRIBUTES)
    yield f"  <graph {attributes}>"
    for channel in graph.channels:
        yield "    <channel>"
        yield from _channel(channel, version)
        yield "    </channel>"
    yield "  </graph>"


def _channel(channel: Channel, version: Version) -> Iterator[str]:
    ranks = channel.ranks or (None,) * len(channel.gpus)
    if channel.entry is not None:
        yield f'      <net dev="{version.device(channel.entry)}"/>'
    for gpu, rank in zip(channel.gpus, ranks, strict=True):
        named = "" if rank is None else f' rank="{rank}"'
        yield f'      <gpu dev="{version.device(gpu)}"{named}/>'
    if channel.exit is not None:
        yield f'      <net dev="{version.device(channel.exit)}"/>'
