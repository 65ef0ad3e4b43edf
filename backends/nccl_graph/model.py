"""What a graph file of NCCL contains: graphs, their channels, and on a channel the NICs and GPUs of a node in order."""

from __future__ import annotations

from collc.ir.frozen import frozen

__all__ = ["CHAIN", "CHAIN_PATTERN", "RING", "RING_PATTERN", "TYPES", "Channel", "Graph", "GraphFile", "Version"]

#: the graphs that collc writes, by id, and their patterns
RING, CHAIN = 0, 1
RING_PATTERN, CHAIN_PATTERN = 4, 3

#: kinds of paths, from near to far, as all versions name them
TYPES = ("LOC", "NVL", "NVB", "PIX", "PXB", "PXN", "PHB", "SYS")


@frozen
class Version:
    """A version of NCCL, and what depends on it.

    >>> Version(2, 18).most_channels, Version(2, 30).most_channels
    (16, 32)
    """

    major: int
    minor: int

    @property
    def hexadecimal(self) -> bool:
        """Whether devices are read as hexadecimal numbers, with or without 0x."""
        return (self.major, self.minor) >= (2, 22)

    @property
    def has_ranks(self) -> bool:
        """Whether a GPU may name its rank."""
        return (self.major, self.minor) >= (2, 30)

    @property
    def most_channels(self) -> int:
        """The most channels of a file: NCCL doubles them, in arrays of 32 until 2.22, and of 64 from 2.25 on."""
        return 32 if (self.major, self.minor) >= (2, 25) else 16

    def device(self, number: int) -> str:
        """Return a device as this version writes it.

        >>> Version(2, 21).device(12), Version(2, 22).device(12), Version(2, 22).device(0)
        ('12', '0xc', '0')
        """
        return f"{number:#x}" if self.hexadecimal and number else str(number)


@frozen
class Channel:
    """A channel of a node: the NIC by which its ring enters, the GPUs in order, the NIC by which it leaves.

    NICs and GPUs are devices of the node; ``ranks`` are the GPUs' ranks, if the file names them.
    """

    entry: int | None
    gpus: tuple[int, ...]
    exit: int | None
    ranks: tuple[int | None, ...] = ()


@frozen
class Graph:
    """A graph: its attributes as in the file, and its channels. Speeds are texts in GB/s of a channel."""

    id: int
    pattern: int
    crossnic: int
    nchannels: int
    speedintra: str
    speedinter: str
    latencyinter: str
    typeintra: str
    typeinter: str
    samechannels: int
    channels: tuple[Channel, ...]


@frozen
class GraphFile:
    """The graphs of one file."""

    version: int
    graphs: tuple[Graph, ...]

    def graph(self, number: int) -> Graph | None:
        """Return the graph of an id that NCCL takes: the last of several; None if it has no channels."""
        found = [one for one in self.graphs if one.id == number]
        return found[-1] if found and found[-1].nchannels > 0 else None
