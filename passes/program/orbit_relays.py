"""Fuse receives and sends of a template whose ranks forward what arrives, as on rings.

A block that receives and sends has one channel. What one rank forwards goes on over the same connections, so a chain of
messages is on one channel (:mod:`.orbit_chains`). In a cyclic group, longer chains are possible: if c ranks are the
template, rank r may have the data of shard s on channel s - r modulo c, and data pass all ranks of a ring. Their images
have the same channels. That needs a group whose order c divides.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from collc.ir.machine import completes_with
from collc.ir.symmetric_program import SymmetricProgram

from .assembling import assemble
from .limits import steps
from .merging import merge
from .orbit_chains import along_chains, is_cyclic
from .orbit_channels import Room, on_channels
from .orbit_joining import JoinLimits, Turns
from .orbit_messages import relays, without_implied_waits
from .pairing import pair_blocks
from .relays import followed, without_delay

__all__ = ["Forwarding"]


class Forwarding:
    """A template of as many ranks as connections have channels, or of one, for fusing receives with sends.

    ``prompt`` and ``through`` are pairs (receive, send) of :func:`.relays.without_delay`. Times are those of the model
    of :mod:`..analysis.timing` with ``alpha`` and ``unit``.
    """

    def __init__(self, program: SymmetricProgram, limits: JoinLimits, alpha: int, unit: int):
        self.program, self.limits = program, limits
        self.turns = Turns.of(program, alpha, unit)
        batched, times, clashes = program.batched, self.turns.times, self.turns.clashes
        found = relays(program, clashes)
        self.prompt = without_delay(batched, times, clashes, found)
        self.through = without_delay(batched, times, clashes, found, through=True)

    @classmethod
    def of(cls, program: SymmetricProgram, limits: JoinLimits, alpha: int, unit: int) -> Iterator[Forwarding]:
        """Yield templates, with as few channels as possible first.

        There is none if messages are no single runs on all ranks, or need too many channels.
        """
        room = Room(1, limits.steps, limits.channels, None, limits.count, limits.fused)
        if is_cyclic(program):
            found = [_around_ring(program, room)]
        else:
            rooms = [room] if limits.steps is None else [room, attrs.evolve(room, steps=limits.steps // 2)]
            found = [along_chains(program, one) for one in rooms]
        for one in found:
            if one is not None:
                yield cls(one, limits, alpha, unit)

    def joined(self, few: bool, through: bool = False) -> SymmetricProgram | None:
        """Return the template with blocks joined that forward data, or (``few``) all; None if that breaks limits.

        Receives are fused with sends that leave at once, or (``through``) as soon as their block is free. If FIFOs are
        full on all ranks, none can forward, and the result is None: in a program of all ranks, one that does not fuse
        lets the others forward.
        """
        given, turns, limits, flow = self.program, self.turns, self.limits, self.through if through else self.prompt
        length = steps(given.seed, limits.fused)
        pairs = pair_blocks(given.batched, flow, few, length, limits.steps, limits.fused)
        if limits.channels is not None and int(pairs.channel.max(initial=0)) >= limits.channels:
            return None
        follow = followed(given.batched, flow, pairs)
        merged = merge(
            given.batched, turns.times.due, lambda: turns.place, turns.clashes, follow, pairs.host, limits.depth
        )
        if merged is None or not np.array_equal(merged.follow, follow):
            return None
        seed, _ = assemble(given.seed, merged, pairs)
        found = attrs.evolve(given, seed=seed, joined=np.zeros(seed.num_instructions, dtype=bool))
        fits = limits.steps is None or int(steps(seed, limits.fused).max(initial=0)) <= limits.steps
        return without_implied_waits(found) if fits and completes_with(found.batched, limits.depth) else None


def _around_ring(program: SymmetricProgram, room: Room) -> SymmetricProgram | None:
    """Return the template of as many ranks as a connection needs channels, of a cyclic group.

    None if only all ranks together have such channels, or if messages are no single runs.
    """
    short = room.count is None or int(program.seed.count.max(initial=0)) <= room.count
    if not short or program.joined.any() or len(program.numbering) or program.fixed:
        return None
    order, found = program.group.order, _channels(program)
    width = next(n for n in range(found, order + 1) if order % n == 0)
    if width == order:
        return None
    spread = program if width == found else on_channels(program, width, room)
    return None if spread is None else spread.widened(width)


def _channels(program: SymmetricProgram) -> int:
    """Return the most connections from one rank to another."""
    ends = program.links.src * program.num_ranks + program.links.dst
    return int(np.unique(ends, return_counts=True)[1].max(initial=1))
