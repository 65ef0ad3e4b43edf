"""Read the body of a one-sided program, line by line."""

from __future__ import annotations

from typing import Any

import attrs

from ..collective import Collective
from ..one_sided.opcodes import WORDS, Op
from ..one_sided.program import NO_CHANNEL, Channel, Item, OneSided, Operation, Transport
from ..one_sided.text import BUFFERS, FLAGS, TRANSPORTS
from ..program import Buffer
from .reader import Line, Reader
from .words import MAX_NODES

__all__ = ["read_one_sided"]

#: a line's first and last (exclusive) character
_Place = tuple[int, int]

_FLAG_WORDS = tuple(name.replace("_", "-") for name in FLAGS)
_OPS = {word: Op(number) for number, word in enumerate(WORDS)}
_BUFFERS = {word: Buffer(number) for number, word in enumerate(BUFFERS)}
_TRANSPORTS = {word: Transport(number) for number, word in enumerate(TRANSPORTS)}
_SEMAPHORES = (Op.SEM_ACQUIRE, Op.SEM_RELEASE)


@attrs.define
class _Body:
    """What was read so far, and for each table of the program the places of its rows."""

    reader: Reader
    channels: list[Channel] = attrs.field(factory=list)
    semaphores: list[tuple[int, int]] = attrs.field(factory=list)
    loops: list[tuple[int, int]] = attrs.field(factory=list)
    sizes: list[tuple[int, int, int]] = attrs.field(factory=list)
    blocks: list[tuple[int, list[Operation]]] = attrs.field(factory=list)
    places: dict[str, list[_Place]] = attrs.field(factory=dict)
    first_channel: int = 0
    first_semaphore: int = 0

    def place(self, table: str, line: Line, count: int = 1) -> None:
        self.places.setdefault(table, []).extend([(line.place, line.end)] * count)


def read_one_sided(reader: Reader, collective: Collective, name: str) -> tuple[OneSided, dict[str, list[_Place]]]:
    """Return the program whose body follows, and the places of the rows of its tables; raises C0802, C0803, C0805."""
    body = _Body(reader)
    scheduler, chunks = reader.bare("scheduler"), reader.integer("chunks")
    threads, alignment = reader.integer("threads"), reader.integer("alignment")
    settings: dict[str, Any] = dict.fromkeys(FLAGS, False)  # Any: yes-no settings, and the numbers above
    if reader.at("with"):
        line = reader.value("with")
        while line.kind != "end":
            word = line.word(*_FLAG_WORDS)
            settings[word.replace("-", "_")] = True
    while reader.at("loop"):
        _loop(body)
    while reader.at("rank"):
        _rank(body)
    reader.close("`rank` or `}`")
    program = OneSided.build(
        collective, chunks, body.sizes, body.channels, body.blocks, semaphores=body.semaphores, loops=body.loops,
        threads=threads, alignment=alignment, name=name, scheduler=scheduler, **settings,
    )  # fmt: skip
    return program, body.places


def _loop(body: _Body) -> None:
    line = body.reader.line("`loop`")
    body.place("loops", line)
    line.word("loop")
    line.word("unit")
    unit = line.integer()
    line.word("chunks")
    body.loops.append((unit, line.integer()))
    line.done()


def _numbered(line: Line, word: str, number: int) -> None:
    """Read ``WORD NUMBER``, which counts from 0."""
    line.word(word)
    if line.kind == "number" and line.found != str(number):
        raise line.expected(f"{word} {number}: {word}s count from 0 in order")
    line.integer(MAX_NODES)


