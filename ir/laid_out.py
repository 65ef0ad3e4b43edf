"""Lay the program of a template out on all ranks: each message, a set of chunks, becomes runs of adjacent chunks.

A message moves the images of its chunks, which lie in other places on every rank. A run is adjacent at both ends of the
message, so sender and receiver cut it alike. The chunks of a message are sent in the order of the sender's places: that
order is free, because no instruction waits for a part of a message.
"""

from __future__ import annotations

import attrs
import numpy as np

from .arrays import Array, Columns, lexsort, numbered
from .diagnostic import Excess, error
from .editing import with_dependencies
from .frozen import frozen
from .group import Group
from .machine import partners, receivers
from .opcodes import Opcode
from .program import BLOCK_COLUMNS, INSTRUCTION_COLUMNS, Buffer, Program
from .ragged import group_starts, nth, owners, ranges, starts
from .symmetric import MOST_ROWS
from .symmetric_program import SymmetricProgram

__all__ = ["keep_runs", "laid_out", "run_counts"]

#: bits of a number that is not negative
_WORD = 63


def laid_out(program: SymmetricProgram, most: int | None = None, by_place: bool = False) -> Program:
    """Return the program of all ranks, with an instruction for each run of a message, of at most ``most`` chunks.

    The first run of a message has its dependencies; those on a message are on its last run. Runs are in the order of
    the sender's places, or (``by_place``) in that of their places in shards: then the runs of one shard are apart, and
    go to different channels. Messages of a program that ``forwards`` are one run, of any number of chunks.
    """
    if program.forwards:
        return program.unfold()
    seed, messages, elements = program.seed, len(program.message_start) - 1, np.arange(program.group.order)[:, None]
    runs = _runs(program, most)
    table = (runs.by_place(program.chunks) if by_place else runs).instructions(program)
    order = np.argsort(table["at"], kind="stable")  # of one message, in the order of the sender's places
    first = group_starts(table["at"][order], program.group.order * messages)

    def rows(message: Array) -> Array:
        """Return the first rows of these messages, element by element."""
        found: Array = first[(elements * messages + message).ravel()]
        return found

    opening = np.searchsorted(program.message_start, seed.block_start[:-1])
    result = Program(
        seed.collective, seed.chunks, np.tile(seed.scratch[: program.width], program.group.order),
        **_blocks(program, elements), block_start=np.append(rows(opening), len(order)),
        **{c: table[c][order] for c in INSTRUCTION_COLUMNS}, dep_start=np.zeros(len(order) + 1, dtype=np.int64),
        deps=[], name=seed.name, scheduler=seed.scheduler,
    )  # fmt: skip
    later, earlier = program.message[seed.dependent], program.message[seed.deps]
    return with_dependencies(result, rows(later), rows(earlier + 1) - 1)


def run_counts(program: SymmetricProgram, most: int | None = None) -> Array:
    """Return the number of instructions that :func:`laid_out` makes of each message, shape (elements, messages)."""
    messages, order = len(program.message_start) - 1, program.group.order
    if program.forwards:
        return np.ones((order, messages), dtype=np.int64)
    at = np.concatenate(_runs(program, most).places(messages))
    return np.bincount(at, minlength=order * messages).reshape(order, messages)


def keep_runs(before: SymmetricProgram, after: SymmetricProgram, message: Array | None, row: Array | None) -> None:
    """Keep the runs that are known of a program, for the same program with its messages in another order.

    ``message`` and ``row`` are the new numbers of its messages and of its seed's instructions; None: they are the same.
    """
    for key, runs in before.found.items():
        if isinstance(key, tuple) and key[0] == "runs":
            after.found[key] = runs if message is None or row is None else runs.renumbered(message, row)


def _blocks(program: SymmetricProgram, elements: Array) -> Columns:
    """Return the columns of the blocks of all ranks, element by element."""
    seed, order = program.seed, program.group.order
    columns: Columns = {c: np.tile(getattr(seed, c).astype(np.int64), order) for c in BLOCK_COLUMNS}
    columns["block_rank"] = (elements * program.width + seed.block_rank).ravel()
    for end in ("send_peer", "recv_peer"):
        peer = getattr(seed, end).astype(np.int64)
        columns[end] = np.where(peer >= 0, program.moved(elements, np.maximum(peer, 0)), -1).ravel()
    return columns


# ---- runs


