"""Check the result of a wide program, wave by wave, in whole columns.

This is the same execution on symbols as in :mod:`._values`, which explains the mistakes that this module only detects.
An identity is one number per location; contributing ranks are bits of 64-bit words.
"""

from __future__ import annotations

import numpy as np

from ..arrays import Array, lexsort
from ..frozen import frozen
from ..layout import Layout, locations
from ..program import Buffer, Opcode, Program
from ..ragged import nth, owners, starts
from ..waves import Waves

__all__ = ["by_opcode", "computes", "identities", "places"]

_WORD = 64


def computes(program: Program, where: Layout, order: Waves, partner: Array) -> bool:
    """Return whether all reads and reductions are correct, and the outputs have the collective's result.

    ``order`` must not have conflicting accesses in one wave: the program has no races (see :mod:`._races`).
    """
    if not program.collective.reduces and program.reduces.any():
        return False
    memory = _Memory(program, where, partner)
    rows, start = by_opcode(program, order)
    return all(memory.do(rows[a:b]) for a, b in zip(start[:-1].tolist(), start[1:].tolist(), strict=True)) and (
        memory.holds_promise(program, where)
    )


def identities(program: Program, where: Layout, order: Waves, partner: Array) -> Array | None:
    """Return the chunks that are sent (shard * chunks + chunk, from 1), message by message; None if a read or reduction
    is wrong.
    """
    memory = _Memory(program, where, partner, contributors=False)
    rows, start = by_opcode(program, order)
    right = all(memory.do(rows[a:b]) for a, b in zip(start[:-1].tolist(), start[1:].tolist(), strict=True))
    return memory.sent.identity if right else None


def by_opcode(program: Program, order: Waves) -> tuple[Array, Array]:
    """Return the instructions wave by wave, those of a wave by opcode, and where runs of one wave and opcode start."""
    wave = owners(np.diff(order.start))
    key = wave * len(Opcode) + program.opcode.take(order.instruction)
    by_key = lexsort([key])
    changes = np.flatnonzero(np.diff(key.take(by_key))) + 1
    start = np.concatenate([[0], changes, [len(key)]]) if len(key) else np.zeros(1, dtype=np.int64)
    return order.instruction.take(by_key), start


@frozen(eq=False)
class _Values:
    """Values: ``identity`` (n), 0 for an unwritten location, and ``ranks`` (n, words), bits of contributors."""

    identity: Array
    ranks: Array

    @classmethod
    def empty(cls, size: int, words: int) -> _Values:
        return cls(np.zeros(size, dtype=np.int64), np.zeros((size, words), dtype=np.uint64))

    def __getitem__(self, at: Array) -> _Values:
        return _Values(self.identity.take(at), self.ranks.take(at, axis=0))

    def __setitem__(self, at: Array, values: _Values) -> None:
        self.identity[at], self.ranks[at] = values.identity, values.ranks


class _Memory:
    """All buffers, and the messages sent. Without ``contributors`` the contributing ranks are not tracked."""

    def __init__(self, program: Program, where: Layout, partner: Array, contributors: bool = True):
        collective = program.collective
        words = -(-collective.num_ranks // _WORD) if contributors and collective.reduces else 0
        self.often = collective.idempotent
        self.opcode, self.count = program.opcode, program.count.astype(np.int64)
        self.src, self.dst = locations(program, where)
        sends = program.sends
        sizes = np.where(sends, self.count, 0)
        self.out = starts(sizes)
        self.come = np.where(partner >= 0, self.out[partner], -1)
        self.sent = _Values.empty(int(sizes.sum()), words)
        self.values = _Values.empty(where.total, words)
        at, identity, rank = places(program, where, output=False)
        self.values.identity[at] = identity
        if words:
            self.values.ranks[at, rank // _WORD] = np.uint64(1) << (rank % _WORD).astype(np.uint64)

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
        everyone = np.zeros(self.values.ranks.shape[1], dtype=np.uint64)
        for rank in program.collective.ranks.tolist():
            if len(everyone):
                everyone[rank // _WORD] |= np.uint64(1 << rank % _WORD)
        at, identity, _ = places(program, where, output=True)
        if not np.array_equal(self.values.identity[at], identity):
            return False
        promised = everyone
        if program.collective.contributors is not None:
            promised = _promised(program, identity, len(everyone))
        return not len(everyone) or bool((self.values.ranks[at] == promised).all())


def _promised(program: Program, identity: Array, words: int) -> Array:
    """Return the bits of the contributors of each chunk of a custom collective: shape (chunks, words)."""
    collective = program.collective
    bits = np.zeros((collective.num_shards, words), dtype=np.uint64)
    for shard in range(collective.num_shards):
        for rank in collective.contributions(shard):
            bits[shard, rank // _WORD] |= np.uint64(1 << rank % _WORD)
    found: Array = bits[(identity - 1) // program.chunks]
    return found


def places(program: Program, where: Layout, output: bool) -> tuple[Array, Array, Array]:
    """Return the addresses of all ranks' inputs (or outputs), the identity of what is there first (or last), and the
    rank.
    """
    collective, chunks = program.collective, program.chunks
    held = [collective.shards_at(rank, output) for rank in range(program.num_ranks)]
    rank, shards = owners([len(shards) for shards in held]), np.concatenate(held)
    slots = (collective.output_slots if output else collective.input_slots)(rank, shards).astype(np.int64)
    there = slots >= 0
    rank, shards, slots = rank.compress(there), shards.compress(there), slots.compress(there)
    base = where.base[:, Buffer.OUTPUT if output else Buffer.INPUT].astype(np.int64)
    at = (base.take(rank) + slots * chunks)[:, None] + np.arange(chunks)
    identity = (shards * chunks + 1)[:, None] + np.arange(chunks)
    return at.ravel(), identity.ravel(), np.repeat(rank, chunks)