def _rank(body: _Body) -> None:
    reader, rank = body.reader, len(body.sizes)
    line = reader.line("`rank`")
    body.place("ranks", line)
    _numbered(line, "rank", rank)
    size = []
    for word in BUFFERS:
        line.word(word)
        size.append(line.integer())
    body.sizes.append((size[0], size[1], size[2]))
    reader.open(line)
    body.first_channel, body.first_semaphore = len(body.channels), len(body.semaphores)
    while reader.at("channel"):
        _channel(body, rank)
    while reader.at("semaphore"):
        line = reader.line("`semaphore`")
        body.place("semaphores", line)
        line.word("semaphore")
        body.semaphores.append((rank, line.integer()))
        line.done()
    number = 0
    while reader.at("block"):
        _block(body, rank, number)
        number += 1
    reader.close("`block` or `}`" if number else "`channel`, `semaphore`, `block` or `}`")


def _channel(body: _Body, rank: int) -> None:
    line = body.reader.line("`channel`")
    body.place("channels", line)
    line.word("channel")
    transport = _TRANSPORTS[line.word(*TRANSPORTS)]
    if transport is Transport.SWITCH:
        buffer = _BUFFERS[line.word(*BUFFERS)]
        line.word("ranks")
        body.channels.append(Channel(rank, -1, transport, buffer, line.integers(MAX_NODES)))
    else:
        line.word("peer")
        body.channels.append(Channel(rank, line.integer(MAX_NODES), transport))
    line.done()


def _block(body: _Body, rank: int, number: int) -> None:
    line = body.reader.line("`block`")
    body.place("blocks", line)
    _numbered(line, "block", number)
    body.reader.open(line)
    found: list[Operation] = []
    while True:
        line = body.reader.line("an operation or `}`")
        if line.found == "}":
            line.word("}")
            line.done()
            break
        body.place("operations", line)
        place = line.place, line.end
        operation = _operation(line, rank, body.first_channel, body.first_semaphore)
        body.places.setdefault("items", []).extend([place] * (len(operation.src) + len(operation.dst)))
        found.append(operation)
    body.blocks.append((rank, found))


def _operation(line: Line, rank: int, first_channel: int, first_semaphore: int) -> Operation:
    if line.found not in _OPS:
        raise line.expected("an operation or `}`")
    op, transport = _OPS[line.word(line.found)], Transport.LOCAL
    if line.found in _TRANSPORTS and not (line.found == "switch" and op is not Op.BARRIER and _before_number(line)):
        transport = _TRANSPORTS[line.word(*TRANSPORTS)]
    number = blocks = 0
    if op is Op.BARRIER:
        number = line.integer()
        line.word("blocks")
        blocks = line.integer()
    links: tuple[int, ...] = ()
    if line.at("on"):
        line.word("on")
        first = first_semaphore if op in _SEMAPHORES else first_channel
        links = tuple(first + link for link in line.integers(MAX_NODES))
    src = _items(line, rank, first_channel)
    dst: tuple[Item, ...] = ()
    if line.found == "->":
        line.word("->")
        dst = _items(line, rank, first_channel)
    share, shares, loop = 0, 1, -1
    if line.at("share"):
        line.word("share")
        share = line.integer()
        line.word("of")
        shares = line.integer()
    if line.at("loop"):
        line.word("loop")
        loop = line.integer()
    line.done()
    return Operation(op, transport, links, src, dst, share, shares, number, blocks, loop)


def _before_number(line: Line) -> bool:
    """Return whether a number follows: `switch 2` begins an item, and `switch` alone is a transport."""
    rest = line.text.text[line.pos : line.end].lstrip()
    return rest[:1].isdigit()


def _items(line: Line, rank: int, first_channel: int) -> tuple[Item, ...]:
    found = []
    while line.found in _BUFFERS or line.at("rank") or line.at("switch"):
        found.append(_item(line, rank, first_channel))
    return tuple(found)


def _item(line: Line, rank: int, first_channel: int) -> Item:
    owner, channel = rank, NO_CHANNEL
    if line.at("switch"):
        line.word("switch")
        channel = first_channel + line.integer(MAX_NODES)
    elif line.at("rank"):
        line.word("rank")
        owner = line.integer(MAX_NODES)
    buffer = _BUFFERS[line.word(*BUFFERS)]
    offset = line.integer()
    line.word("count")
    return Item(owner, buffer, offset, line.integer(), channel)
