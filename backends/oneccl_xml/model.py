"""The elements of an oneCCL-XML file; ``oneccl.xsd`` defines their meaning."""

from __future__ import annotations

import attrs

from collc.ir.collective import Collective
from collc.ir.program import Buffer

__all__ = [
    "DTYPES",
    "OPS",
    "ROOT_TAG",
    "Document",
    "End",
    "Local",
    "Message",
    "Place",
    "Rank",
    "Segment",
    "Step",
    "Thread",
    "is_whole",
]

ROOT_TAG = "oneccl"
#: collectives with the count of the whole vector; the others count one block
_WHOLE = frozenset({"allreduce", "broadcast", "reduce"})
#: ccl::datatype and ccl::reduction, by the names of their values
DTYPES = (
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
    "float16", "bfloat16", "float32", "float64",
)  # fmt: skip
OPS = ("sum", "prod", "min", "max")

#: a place of data: a buffer and an offset in chunks
Place = tuple[Buffer, int]


def is_whole(collective: Collective) -> bool:
    """Return whether the count of a call is that of the whole vector, not of one block."""
    return collective.kind in _WHOLE


@attrs.frozen
class Message:
    """One send or receive of ``count`` chunks; the first is ``chunk`` of the vector."""

    sends: bool
    peer: int
    channel: int
    place: Place
    chunk: int
    count: int
    line: int = attrs.field(default=0, eq=False)


@attrs.frozen
class Local:
    """``dst <- src``, or with a second operand ``dst <- src op second``."""

    src: Place
    dst: Place
    chunk: int
    count: int
    second: Place | None = None
    line: int = attrs.field(default=0, eq=False)


@attrs.frozen
class Step:
    """A step waits for ``syncs`` (thread, step), then does all messages at once, then ``locals`` in order."""

    syncs: tuple[tuple[int, int], ...] = ()
    messages: tuple[Message, ...] = ()
    locals: tuple[Local, ...] = ()
    line: int = attrs.field(default=0, eq=False)


@attrs.frozen
class End:
    """The end of a connection that a thread owns."""

    peer: int
    channel: int
    line: int = attrs.field(default=0, eq=False)


@attrs.frozen
class Thread:
    """Steps in sequence, and the ends of connections that only this thread uses."""

    outs: tuple[End, ...]
    ins: tuple[End, ...]
    steps: tuple[Step, ...]
    line: int = attrs.field(default=0, eq=False)


@attrs.frozen
class Segment:
    """``count`` chunks of scratch: those from ``chunk`` on. If ``chunk`` is None, it holds any run of chunks."""

    chunk: int | None
    count: int
    line: int = attrs.field(default=0, eq=False)


@attrs.frozen
class Rank:
    """The work of one rank. ``input`` and ``output`` are the chunks in the buffers of a call."""

    input: int
    output: int
    segments: tuple[Segment, ...]
    threads: tuple[Thread, ...]
    line: int = attrs.field(default=0, eq=False)


@attrs.frozen
class Document:
    """A file. Ranks, threads and steps are numbered by position; ``chunks`` are those of a call's count."""

    name: str
    collective: Collective
    channels: int
    chunks: int
    inplace: bool
    outofplace: bool
    ranks: tuple[Rank, ...]
    ops: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = DTYPES
    min_bytes: int = 0
    max_bytes: int | None = None
    comments: tuple[str, ...] = attrs.field(default=(), eq=False)
    line: int = attrs.field(default=0, eq=False)
