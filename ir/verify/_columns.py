"""Check the result of a wide program, wave by wave, in whole columns.

This is the same execution on symbols as in :mod:`._values`, which explains the mistakes that this module only detects.
An identity is one number per location; contributing ranks are bits of 64-bit words.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..arrays import Array, lexsort
from ..frozen import frozen
from ..layout import Layout, locations
from ..program import Buffer, Opcode, Program
from ..ragged import nth, owners, starts
from ..waves import Waves
from ._accesses import LOCATIONS

__all__ = ["Places", "by_opcode", "computes", "identities", "places"]

_WORD = 64
#: words of contributors of all locations that one execution tracks
_BITS = 1 << 27


def computes(program: Program, where: Layout, order: Waves, partner: Array) -> bool:
    """Return whether all reads and reductions are correct, and the outputs have the collective's result.

    ``order`` must not have conflicting accesses in one wave: the program has no races (see :mod:`._races`).
    """
    collective = program.collective
    if not collective.reduces and program.reduces.any():
        return False
    words = -(-collective.num_ranks // _WORD) if collective.reduces else 0
    each = max(_BITS // max(where.total, 1), 1)
    rows, start = by_opcode(program, order)
    for first in range(0, max(words, 1), each):  # contributions of other ranks do not meet
        memory = _Memory(program, where, partner, range(first, min(first + each, words)))
        if not all(memory.do(rows[a:b]) for a, b in zip(start[:-1].tolist(), start[1:].tolist(), strict=True)):
            return False
        if not memory.holds_promise(program, where):
            return False
    return True


def identities(program: Program, where: Layout, order: Waves, partner: Array) -> Array | None:
    """Return the chunks that are sent (shard * chunks + chunk, from 1), message by message; None if a read or reduction
    is wrong.
    """
    memory = _Memory(program, where, partner, range(0))
    rows, start = by_opcode(program, order)
    right = all(memory.do(rows[a:b]) for a, b in zip(start[:-1].tolist(), start[1:].tolist(), strict=True))
    return memory.sent.identity if right else None


def by_opcode(program: Program, order: Waves) -> tuple[Array, Array]:
    """Return the instructions wave by wave, those of a wave by opcode, and where runs to execute at once start.

    A run has one wave and opcode, and few locations.
    """
    wave = owners(np.diff(order.start))
    key = wave * len(Opcode) + program.opcode.take(order.instruction)
    by_key = lexsort([key])
    rows = order.instruction.take(by_key)
    block = np.cumsum(program.count.take(rows), dtype=np.int64) // LOCATIONS
    changes = np.flatnonzero(np.diff(key.take(by_key)) | np.diff(block)) + 1
    start = np.concatenate([[0], changes, [len(key)]]) if len(key) else np.zeros(1, dtype=np.int64)
    return rows, start


@frozen(eq=False)
class _Values:
    """Values: ``identity`` (n), 0 for an unwritten location, and ``ranks`` (n, words), bits of contributors."""

    identity: Array
    ranks: Array

    @classmethod
    def empty(cls, size: int, words: int, chunks: int) -> _Values:
        """Return unwritten locations for identities up to the number of ``chunks``."""
        kind = np.int32 if chunks < 2**31 else np.int64
        return cls(np.zeros(size, dtype=kind), np.zeros((size, words), dtype=np.uint64))

    def __getitem__(self, at: Array) -> _Values:
        return _Values(self.identity.take(at), self.ranks.take(at, axis=0))

    def __setitem__(self, at: Array, values: _Values) -> None:
        self.identity[at], self.ranks[at] = values.identity, values.ranks


class _Memory:
    """All buffers, and the messages sent; ``words`` are those of contributors that are tracked."""

    def __init__(self, program: Program, where: Layout, partner: Array, words: range):
        collective = program.collective
        self.words, self.often = words, collective.idempotent
        self.opcode, self.count = program.opcode, program.count.astype(np.int64)
        self.src, self.dst = locations(program, where)
        sends = program.sends
        sizes = np.where(sends, self.count, 0)
        self.out = starts(sizes)
        self.come = np.where(partner >= 0, self.out[partner], -1)
        chunks = collective.num_shards * program.chunks
        self.sent = _Values.empty(int(sizes.sum()), len(words), chunks)
        self.values = _Values.empty(where.total, len(words), chunks)
        for at, identity, rank in places(program, where, output=False).blocks():
            self.values.identity[at] = identity
            inside = np.flatnonzero((rank >= words.start * _WORD) & (rank < words.stop * _WORD))
            at, rank = at.take(inside), rank.take(inside)
            self.values.ranks[at, rank // _WORD - words.start] = np.uint64(1) << (rank % _WORD).astype(np.uint64)

    def do(self, rows: Array) -> bool:
        """Execute instructions of one opcode, none of which waits for another; return whether they were right."""
        op = Opcode(int(self.opcode[rows[0]]))
        count = self.count[rows]
        each, chunk = owners(count), nth(count)
        at = self.dst[rows][each] + chunk
        if op is Opcode.NOP:
            return True
        given = [self.values[self.src[rows][each] + chunk]] if op.reads_src else []
        if op.reads_dst:
            given.append(self.values[at])
        if op.receives:
            given.append(self.sent[self.come[rows][each] + chunk])
        if not all(value.identity.all() for value in given) or (len(given) > 1 and not self._fit(*given)):
            return False
        value = given[0] if len(given) == 1 else _Values(given[0].identity, given[0].ranks | given[1].ranks)
        if op.writes_dst:
            self.values[at] = value
        if op.sends:
            self.sent[self.out[rows][each] + chunk] = value
        return True

    def _fit(self, one: _Values, other: _Values) -> bool:
        """Return whether two values may be reduced: the same chunks, and no rank contributes to both."""
        apart = self.often or not (one.ranks & other.ranks).any()
        return apart and np.array_equal(one.identity, other.identity)

    def holds_promise(self, program: Program, where: Layout) -> bool:
        """Return whether every output holds all that the collective promises."""
        first, number = self.words.start, len(self.words)
        everyone = np.zeros(number, dtype=np.uint64)
        for rank in program.collective.ranks.tolist():
            if rank // _WORD in self.words:
                everyone[rank // _WORD - first] |= np.uint64(1 << rank % _WORD)
        promised = everyone
        for at, identity, _ in places(program, where, output=True).blocks():
            if not np.array_equal(self.values.identity.take(at), identity):
                return False
            if program.collective.contributors is not None:
                promised = _promised(program, identity, self.words)
            if number and not (self.values.ranks.take(at, axis=0) == promised).all():
                return False
        return True


def _promised(program: Program, identity: Array, words: range) -> Array:
    """Return the bits of the contributors of each chunk of a custom collective: shape (chunks, words)."""
    collective = program.collective
    bits = np.zeros((collective.num_shards, len(words)), dtype=np.uint64)
    for shard in range(collective.num_shards):
        for rank in collective.contributions(shard):
            if rank // _WORD in words:
                bits[shard, rank // _WORD - words.start] |= np.uint64(1 << rank % _WORD)
    found: Array = bits[(identity - 1) // program.chunks]
    return found


@frozen(eq=False)
class Places:
    """The shards that ranks have in inputs or outputs: the address, the identity of the first chunk, and the rank.

    ``chunks`` is the number of chunks of a shard.
    """

    at: Array
    identity: Array
    rank: Array
    chunks: int

    @property
    def total(self) -> int:
        """The number of locations."""
        return len(self.at) * self.chunks

    def blocks(self) -> Iterator[tuple[Array, Array, Array]]:
        """Yield the address, the identity and the rank of each chunk, those of few shards at a time."""
        each = max(LOCATIONS // self.chunks, 1)
        inner = np.arange(self.chunks)
        for first in range(0, len(self.at), each):
            rows = slice(first, first + each)
            at, identity = ((column[rows, None] + inner).ravel() for column in (self.at, self.identity))
            yield at, identity, np.repeat(self.rank[rows], self.chunks)


def places(program: Program, where: Layout, output: bool) -> Places:
    """Return what all ranks' inputs have first (or outputs last)."""
    collective, chunks = program.collective, program.chunks
    held = [collective.shards_at(rank, output) for rank in range(program.num_ranks)]
    rank, shards = owners([len(shards) for shards in held]), np.concatenate(held)
    slots = (collective.output_slots if output else collective.input_slots)(rank, shards).astype(np.int64)
    there = slots >= 0
    rank, shards, slots = rank.compress(there), shards.compress(there), slots.compress(there)
    base = where.base[:, Buffer.OUTPUT if output else Buffer.INPUT].astype(np.int64)
    return Places(base.take(rank) + slots * chunks, shards.astype(np.int64) * chunks + 1, rank, chunks)