@frozen(eq=False)
class _Runs:
    """The runs of all messages and copies: one row for each, by element and message of the sender, then by place.

    ``element`` moves the sender's rank of the seed, ``away`` the receiver's. ``message`` and ``arrival`` are their
    messages, for a copy both the same. ``src`` is the sender's place, ``dst`` and ``operand`` the receiver's: where it
    stores, and what it adds to. ``sent`` and ``received`` are instructions of the seed that name the buffers.
    """

    element: Array
    message: Array
    away: Array
    arrival: Array
    src: Array
    dst: Array
    operand: Array
    sent: Array
    received: Array
    count: Array

    @property
    def arrives(self) -> Array:
        """Which runs are messages: copies are one instruction, not two."""
        arrives: Array = self.arrival != self.message
        return arrives

    def places(self, messages: int) -> list[Array]:
        """Return ``element * messages + message`` of each instruction: those that send or copy, then the arrivals."""
        return [self.element * messages + self.message, (self.away * messages + self.arrival)[self.arrives]]

    def cut(self, most: int | None) -> _Runs:
        """Return the runs cut into ones of at most ``most`` chunks."""
        if most is None or int(self.count.max(initial=0)) <= most:
            return self
        parts = -(-self.count // most)
        row, begin = owners(parts), nth(parts) * most
        columns: Columns = {field.name: getattr(self, field.name)[row] for field in attrs.fields(_Runs)}
        columns |= {name: columns[name] + begin for name in ("src", "dst", "operand")}
        return _Runs(**columns | {"count": np.minimum(columns["count"] - begin, most)})

    def renumbered(self, message: Array, row: Array) -> _Runs:
        """Return the runs by the new numbers of messages and of the seed's instructions."""
        found = attrs.evolve(
            self, message=message[self.message], arrival=message[self.arrival], sent=row[self.sent],
            received=row[self.received],
        )  # fmt: skip
        return found.rows(lexsort((found.message, found.element)))

    def of_all(self, group: Group) -> _Runs:
        """Return the runs of all elements, from those of the first one, if messages have the same places on all."""
        element = np.repeat(np.arange(group.order), len(self.element))
        columns = {column.name: np.tile(getattr(self, column.name), group.order) for column in attrs.fields(_Runs)}
        return _Runs(**columns | {"element": element, "away": group.multiply(element, columns["away"])})

    def rows(self, order: Array) -> _Runs:
        """Return these rows."""
        return _Runs(*(getattr(self, column.name)[order] for column in attrs.fields(_Runs)))

    def by_place(self, chunks: int) -> _Runs:
        """Return the runs of each message by their places in shards of ``chunks``, those of one place by shard."""
        order = lexsort((self.src // chunks, self.src % chunks, self.message, self.element))
        return self.rows(order)

    def instructions(self, program: SymmetricProgram) -> Columns:
        """Return the columns of the instructions, and in ``at`` their :meth:`places`."""
        seed, copies = program.seed, ~self.arrives
        here = {
            "opcode": seed.opcode[self.sent], "src_buffer": seed.src_buffer[self.sent], "src_offset": self.src,
            "dst_buffer": np.where(copies, seed.dst_buffer[self.received], 0),
            "dst_offset": np.where(copies, self.dst, 0), "count": self.count,
        }  # fmt: skip
        adds = seed.reads_src[self.received]
        there = {
            "opcode": seed.opcode[self.received], "src_buffer": np.where(adds, seed.src_buffer[self.received], 0),
            "src_offset": np.where(adds, self.operand, 0), "dst_buffer": seed.dst_buffer[self.received],
            "dst_offset": self.dst, "count": self.count,
        }  # fmt: skip
        columns = {c: np.concatenate([here[c], there[c][~copies]]) for c in here}
        return {**columns, "at": np.concatenate(self.places(len(program.message_start) - 1))}


def _runs(program: SymmetricProgram, most: int | None) -> _Runs:
    """Return the runs of at most ``most`` chunks; they are kept, because passes count them before they are written."""
    if ("runs", most) not in program.found:
        elements, pieces = np.arange(1 if program.fixed else program.group.order), _Pieces.of(program)
        _require_few(program, len(pieces.message) * len(elements))
        runs = pieces.runs(program, elements[:, None], most)
        # the messages of a fixed program have the same places on all ranks
        program.found["runs", most] = runs.of_all(program.group) if program.fixed else runs
    known: _Runs = program.found["runs", most]
    return known


def _require_few(program: SymmetricProgram, found: int) -> None:
    """Raise C0808 if too many pieces of messages would be listed."""
    if found > MOST_ROWS:
        raise error(
            "C0808", f"the messages of {program.collective.kind} on {program.num_ranks} ranks have {found} pieces; at "
            f"most {MOST_ROWS} can be listed",
            notes=["`collc cost` and `collc verify` need only the schedule of one rank"],
            hint="use fewer ranks, or a target that needs the program of one rank only, such as `mpi-c`",
            exit_status=3, excess=Excess("pieces", found, MOST_ROWS),
        )  # fmt: skip


@frozen(eq=False)
class _Pieces:
    """The messages that leave the seed's ranks, and their copies, in pieces that lie together on all images.

    ``message`` sends a piece of ``count`` chunks, ``arrival`` is the message at the other end, ``leads`` the element
    from the sender to the receiver. ``sent`` and ``received`` are the instructions at both ends, ``sent_at`` and
    ``received_at`` the places of the piece in them. A copy is both ends.
    """

    message: Array
    arrival: Array
    leads: Array
    sent: Array
    received: Array
    sent_at: Array
    received_at: Array
    count: Array

    @classmethod
    def of(cls, program: SymmetricProgram) -> _Pieces:
        """Return the pieces of a template's messages: they are cut where the chunks of either end lie apart."""
        seed, batched = program.seed, program.batched
        count, sends = seed.count.astype(np.int64), batched.sends
        first = starts(count)[program.message_start]  # the first chunk of each message
        message = np.flatnonzero(sends | (batched.opcode == Opcode.COPY))
        arrival = np.where(sends, receivers(partners(batched)), np.arange(len(sends)))[message]
        leads = np.where(sends, seed.send_peer[batched.block].astype(np.int64) // program.width, 0)[message]
        size = np.diff(first)[message]
        row, at, of = owners(count), nth(count), owners(size)
        apart = _is_apart(program, row, at)
        sent, received = ranges(first[message], size), ranges(first[arrival], size)
        begin = np.flatnonzero(apart[sent] | apart[received])
        length, of = np.diff(np.append(begin, len(of))), of[begin]
        sent, received = sent[begin], received[begin]
        return cls(message[of], arrival[of], leads[of], row[sent], row[received], at[sent], at[received], length)

    def runs(self, program: SymmetricProgram, elements: Array, most: int | None) -> _Runs:
        """Return the runs of at most ``most`` chunks on these images, a column: all, or one of a fixed program."""
        seed = program.seed
        kind, sent = self._kinds(seed), _places(program, "src", self.sent, self.sent_at, elements)
        order, sent = _sorted_within(kind, sent)
        kind, count = np.sort(kind), self.count[order]  # all elements have the same kinds in the same columns
        leads, lead = numbered(self.leads)
        away = program.group.multiply(elements, leads)[elements, lead[order]]
        at = order if program.fixed else away * len(kind) + order
        stored, operand = (
            _places(program, end, self.received, self.received_at, elements).take(at) for end in ("dst", "src")
        )
        fresh = np.ones(sent.shape, dtype=bool)
        adds = (seed.receives & seed.reads_src)[self.received[order[:, 1:]]]
        follows = kind[1:] == kind[:-1]
        follows = follows & _follow(sent, count) & _follow(stored, count) & (_follow(operand, count) | ~adds)
        fresh[:, 1:] = ~follows
        element, at = np.nonzero(fresh)
        piece = order[element, at]
        length = np.add.reduceat(count.ravel(), np.flatnonzero(fresh.ravel())) if fresh.size else count.ravel()
        return _Runs(
            element, self.message[piece], away[element, at], self.arrival[piece], sent[element, at],
            stored[element, at], operand[element, at], self.sent[piece], self.received[piece], length,
        ).cut(most)  # fmt: skip

    def _kinds(self, seed: Program) -> Array:
        """Number the messages of the pieces, and in a message the buffers: pieces of other buffers are not adjacent."""
        kind = self.message
        adds = np.where(seed.reads_src, seed.src_buffer, 0)
        for buffer in (seed.src_buffer[self.sent], seed.dst_buffer[self.received], adds[self.received]):
            kind = kind * len(Buffer) + buffer
        return numbered(kind)[1]


def _is_apart(program: SymmetricProgram, row: Array, at: Array) -> Array:
    """Return which chunks, number ``at`` of instruction ``row``, do not lie behind the one before them on all images.

    The first chunk of an instruction does not.
    """
    found: Array = at == 0
    if not len(program.numbering):
        return found
    behind = np.diff(program.numbering.astype(np.int64), prepend=-2).reshape(-1, program.chunks)
    apart = (behind != 1).any(axis=0)
    for end in ("src", "dst"):
        inside = (getattr(program.seed, f"{end}_offset").astype(np.int64)[row] + at) % program.chunks
        found |= program.moving(end)[row] & apart[inside]
    return found


def _sorted_within(kind: Array, place: Array) -> tuple[Array, Array]:
    """Return the order of each row's columns by kind, then by place, and the places in this order."""
    columns = kind.size
    bits, wide = columns.bit_length(), int(place.max(initial=0)).bit_length()
    if int(kind.max(initial=0)).bit_length() + wide + bits > _WORD:
        order = np.argsort(kind << wide | place, axis=1)
        return order, np.take_along_axis(place, order, axis=1)
    packed = ((kind << wide + bits) + np.arange(columns)) + (place << bits)
    packed.sort(axis=1)  # numbers that hold their column take a fifth of the time of an argsort
    return packed & (1 << bits) - 1, packed >> bits & (1 << wide) - 1


def _places(program: SymmetricProgram, end: str, row: Array, at: Array, elements: Array) -> Array:
    """Return where pieces of the seed's instructions lie on images of their rank, shape (elements, pieces)."""
    offset = getattr(program.seed, f"{end}_offset").astype(np.int64)[row] + at
    return program.placed(elements, offset, program.moving(end)[row])


def _follow(places: Array, count: Array) -> Array:
    """Return which pieces in a row follow the one before, without the first column."""
    follows: Array = places[:, 1:] == places[:, :-1] + count[:, :-1]
    return follows
